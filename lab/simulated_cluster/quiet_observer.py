"""What an observer of a simulated cluster has to say about what is not simulated."""

from collections.abc import Collection

from model.errors import PlimsollError
from model.ids import BrokerId, TopicName
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.replication import Replication
from model.snapshot.steadiness import Steadiness


class QuietObserver:
    """All of `control.loop.dependencies.Observer` but brokers and loads, for subclasses.

    There are no connection, no samples and no consumers, and no broker is slow.
    """

    failure: PlimsollError | None = None

    def start(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def replication(self) -> Replication | None:
        """Unknown."""
        return None

    def slow(self) -> dict[BrokerId, str]:
        """None is: all answer at once."""
        return {}

    def steadiness(self) -> Steadiness | None:
        """Unknown: there are no samples."""
        return None

    def ahead_s(self) -> float:
        """Not at all: there are no samples."""
        return 0.0

    def consumer_lag(self, topics: Collection[TopicName]) -> ConsumerLag | None:
        """No group has committed."""
        del topics
        return None

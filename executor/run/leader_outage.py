"""How long a partition had no leader, bounded by polls of its metadata.

An answer describes some moment between the request and its arrival, and nothing about
the time between two polls. So there are two figures: a lower bound that the polls
prove, and an upper bound that they leave open. Both are about the polled broker;
clients wait until their own broker's metadata show the leader, too.
"""

from dataclasses import dataclass

from executor.client.responses import PartitionView
from model.ids import BrokerId


@dataclass(slots=True)
class LeaderOutage:
    """Seconds without a leader of one partition, summed over its elections.

    Where two consecutive polls show the same leader, it counts as leader in between.
    """

    leader: BrokerId
    """The leader in the most recent metadata that show one."""
    led_at_s: float
    """When those metadata were requested."""
    at_least_s: float = 0.0
    at_most_s: float = 0.0
    _gone_at_s: float | None = None
    """When the first of consecutive polls without a leader was answered."""
    _still_gone_at_s: float = 0.0
    """When the last of those polls was sent."""

    def observe(self, view: PartitionView, asked_s: float, answered_s: float) -> None:
        """Add one poll; times are seconds of a monotonic clock."""
        if not view.is_led:
            if self._gone_at_s is None:
                self._gone_at_s = answered_s
            self._still_gone_at_s = asked_s
            return
        if self._gone_at_s is not None:
            self.at_least_s += max(0.0, self._still_gone_at_s - self._gone_at_s)
        if self._gone_at_s is not None or view.leader != self.leader:
            self.at_most_s += answered_s - self.led_at_s
        self._gone_at_s, self.leader, self.led_at_s = None, view.leader, asked_s

    @property
    def bounds_s(self) -> tuple[float, float]:
        """Lower and upper bound in seconds, rounded to milliseconds."""
        return round(self.at_least_s, 3), round(self.at_most_s, 3)

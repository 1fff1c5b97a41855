"""A host's client of the cluster, over a network that loses, delays and reorders requests."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from executor.client.responses import ClusterView, PartitionResponse, PartitionView
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import ClusterUnreachable, PlimsollError
from model.ids import BrokerId, PartitionId, TopicName

TIMEOUT_S: Final = 10.0
"""Seconds until a call gives up."""
FORWARDED_S: Final = 60.0
"""For so long, in seconds, a broker tries to forward a request whose sender is gone."""
_ANSWER_S: Final = 0.01
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changing call."""

    call: str
    about: Mapping[Any, Any]
    """What it is about, and what that is set to."""
    extra: Any = None


@dataclass(frozen=True, slots=True)
class Passage:
    """How a request passes the network."""

    there_s: float | None
    """Until it arrives; None where it is lost."""
    back_s: float | None
    """Until its answer arrives after that."""
    search_s: float = 0.0
    """Until it is sent, for which the controller is searched."""


@dataclass(frozen=True, slots=True)
class StaleMetadata:
    """Metadata of a broker that does not hear of changes any more."""

    cluster: ClusterView
    partitions: Mapping[PartitionId, PartitionView]


class Caller(Protocol):
    """The process that calls."""

    def sleep(self, seconds: float) -> None:
        """Wait; raises Dead where the process is killed meanwhile."""

    def step(self) -> None:
        """Take a step, at which the process may die."""

    def passage(self, *, changes: bool) -> Passage:
        """How the next request passes the network."""
        ...

    def lag(self) -> "StaleMetadata | None":
        """The metadata of the broker that answers the next request, if it lags."""
        ...

    def sent(self, change: Change) -> None:
        """Note a changing call as it is sent."""

    @property
    def life(self) -> int:
        """Number of the process."""
        ...

    def delivered(self, change: Change, after_s: float, life: int) -> None:
        """Note that it has arrived, so many seconds after that process sent it."""


class WorldAdmin(SimulatedAdmin):
    """Implement `ClusterAdmin`; a call ends with the answer or after the time-out."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        caller: Caller,
        before_change: Callable[[], None] = lambda: None,
    ) -> None:
        """before_change: as of `KafkaAdmin`."""
        super().__init__(cluster, Faults(), answer_s=0.0)
        self._before_change = before_change
        self._of = cluster
        self._caller = caller
        self._about = Change(call="", about={})
        self._is_delivering = False

    def cluster(self) -> ClusterView:
        """As the broker that answers knows it."""
        found = super().cluster()
        lag = self._caller.lag()
        return found if lag is None else lag.cluster

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, PartitionView]:
        """As the broker that answers knows them."""
        found = super().partitions(ids)
        lag = self._caller.lag()
        return found if lag is None else {pid: lag.partitions[pid] for pid in found}

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId] | None], *, resizes: bool = False
    ) -> dict[PartitionId, PartitionResponse]:
        """As of a cluster."""
        self._about = Change(call="reassign", about=dict(targets))
        return super().reassign(targets, resizes=resizes)

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """As of a cluster."""
        ids = list(ids)
        self._about = Change(call="elect", about=dict.fromkeys(ids))
        super().elect_preferred(ids)

    def alter_broker_configs(
        self, broker: BrokerId | None, values: Mapping[str, str | None]
    ) -> None:
        """As of a cluster."""
        self._about = Change(call="broker", about=dict(values), extra=broker)
        super().alter_broker_configs(broker, values)

    def alter_topic_configs(self, topic: TopicName, values: Mapping[str, str | None]) -> None:
        """As of a cluster."""
        self._about = Change(call="topic", about=dict(values), extra=topic)
        super().alter_topic_configs(topic, values)

    def append_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        """As of a cluster."""
        self._about = Change(call="append", about=dict(lists), extra=topic)
        super().append_topic_configs(topic, lists)

    def subtract_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        """As of a cluster."""
        self._about = Change(call="subtract", about=dict(lists), extra=topic)
        super().subtract_topic_configs(topic, lists)

    def _read(self, call: str, ask: Callable[[], _T]) -> _T:
        passage = self._caller.passage(changes=False)
        if passage.there_s is None or passage.back_s is None:
            raise self._no_response()
        self._caller.sleep(passage.there_s + passage.back_s + _ANSWER_S)
        return ask()

    def _change(self, call: str, ask: Callable[[], _T]) -> _T:
        change, answers = self._about, list[_T | PlimsollError]()
        if not change.call:
            raise NotImplementedError(f"no invariant judges {call}")
        self._about = Change(call="", about={})
        self._caller.step()
        passage = self._caller.passage(changes=True)
        if passage.search_s:
            self._caller.sleep(passage.search_s)
        self._before_change()
        self._caller.step()
        sent_s, life = self._of.now_s, self._caller.life
        self._caller.sent(change)

        def deliver() -> None:
            self._caller.delivered(change, self._of.now_s - sent_s, life)
            self._is_delivering = True
            try:
                answers.append(ask())
            except PlimsollError as exc:
                answers.append(exc)
            finally:
                self._is_delivering = False

        if passage.there_s is not None:
            self._of.after(passage.there_s + _ANSWER_S, deliver)
        if passage.there_s is None or passage.back_s is None:
            self._caller.sleep(TIMEOUT_S)
        else:
            self._caller.sleep(min(TIMEOUT_S, passage.there_s + passage.back_s + _ANSWER_S))
        self._caller.step()
        is_late = passage.there_s is not None and passage.there_s >= TIMEOUT_S
        if not answers or passage.back_s is None or is_late:
            raise ClusterUnreachable("No broker answers.")
        answer = answers[0]
        if isinstance(answer, PlimsollError):
            raise answer
        return answer

    def _no_response(self) -> ClusterUnreachable:
        if not self._is_delivering:
            self._caller.sleep(TIMEOUT_S)
        return ClusterUnreachable("No broker answers.")

"""The executor's client of a simulated cluster."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from executor.client.cluster_admin import OffsetKind
from executor.client.responses import ClusterView, LogDirView, PartitionResponse, PartitionView
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import CORDONED, SimulatedPartition
from lab.simulated_cluster.dynamic_configs import alter, append, of_keys, subtract
from lab.simulated_cluster.faults import Faults, Lost
from model.errors import ClusterUnreachable, ExecutionStopped, RightsMissing
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import StorageKind

_T = TypeVar("_T")
_TIMEOUT_S: Final = 10.0
"""Duration of a call without a response."""
_RECORD_BYTES: Final = 1000
_MOST_RECORDS: Final = 10_000
"""Limit of a controller operation (`QuorumController.MAX_RECORDS_PER_USER_OP`)."""
_TOO_MANY: Final = "Unable to perform excessively large batch operation."
_BROKER_DEFAULTS: Final = {"follower.fetch.last.tiered.offset.enable": "true"}
_AUTOMQ_DEFAULTS: Final = {
    "elasticstream.enable": "true",
    "autobalancer.controller.enable": "false",
}
_TOPIC_DEFAULTS: Final = {
    "segment.bytes": "8388608",
    "retention.bytes": "-1",
    "retention.ms": "-1",
    "local.retention.bytes": "-2",
    "local.retention.ms": "1000",
    "min.insync.replicas": "1",
}


class SimulatedAdmin:
    """Implement `ClusterAdmin`; each call takes `answer_s` of simulated time.

    Calls raise the errors of the real client: ClusterUnreachable, RightsMissing and
    ExecutionStopped.
    """

    def __init__(
        self, cluster: SimulatedCluster, faults: Faults, *, answer_s: float = 0.01
    ) -> None:
        self._cluster = cluster
        self._faults = faults
        self._answer_s = answer_s
        self.changes = 0
        """Number of changing calls so far."""

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def cluster(self) -> ClusterView:
        """Cluster id, live brokers and racks."""
        return self._read("cluster", lambda: self._cluster.view)

    def controller_elections(self) -> int | None:
        """Number of controller elections so far."""
        return self._read("controller_elections", lambda: self._cluster.elections)

    def features(self) -> frozenset[str]:
        """Feature names; AutoMQ is recognised by one."""
        known = {"automq.version"} if self._cluster.is_automq else set()
        return self._read("features", lambda: frozenset(known))

    def topics(self) -> dict[TopicName, int]:
        """Number of partitions by topic."""
        there = (pid.topic for pid in self._cluster.partitions)
        return self._read("topics", lambda: dict(Counter(there)))

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, PartitionView]:
        """Placement in the metadata of a broker; by default of all partitions."""
        return self._read("partitions", lambda: self._cluster.shown(ids))

    def reassignments(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        """Reassignments in progress."""
        return self._read(
            "reassignments",
            lambda: {
                p.id: tuple(p.target) for p in self._cluster.partitions.values() if p.is_moving
            },
        )

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId] | None], *, resizes: bool = False
    ) -> dict[PartitionId, PartitionResponse]:
        """Reassign each partition by itself; refuse all if there are too many."""

        def ask() -> dict[PartitionId, PartitionResponse]:
            most = self._faults.most_partitions
            if len(targets) > (_MOST_RECORDS if most is None else most):
                too_many = PartitionResponse.refused(_TOO_MANY, by_policy=True)
                return dict.fromkeys(targets, too_many)
            if refused := self._faults.refusals.get("reassign"):
                return dict.fromkeys(targets, PartitionResponse.refused(refused))
            return {
                pid: self._cluster.reassign(pid, to, resizes=resizes) for pid, to in targets.items()
            }

        return self._change("reassign", ask)

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """Elect at once, where the preferred replica is in sync."""
        self._change("elect_preferred", lambda: self._cluster.elect_preferred(list(ids)))

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        """Log directories of a broker, with the replicas named."""

        def ask() -> tuple[LogDirView, ...]:
            self._refuse_dead(broker)
            return self._cluster.directories.views(broker, ids)

        return self._read("log_dirs", ask)

    def alter_log_dirs(
        self, broker: BrokerId, targets: Mapping[PartitionId, str]
    ) -> dict[PartitionId, PartitionResponse]:
        """Move replicas between directories, one after the other (KIP-113)."""
        of = self._cluster.directories

        def ask() -> dict[PartitionId, PartitionResponse]:
            self._refuse_dead(broker)
            return {p: of.alter(broker, p, path) for p, path in targets.items()}

        return self._change("alter_log_dirs", ask)

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        """Offsets of partitions that `leader` leads; all records have equal size."""
        of = self._cluster
        led = [
            of.partitions[pid]
            for pid in ids
            if pid in of.partitions and of.partitions[pid].leader == leader
        ]
        return self._read("offsets", lambda: {p.id: _offset(p, kind) for p in led})

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        """Effective values: defaults and dynamic settings."""
        defaults = _BROKER_DEFAULTS
        if self._cluster.is_automq:
            defaults = defaults | _AUTOMQ_DEFAULTS
        if self._cluster.knows_cordons:
            defaults = defaults | {CORDONED: ""}
        own = self._cluster.default_configs | self._cluster.brokers[broker].configs
        return self._read("broker_configs", lambda: of_keys(defaults | own, keys))

    def topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        """Effective values: defaults and dynamic settings."""
        of = self._cluster
        tiered = {p.id.topic for p in of.partitions.values() if p.storage is StorageKind.TIERED}
        there = {p.topic for p in of.partitions}
        return self._read(
            "topic_configs",
            lambda: {
                topic: of_keys(
                    _TOPIC_DEFAULTS
                    | {"remote.storage.enable": str(topic in tiered).lower()}
                    | of.topic_configs.get(topic, {}),
                    keys,
                )
                for topic in topics
                if topic in there
            },
        )

    def own_broker_configs(self, broker: BrokerId | None, keys: Sequence[str]) -> dict[str, str]:
        """Dynamic settings."""
        return self._read("own_broker_configs", lambda: of_keys(self._of_broker(broker), keys))

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str], broker: BrokerId | None = None
    ) -> dict[TopicName, dict[str, str]]:
        """Dynamic settings; no broker lags."""
        own = self._cluster.topic_configs
        return self._read(
            "own_topic_configs",
            lambda: {topic: of_keys(own.get(topic, {}), keys) for topic in topics},
        )

    def alter_broker_configs(
        self, broker: BrokerId | None, values: Mapping[str, str | None]
    ) -> None:
        """Set values, or delete them with None."""
        self._change("alter_broker_configs", lambda: alter(self._of_broker(broker), values))

    def alter_topic_configs(self, topic: TopicName, values: Mapping[str, str | None]) -> None:
        """Set values, or delete them with None."""
        self._change("alter_topic_configs", lambda: self._alter_topic(topic, values))

    def append_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        """Append entries to list settings."""
        self._change("append_topic_configs", lambda: append(self._of_topic(topic), lists))

    def subtract_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        """Remove entries from list settings."""
        self._change("subtract_topic_configs", lambda: subtract(self._of_topic(topic), lists))

    def _of_broker(self, broker: BrokerId | None) -> dict[str, str]:
        """Settings that only this broker returns; of all brokers for None."""
        if broker is None:
            return self._cluster.default_configs
        self._refuse_dead(broker)
        return self._cluster.brokers[broker].configs

    def _alter_topic(self, topic: TopicName, values: Mapping[str, str | None]) -> None:
        own = self._cluster.topic_configs.setdefault(topic, {})
        alter(own, values)
        if not own:
            del self._cluster.topic_configs[topic]

    def _of_topic(self, topic: TopicName) -> dict[str, str]:
        self._refuse_unknown(topic)
        return self._cluster.topic_configs.setdefault(topic, {})

    def _refuse_unknown(self, topic: TopicName) -> None:
        if not any(pid.topic == topic for pid in self._cluster.partitions):
            raise ExecutionStopped(f"The topic '{topic}' does not exist.")

    def _refuse_dead(self, broker: BrokerId) -> None:
        if broker not in self._cluster.alive:
            raise self._no_response()

    def _read(self, call: str, ask: Callable[[], _T]) -> _T:
        self._meet(call)
        return ask()

    def _change(self, call: str, ask: Callable[[], _T]) -> _T:
        number, self.changes = self.changes, self.changes + 1
        self._faults.on_call(call, made=False)
        self._meet(call)
        lost = self._faults.lost.get(number)
        if lost is Lost.REQUEST:
            raise self._no_response()
        if call != "reassign" and (words := self._faults.refusals.get(call)):
            raise ExecutionStopped(f"the cluster did not {call}: {words}")
        answer = ask()
        self._faults.on_call(call, made=True)
        if lost is Lost.ANSWER:
            raise self._no_response()
        return answer

    def _meet(self, call: str) -> None:
        if self._faults.away:
            raise self._no_response()
        self._cluster.advance(self._answer_s + self._faults.slow_s)
        if call in self._faults.denied:
            raise RightsMissing(f"The cluster refused to {call}.")

    def _no_response(self) -> ClusterUnreachable:
        self._cluster.advance(_TIMEOUT_S)
        return ClusterUnreachable("No broker answers.")


def _offset(partition: SimulatedPartition, kind: OffsetKind) -> int:
    end = int(partition.log_bytes) // _RECORD_BYTES
    local = int(partition.start) // _RECORD_BYTES
    match kind:
        case OffsetKind.LATEST:
            return end
        case OffsetKind.EARLIEST:
            return 0
        case OffsetKind.EARLIEST_LOCAL:
            return local
        case OffsetKind.LATEST_TIERED:
            return local - 1

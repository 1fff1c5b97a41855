"""The requests that the executor makes; `executor.client.kafka_admin` sends them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from executor.client.responses import ClusterView, LogDirView, PartitionResponse, PartitionView
from model.ids import BrokerId, PartitionId, TopicName


class OffsetKind(IntEnum):
    """Special timestamps of ListOffsets (KIP-405, KIP-1005)."""

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class ClusterReads(Protocol):
    """Calls on one cluster that change nothing. One thread owns it.

    Every call raises ClusterUnreachable or RightsMissing.
    """

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""

    def cluster(self) -> ClusterView:
        """The cluster id, the live brokers and their racks."""
        ...

    def controller_elections(self) -> int | None:
        """Controller elections so far (KIP-595); None where the cluster does not report them."""
        ...

    def features(self) -> frozenset[str]:
        """Names of the features the cluster supports (KIP-584)."""
        ...

    def topics(self) -> dict[TopicName, int]:
        """Partition count of each topic, Kafka's internal topics included."""
        ...

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, PartitionView]:
        """Current placement of these partitions, or of all; missing partitions are absent."""
        ...

    def reassignments(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        """The target replica list of each reassignment in progress (KIP-455)."""
        ...

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        """One broker's log directories with the sizes of these partitions (KIP-113).

        Empty where the right to describe them is missing.
        """
        ...

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        """Offsets of one kind from the leader of these partitions.

        Partitions without an answer are absent, all of them where brokers have no such offset.
        LATEST_TIERED (KIP-1005) is -1 while nothing is in the tier.
        """
        ...

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        """Effective settings of one broker; settings it does not have are absent."""
        ...

    def topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        """Effective settings by topic."""
        ...

    def own_broker_configs(self, broker: BrokerId | None, keys: Sequence[str]) -> dict[str, str]:
        """Settings overridden on the broker itself; others are absent.

        None stands for the cluster-wide default of all brokers.
        """
        ...

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str], broker: BrokerId | None = None
    ) -> dict[TopicName, dict[str, str]]:
        """Settings overridden on the topics themselves; others are absent.

        As `broker` knows them, which may lag behind the controller; None stands for any broker.
        """
        ...


class ClusterAdmin(ClusterReads, Protocol):
    """Calls on one cluster, those included that change it; `CHANGING_CALLS` names them.

    Calls that change settings also raise ExecutionStopped where the cluster refuses.
    """

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId] | None], *, resizes: bool = False
    ) -> dict[PartitionId, PartitionResponse]:
        """Request replica lists, or cancel with None (KIP-455).

        resizes: whether the lists may change the replication factor (KIP-860). Returns one
        response per partition, UNKNOWN where none came.
        """
        ...

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """Request preferred leader elections (KIP-460); only metadata show the result."""

    def alter_log_dirs(
        self, broker: BrokerId, targets: Mapping[PartitionId, str]
    ) -> dict[PartitionId, PartitionResponse]:
        """Request log directories for one broker's replicas (KIP-113).

        A replica that does not exist yet is created there, unless the broker restarts
        first. Returns one response per partition, UNKNOWN where none came.
        """
        ...

    def alter_broker_configs(
        self, broker: BrokerId | None, values: Mapping[str, str | None]
    ) -> None:
        """Set a broker's own settings, or the cluster-wide default; None deletes the override."""

    def alter_topic_configs(self, topic: TopicName, values: Mapping[str, str | None]) -> None:
        """Set a topic's settings; None deletes the override."""

    def append_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        """Append entries to list settings."""

    def subtract_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        """Remove entries from list settings; others stay."""


def local_bytes(
    admin: ClusterReads, broker: BrokerId, ids: Collection[PartitionId]
) -> dict[PartitionId, int]:
    """Bytes of each partition in one broker's log directories; absent without a replica."""
    return {
        pid: size
        for directory in admin.log_dirs(broker, ids)
        for pid, size in directory.sizes.items()
    }


def reassign_in_batches(
    admin: ClusterAdmin,
    targets: Mapping[PartitionId, Sequence[BrokerId] | None],
    *,
    resizes: bool = False,
) -> dict[PartitionId, PartitionResponse]:
    """Reassign, in halves where POLICY_VIOLATION answers for all partitions.

    So a controller refuses a request of too many records
    (`QuorumController.MAX_RECORDS_PER_USER_OP`), and a configured policy may refuse
    one, too. A partition that is refused alone is reported as refused. resizes: as in
    `ClusterAdmin.reassign`.
    """
    answers = admin.reassign(targets, resizes=resizes)
    if len(targets) < 2 or not all(answer.by_policy for answer in answers.values()):
        return answers
    pairs = sorted(targets.items())
    half = len(pairs) // 2
    first = reassign_in_batches(admin, dict(pairs[:half]), resizes=resizes)
    return first | reassign_in_batches(admin, dict(pairs[half:]), resizes=resizes)

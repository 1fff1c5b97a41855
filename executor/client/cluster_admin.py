"""What the executor asks of a cluster; `kafka_admin` asks a real one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from executor.client.responses import (
    ClusterView,
    LogDirView,
    OngoingReassignment,
    PartitionResponse,
    PartitionView,
)
from model.ids import BrokerId, PartitionId, TopicName


class OffsetKind(IntEnum):
    """What ListOffsets is asked for in place of a time (KIP-405, KIP-1005)."""

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class ClusterAdmin(Protocol):
    """Calls on one cluster. One thread owns it.

    Every call raises ClusterUnreachable or RightsMissing; those that change settings
    also ExecutionStopped where the cluster refuses.
    """

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""

    def cluster(self) -> ClusterView:
        """The cluster's id and the brokers that serve."""
        ...

    def controller_elections(self) -> int | None:
        """How often a controller was elected (KIP-595); None where nobody tells."""
        ...

    def features(self) -> frozenset[str]:
        """Names of the features the cluster supports (KIP-584)."""
        ...

    def topics(self) -> dict[TopicName, int]:
        """All topics, Kafka's own among them, and how many partitions each has."""
        ...

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, PartitionView]:
        """Placement now, of all where none are named; what does not exist is absent."""
        ...

    def reassignments(self) -> dict[PartitionId, OngoingReassignment]:
        """All reassignments under way in the cluster."""
        ...

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId] | None]
    ) -> dict[PartitionId, PartitionResponse]:
        """Ask for replica lists, or with None to cancel (KIP-455).

        One answer per partition, unknown where none came."""
        ...

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """Ask for preferred leaders; whether they lead shows in the metadata only."""

    def log_dirs(
        self, broker: BrokerId, ids: Collection[PartitionId]
    ) -> tuple[LogDirView, ...]:
        """One broker's log directories, with the replicas of these partitions.

        Empty where the right to ask is missing: the broker does not say.
        """
        ...

    def alter_log_dirs(
        self, broker: BrokerId, targets: Mapping[PartitionId, str]
    ) -> dict[PartitionId, PartitionResponse]:
        """Ask one broker to keep its replicas in these log directories (KIP-113).

        A replica that it has not yet is made there, unless the broker is restarted
        before. One answer per partition, unknown where none came.
        """
        ...

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        """Offsets of one kind from the leader of these partitions.

        Absent where the broker has no answer; -1 for LATEST_TIERED where nothing is
        in the tier yet.
        """
        ...

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        """Settings in force on one broker; those it does not have are absent."""
        ...

    def topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        """Settings in force for topics."""
        ...

    def own_broker_configs(
        self, broker: BrokerId, keys: Sequence[str]
    ) -> dict[str, str]:
        """Settings of one broker itself; those that are only in force are absent."""
        ...

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        """Settings of topics themselves; those that are only in force are absent."""
        ...

    def alter_broker_configs(
        self, broker: BrokerId, values: Mapping[str, str | None]
    ) -> None:
        """Set values of one broker; None takes a setting away."""

    def default_broker_configs(self, keys: Sequence[str]) -> dict[str, str]:
        """Settings of all brokers together; those not set there are absent."""
        ...

    def alter_default_broker_configs(self, values: Mapping[str, str | None]) -> None:
        """Set values of all brokers together; None takes a setting away."""

    def alter_topic_configs(
        self, topic: TopicName, values: Mapping[str, str | None]
    ) -> None:
        """Set values of one topic; None takes a setting away."""

    def append_topic_configs(
        self, topic: TopicName, lists: Mapping[str, Sequence[str]]
    ) -> None:
        """Add entries to settings that are lists."""

    def subtract_topic_configs(
        self, topic: TopicName, lists: Mapping[str, Sequence[str]]
    ) -> None:
        """Take entries out of settings that are lists; others stay."""

    def delete_topic_configs(self, topic: TopicName, keys: Sequence[str]) -> None:
        """Take settings of a topic away, so that the defaults are in force."""


def local_bytes(
    admin: ClusterAdmin, broker: BrokerId, ids: Collection[PartitionId]
) -> dict[PartitionId, int]:
    """Bytes in one broker's log directories; absent where it has no replica."""
    return {
        pid: size
        for directory in admin.log_dirs(broker, ids)
        for pid, size in directory.sizes.items()
    }


def reassign_in_batches(
    admin: ClusterAdmin, targets: Mapping[PartitionId, Sequence[BrokerId] | None]
) -> dict[PartitionId, PartitionResponse]:
    """Reassign, in halves where POLICY_VIOLATION answers for all partitions.

    So a controller refuses a request of too many records
    (`QuorumController.MAX_RECORDS_PER_USER_OP`), and a configured policy may refuse
    one, too. A partition that is refused alone is reported as refused.
    """
    answers = admin.reassign(targets)
    if len(targets) < 2 or not all(answer.by_policy for answer in answers.values()):
        return answers
    pairs = sorted(targets.items())
    half = len(pairs) // 2
    first = reassign_in_batches(admin, dict(pairs[:half]))
    return first | reassign_in_batches(admin, dict(pairs[half:]))

"""The calls on a cluster, made under a lease."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from executor.client.cluster_admin import Admin, OffsetKind
from executor.client.responses import (
    Answer,
    ClusterView,
    LogDirView,
    PartitionView,
    Reassignment,
)
from executor.journal.lease import Lease
from model.ids import BrokerId, PartitionId, TopicName


class LeasedAdmin:
    """An `Admin` that changes nothing unless the lease outlives the call.

    Changes raise WriterBarred otherwise. Questions need no lease; while they are asked
    it is kept, so that it lasts as long as its holder lives.
    """

    def __init__(self, admin: Admin, lease: Lease) -> None:
        self._admin = admin
        self._lease = lease

    @property
    def _asked(self) -> Admin:
        self._lease.keep()
        return self._admin

    @property
    def _changed(self) -> Admin:
        self._lease.need()
        return self._admin

    def close(self) -> None:
        """Drop the connection."""
        self._admin.close()

    def cluster(self) -> ClusterView:
        """As `Admin`."""
        return self._asked.cluster()

    def controller_elections(self) -> int | None:
        """As `Admin`."""
        return self._asked.controller_elections()

    def features(self) -> frozenset[str]:
        """As `Admin`."""
        return self._asked.features()

    def topics(self) -> dict[TopicName, int]:
        """As `Admin`."""
        return self._asked.topics()

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, PartitionView]:
        """As `Admin`."""
        return self._asked.partitions(ids)

    def reassignments(self) -> dict[PartitionId, Reassignment]:
        """As `Admin`."""
        return self._asked.reassignments()

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId] | None]
    ) -> dict[PartitionId, Answer]:
        """As `Admin`, under the lease."""
        return self._changed.reassign(targets)

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """As `Admin`, under the lease."""
        self._changed.elect_preferred(ids)

    def log_dirs(
        self, broker: BrokerId, ids: Collection[PartitionId]
    ) -> tuple[LogDirView, ...]:
        """As `Admin`."""
        return self._asked.log_dirs(broker, ids)

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        """As `Admin`."""
        return self._asked.offsets(leader, ids, kind)

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        """As `Admin`."""
        return self._asked.broker_configs(broker, keys)

    def topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        """As `Admin`."""
        return self._asked.topic_configs(topics, keys)

    def own_broker_configs(
        self, broker: BrokerId, keys: Sequence[str]
    ) -> dict[str, str]:
        """As `Admin`."""
        return self._asked.own_broker_configs(broker, keys)

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        """As `Admin`."""
        return self._asked.own_topic_configs(topics, keys)

    def alter_log_dirs(
        self, broker: BrokerId, targets: Mapping[PartitionId, str]
    ) -> dict[PartitionId, Answer]:
        """As `Admin`, under the lease."""
        return self._changed.alter_log_dirs(broker, targets)

    def default_broker_configs(self, keys: Sequence[str]) -> dict[str, str]:
        """As `Admin`."""
        return self._asked.default_broker_configs(keys)

    def alter_default_broker_configs(self, values: Mapping[str, str | None]) -> None:
        """As `Admin`, under the lease."""
        self._changed.alter_default_broker_configs(values)

    def alter_broker_configs(
        self, broker: BrokerId, values: Mapping[str, str | None]
    ) -> None:
        """As `Admin`, under the lease."""
        self._changed.alter_broker_configs(broker, values)

    def alter_topic_configs(
        self, topic: TopicName, values: Mapping[str, str | None]
    ) -> None:
        """As `Admin`, under the lease."""
        self._changed.alter_topic_configs(topic, values)

    def append_topic_configs(
        self, topic: TopicName, lists: Mapping[str, Sequence[str]]
    ) -> None:
        """As `Admin`, under the lease."""
        self._changed.append_topic_configs(topic, lists)

    def subtract_topic_configs(
        self, topic: TopicName, lists: Mapping[str, Sequence[str]]
    ) -> None:
        """As `Admin`, under the lease."""
        self._changed.subtract_topic_configs(topic, lists)

    def delete_topic_configs(self, topic: TopicName, keys: Sequence[str]) -> None:
        """As `Admin`, under the lease."""
        self._changed.delete_topic_configs(topic, keys)

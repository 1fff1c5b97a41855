"""A cluster's calls without those that change it, for dry runs and for whatever only observes."""

from collections.abc import Collection, Sequence

from executor.client.cluster_admin import ClusterReads, OffsetKind
from executor.client.responses import ClusterView, LogDirView, PartitionView
from model.ids import BrokerId, PartitionId, TopicName


class ReadOnlyAdmin:
    """The reads of another client, as `ClusterReads` documents them; it has no other calls.

    The type has none for a type checker, and the object has none at run time.
    """

    __slots__ = ("_admin",)

    def __init__(self, admin: ClusterReads) -> None:
        self._admin = admin

    def close(self) -> None:
        self._admin.close()

    def cluster(self) -> ClusterView:
        return self._admin.cluster()

    def controller_elections(self) -> int | None:
        return self._admin.controller_elections()

    def features(self) -> frozenset[str]:
        return self._admin.features()

    def topics(self) -> dict[TopicName, int]:
        return self._admin.topics()

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, PartitionView]:
        return self._admin.partitions(ids)

    def reassignments(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        return self._admin.reassignments()

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        return self._admin.log_dirs(broker, ids)

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        return self._admin.offsets(leader, ids, kind)

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        return self._admin.broker_configs(broker, keys)

    def topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        return self._admin.topic_configs(topics, keys)

    def own_broker_configs(self, broker: BrokerId | None, keys: Sequence[str]) -> dict[str, str]:
        return self._admin.own_broker_configs(broker, keys)

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str], broker: BrokerId | None = None
    ) -> dict[TopicName, dict[str, str]]:
        return self._admin.own_topic_configs(topics, keys, broker)

"""Detect a cluster's platform, and the storage kind of its topics."""

from collections.abc import Collection, Mapping
from typing import Final

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.platforms.automq import AutoMQ, AutoMQReads
from executor.platforms.automq_wal import AutoMQWal
from executor.platforms.platform import Platform, PlatformReads
from executor.platforms.remote_tier import RemoteTier
from executor.platforms.stock_kafka import ReplicatedKafka, ReplicatedReads, TieredKafka
from executor.timing import RunLimits, Timing
from model.ids import TopicName
from model.snapshot.snapshot import StorageKind

_AUTOMQ_FEATURE: Final = "automq.version"
_AUTOMQ_CONFIG: Final = "elasticstream.enable"
_TIER: Final = "remote.storage.enable"


def storage_kinds(
    admin: ClusterReads, topics: Collection[TopicName]
) -> dict[TopicName, StorageKind]:
    """Return the storage kind of each topic; topics that do not exist are absent."""
    if is_automq(admin):
        return dict.fromkeys(topics, StorageKind.SHARED)
    configs = admin.topic_configs(sorted(topics), [_TIER])
    return {
        topic: StorageKind.TIERED if values.get(_TIER) == "true" else StorageKind.REPLICATED
        for topic, values in configs.items()
    }


def is_automq(admin: ClusterReads) -> bool:
    """Whether the cluster is AutoMQ, by its feature flag, or in 1.0.0 by a broker setting."""
    if _AUTOMQ_FEATURE in admin.features():
        return True
    broker = admin.cluster().any_alive
    return admin.broker_configs(broker, [_AUTOMQ_CONFIG]).get(_AUTOMQ_CONFIG) == "true"


def platforms(
    admin: ClusterAdmin,
    *,
    timing: Timing,
    limits: RunLimits,
    tier: RemoteTier | None,
    wal: AutoMQWal | None,
) -> Mapping[StorageKind, Platform]:
    """Return the platform for each storage kind."""
    return {
        StorageKind.REPLICATED: ReplicatedKafka(admin),
        StorageKind.TIERED: TieredKafka(
            admin,
            timing=timing,
            wait_s=limits.tier_wait_s,
            tier=tier,
            lowers_segments=limits.lower_segments,
        ),
        StorageKind.SHARED: AutoMQ(admin, timing, suspend=limits.suspend_balancer, wal=wal),
    }


def platform_reads(
    reads: ClusterReads, *, timing: Timing, limits: RunLimits
) -> Mapping[StorageKind, PlatformReads]:
    """Return what may be asked of the platform for each storage kind without changing anything."""
    stock = ReplicatedReads(reads)
    return {
        StorageKind.REPLICATED: stock,
        StorageKind.TIERED: stock,
        StorageKind.SHARED: AutoMQReads(reads, timing, suspend=limits.suspend_balancer),
    }

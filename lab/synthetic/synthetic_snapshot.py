"""Seeded clusters as columns, up to 215 brokers and 930,000 partitions.

Partitions are placed round robin from a random broker, one replica per rack. Capacities
give a mean utilisation of 35 %.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from lab.synthetic.initial_placement import place
from lab.synthetic.shape import ClusterShape
from lab.synthetic.zipf_loads import mean_loads, partition_counts
from model.ids import BrokerId, TopicName
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    Floats,
    Partitions,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
)

UTILISATION: Final = 0.35
IN_TIER: Final = 20
"""Bytes of a tiered log per local byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterName:
    """Id of a cluster, and the time of its snapshot, ms since the epoch."""

    cluster_id: str
    taken_at_ms: int


def cluster(
    shape: ClusterShape, storage: StorageKind, name: ClusterName, rng: np.random.Generator
) -> Snapshot:
    """Generate a cluster of this shape with mean loads; deterministic per `rng`."""
    counts = partition_counts(shape)
    topic = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    partition = np.arange(len(topic)) - first[topic]
    loads = mean_loads(shape, rng, topic, counts)
    replicas = place(shape, rng, topic, partition, loads[:, :2])
    resources = resources_of(storage)
    kept = np.ascontiguousarray(loads[:, : len(resources)])
    local = loads[:, 2].astype(np.int64)
    tiered = storage is StorageKind.TIERED
    header = SnapshotHeader(
        cluster_id=name.cluster_id,
        taken_at_ms=name.taken_at_ms,
        brokers=_brokers(shape, rng, kept, resources),
        topics=_topics(storage, len(counts)),
        resources=resources,
    )
    partitions = Partitions(
        topic=topic,
        partition=partition,
        replica_start=np.arange(len(topic) + 1) * shape.rf,
        replica_broker=replicas.ravel(),
        leader=replicas[:, 0].copy(),
        loads=kept,
        measured=np.ones(kept.shape, np.bool_),
        size_bytes=IN_TIER * local if tiered else local,
        local_bytes=np.zeros_like(local) if _is_shared(storage) else local,
    )
    return Snapshot(header, partitions)


def topic_name(topic: int) -> TopicName:
    """Name of the topic at this position; names sort like positions."""
    return TopicName(f"topic-{topic:06d}")


def resources_of(storage: StorageKind) -> tuple[Resource, ...]:
    """Resources of the brokers; with shared storage, disk is not one of them."""
    rates = (Resource.NET_IN, Resource.NET_OUT)
    return rates if _is_shared(storage) else (*rates, Resource.DISK)


def _is_shared(storage: StorageKind) -> bool:
    return storage is StorageKind.SHARED


def _brokers(
    shape: ClusterShape, rng: np.random.Generator, loads: Floats, resources: tuple[Resource, ...]
) -> tuple[Broker, ...]:
    """Brokers with capacities for a mean utilisation of `UTILISATION`."""
    factor = np.ones(shape.brokers)
    if shape.unequal:
        factor = rng.choice((1.0, 1.0, 1.5, 2.0), shape.brokers)
    total = loads.sum(axis=0) * shape.rf
    total[1] = loads[:, 1].sum() + (shape.rf - 1) * loads[:, 0].sum()
    unit = np.rint(total / UTILISATION / factor.sum())
    draining = BrokerState.DRAINING if shape.drain else BrokerState.ALIVE
    return tuple(
        Broker(
            id=BrokerId(b),
            rack=f"rack-{b % shape.racks}",
            state=draining if b == 0 else BrokerState.ALIVE,
            capacity={resource: float(factor[b] * unit[r]) for r, resource in enumerate(resources)},
        )
        for b in range(shape.brokers)
    )


def _topics(storage: StorageKind, topics: int) -> tuple[Topic, ...]:
    return tuple(
        Topic(name=topic_name(t), topic_id=f"id-{t:06d}", storage=storage) for t in range(topics)
    )

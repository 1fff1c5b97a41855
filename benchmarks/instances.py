"""Seeded clusters as columns, from 3 x 60 to 215 x 930,000 x 3 replicas.

Topics' rates fall by Zipf's law, so do the rates of the partitions of a topic; a
topic has partitions by the square root of its rate. Partitions are placed round robin
from a random broker, one replica a rack. A partition takes in at most a tenth of a
broker's level, a giant up to 0.6 of it. Consumers read a topic 0.5 to 3 times, disks
keep 6 to 72 hours. The mean utilisation is 35 %. A twentieth of the partitions moved a
minute ago and rest. Rates are whole bytes per second, so that the last bit of a power,
which differs between processors, does not show.
"""

import hashlib
import json
from dataclasses import replace
from typing import Final

import numpy as np

from benchmarks.placing import place
from benchmarks.shapes import Shape
from model.goals import Goal, Goals, ObjectiveKind
from model.ids import BrokerId, TopicName
from model.snapshot import (
    Broker,
    BrokerState,
    Floats,
    Ints,
    Partitions,
    RecentMove,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
)

TAKEN_AT_MS: Final = 1_700_000_000_000
LEVEL_NET_IN: Final = 40e6
"""Mean bytes per second into a broker."""
UTILISATION: Final = 0.35
LARGEST: Final = 0.1
"""Largest partition that is no giant, as a share of a broker's level of net_in."""
GIANT: Final = (0.1, 0.6)
"""Range of the giants, the same share."""
FAN_OUT: Final = (0.5, 1.0, 1.0, 1.5, 2.0, 3.0)
HOURS: Final = (6.0, 12.0, 24.0, 24.0, 48.0, 72.0)
FROZEN: Final = 0.05
HOT_TOPICS: Final = 0.03
HOT: Final = 3.0
IN_TIER: Final = 20
"""Bytes of a tiered log for each byte that is local."""


def build(shape: Shape, seed: int) -> Snapshot:
    """The instance of this shape and seed; the same bytes each time."""
    rng = np.random.default_rng([seed, shape.brokers, shape.partitions, shape.rf])
    counts = _partition_counts(shape)
    topic = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    partition = np.arange(len(topic)) - first[topic]
    net_in = _net_in(shape, rng, topic, counts)
    loads = _loads(rng, topic, len(counts), net_in)
    replicas = place(shape, rng, topic, partition, loads[:, :2])
    width = len(_resources(shape))
    partitions = _columns(shape, topic, partition, replicas, loads)
    header = SnapshotHeader(
        cluster_id=f"{shape.name}-{seed}",
        taken_at_ms=TAKEN_AT_MS,
        brokers=_brokers(shape, rng, loads[:, :width]),
        topics=_topics(shape, len(counts)),
        resources=_resources(shape),
        recent_moves=_recent_moves(rng, topic, partition),
    )
    return Snapshot(header, partitions)


def goals_of(shape: Shape) -> Goals:
    """Net in and out, and disk where it is copied; lambda by the number of brokers.

    Where brokers hold about 10,000 replicas each, half as many again are allowed.
    """
    replicas = shape.partitions * shape.rf / shape.brokers
    band = shape.band is not None
    return Goals(
        objective=ObjectiveKind.BAND if band else ObjectiveKind.VARIANCE,
        balance=tuple(
            Goal(resource=r, floor=0.0, tolerance=shape.band or 0.10)
            for r in _resources(shape)
        ),
        move_price=shape.move_price,
        replicas_per_broker=max(10_000, round(1.5 * replicas)),
    )


def small(shape: Shape) -> Shape:
    """A small shape of the same kind, to compile on before anything is measured."""
    brokers = min(shape.brokers, 12)
    return replace(
        shape, brokers=brokers, partitions=min(shape.partitions, 50 * brokers)
    )


def instance_digest(shape: Shape, snapshot: Snapshot) -> str:
    """Sixteen hex digits over all that F depends on: which instance a bound is of."""
    columns, header = snapshot.partitions, snapshot.header
    hashed = hashlib.sha256()
    for column in (
        columns.replica_broker,
        columns.leader,
        columns.loads,
        columns.size_bytes,
        columns.local_bytes,
    ):
        hashed.update(np.ascontiguousarray(column).tobytes())
    brokers = [
        [b.id, b.rack, b.state, sorted(b.capacity.items())] for b in header.brokers
    ]
    frozen = [[m.topic, m.partition] for m in header.recent_moves]
    priced = [shape.move_price, shape.band, _storage(shape)]
    hashed.update(json.dumps([brokers, frozen, priced]).encode())
    return hashed.hexdigest()[:16]


def _resources(shape: Shape) -> tuple[Resource, ...]:
    rates = (Resource.NET_IN, Resource.NET_OUT)
    return rates if shape.rf == 1 else (*rates, Resource.DISK)


def _partition_counts(shape: Shape) -> Ints:
    """(topics,) at least one each, by the square root of the topic's rate."""
    n = shape.partitions
    topics = min(n, max(2, round(n**0.75 / 2)))
    share = np.arange(1, topics + 1) ** (-shape.topic_skew / 2)
    wanted = 1 + (n - topics) * share / share.sum()
    counts: Ints = np.floor(wanted).astype(np.int64)
    rest = np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]
    counts[rest] += 1
    return counts


def _net_in(
    shape: Shape, rng: np.random.Generator, topic: Ints, counts: Ints
) -> Floats:
    """(n,) bytes per second that producers send."""
    rank = np.empty(len(topic), np.int64)
    drawn = np.lexsort((rng.random(len(topic)), topic))
    first = np.cumsum(counts) - counts
    rank[drawn] = np.arange(len(topic)) - first[topic]
    within = (rank + 1.0) ** -shape.partition_skew
    within /= np.bincount(topic, within)[topic]
    rate = np.arange(1, len(counts) + 1) ** -shape.topic_skew
    if shape.hot:
        chosen = rng.choice(len(counts), max(1, round(HOT_TOPICS * len(counts))), False)
        rate[chosen] *= HOT
    share = _giants(shape, rng, _capped(shape, rate[topic] * within))
    return np.maximum(1.0, np.rint(share * LEVEL_NET_IN))


def _capped(shape: Shape, weight: Floats) -> Floats:
    """(n,) weights as shares of a broker's level, none over `LARGEST`."""
    total = shape.brokers / shape.rf
    share = weight
    for _ in range(20):
        share = np.minimum(share * (total / share.sum()), LARGEST)
    return share


def _giants(shape: Shape, rng: np.random.Generator, share: Floats) -> Floats:
    """The shares with half as many giants as brokers, the others scaled down."""
    if not shape.giants:
        return share
    rows = rng.choice(len(share), shape.brokers // 2, replace=False)
    giants = rng.uniform(*GIANT, len(rows))
    others = share.copy()
    others[rows] = 0.0
    others *= (shape.brokers / shape.rf - giants.sum()) / others.sum()
    others[rows] = giants
    return others


def _loads(
    rng: np.random.Generator, topic: Ints, topics: int, net_in: Floats
) -> Floats:
    """(n, 3) of the leader: net_in, net_out to consumers, disk."""
    fan_out = rng.choice(FAN_OUT, topics)[topic]
    hours = rng.choice(HOURS, topics)[topic]
    return np.stack(
        [net_in, np.rint(net_in * fan_out), np.rint(net_in * hours * 3600)], axis=1
    )


def _columns(
    shape: Shape, topic: Ints, partition: Ints, replicas: Ints, loads: Floats
) -> Partitions:
    n = len(topic)
    kept = np.ascontiguousarray(loads[:, : len(_resources(shape))])
    local = loads[:, 2].astype(np.int64)
    tiered = _storage(shape) is StorageKind.TIERED
    return Partitions(
        topic=topic,
        partition=partition,
        replica_start=np.arange(n + 1) * shape.rf,
        replica_broker=replicas.ravel(),
        leader=replicas[:, 0].copy(),
        loads=kept,
        measured=np.ones(kept.shape, np.bool_),
        size_bytes=IN_TIER * local if tiered else local,
        local_bytes=np.zeros(n, np.int64) if shape.rf == 1 else local,
    )


def _brokers(
    shape: Shape, rng: np.random.Generator, loads: Floats
) -> tuple[Broker, ...]:
    """Capacities such that the mean utilisation is `UTILISATION`."""
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
            capacity={
                resource: float(factor[b] * unit[r])
                for r, resource in enumerate(_resources(shape))
            },
        )
        for b in range(shape.brokers)
    )


def _topics(shape: Shape, topics: int) -> tuple[Topic, ...]:
    return tuple(
        Topic(name=_topic_name(t), topic_id=f"id-{t:06d}", storage=_storage(shape))
        for t in range(topics)
    )


def _storage(shape: Shape) -> StorageKind:
    if shape.rf == 1:
        return StorageKind.SHARED
    return StorageKind.REPLICATED if shape.band is None else StorageKind.TIERED


def _topic_name(topic: int) -> TopicName:
    return TopicName(f"topic-{topic:06d}")


def _recent_moves(
    rng: np.random.Generator, topic: Ints, partition: Ints
) -> tuple[RecentMove, ...]:
    rows = np.sort(rng.choice(len(topic), round(FROZEN * len(topic)), replace=False))
    pairs = zip(topic[rows].tolist(), partition[rows].tolist(), strict=True)
    return tuple(
        RecentMove(
            topic=_topic_name(t), partition=p, left=(), at_ms=TAKEN_AT_MS - 60_000
        )
        for t, p in pairs
    )

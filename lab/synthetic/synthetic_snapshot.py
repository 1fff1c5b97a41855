"""Seeded clusters as columns, up to 215 brokers and 930,000 partitions.

The rates of topics, and of the partitions of a topic, follow Zipf's law; the number of partitions
of a topic follows the square root of its rate. Unless its shape says otherwise, a partition has at
most a tenth of the mean rate of a broker, a large one up to 0.6. Rates are whole bytes per second,
since the last bit of a power differs between processors.

Partitions are placed round robin from a random broker, one replica per rack. Capacities give a mean
utilisation of 35 %.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from lab.synthetic.shape import ClusterShape
from model.ids import BrokerId, TopicName
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    Floats,
    Ints,
    Partitions,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
)

MEAN_NET_IN: Final = 40e6
"""Mean bytes/s into a broker."""
GIANT: Final = (0.1, 0.6)
"""Range of the large partitions, as the same share."""
FAN_OUT: Final = (0.5, 1.0, 1.0, 1.5, 2.0, 3.0)
"""Numbers of times that consumers read a topic."""
HOURS: Final = (6.0, 12.0, 24.0, 24.0, 48.0, 72.0)
"""Retention times of a topic on disk, hours."""
HOT_TOPICS: Final = 0.03
HOT: Final = 3.0
YOUNG_HOLD: Final = 0.05
"""Replicas of a young broker as a share of those of an old one."""
SHAKEN: Final = 0.03
"""Share of the partitions of a nearly balanced cluster that are placed at random."""
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
    counts = _partition_counts(shape)
    topic = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    partition = np.arange(len(topic)) - first[topic]
    loads = _mean_loads(shape, rng, topic, counts)
    replicas = _place(shape, rng, topic, partition, loads[:, :2])
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
        leader=np.where(replicas[:, 0] == 0, replicas[:, 1], replicas[:, 0])
        if shape.dead
        else replicas[:, 0].copy(),
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
    if shape.two_sizes:
        factor[1::2] *= 2.0
    total = loads.sum(axis=0) * shape.rf
    total[1] = loads[:, 1].sum() + (shape.rf - 1) * loads[:, 0].sum()
    unit = np.rint(total / UTILISATION / factor.sum())
    first = BrokerState.ALIVE
    if shape.drain or shape.dead:
        first = BrokerState.DRAINING if shape.drain else BrokerState.DEAD
    return tuple(
        Broker(
            id=BrokerId(b),
            rack=f"rack-{b % shape.racks}",
            state=first if b == 0 else BrokerState.ALIVE,
            capacity={resource: float(factor[b] * unit[r]) for r, resource in enumerate(resources)},
        )
        for b in range(shape.brokers)
    )


def _topics(storage: StorageKind, topics: int) -> tuple[Topic, ...]:
    return tuple(
        Topic(name=topic_name(t), topic_id=f"id-{t:06d}", storage=storage) for t in range(topics)
    )


# ---- loads


def _partition_counts(shape: ClusterShape) -> Ints:
    """(topics,) partitions of each topic, at least 1."""
    n = shape.partitions
    topics = min(n, max(2, round(n**0.75 / 2)))
    share = np.arange(1, topics + 1) ** (-shape.topic_skew / 2)
    wanted = 1 + (n - topics) * share / share.sum()
    counts: Ints = np.floor(wanted).astype(np.int64)
    rest = np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]
    counts[rest] += 1
    return counts


def _mean_loads(shape: ClusterShape, rng: np.random.Generator, topic: Ints, counts: Ints) -> Floats:
    """(n, 3) loads of the leader: net_in, net_out to consumers, disk; bytes/s, bytes.

    topic: (n,) topic of each partition; counts: (topics,) partitions of each.
    """
    net_in = _net_in(shape, rng, topic, counts)
    fan_out = rng.choice(FAN_OUT, len(counts))[topic]
    hours = rng.choice(HOURS, len(counts))[topic]
    return np.stack([net_in, np.rint(net_in * fan_out), np.rint(net_in * hours * 3600)], axis=1)


def _net_in(shape: ClusterShape, rng: np.random.Generator, topic: Ints, counts: Ints) -> Floats:
    """(n,) bytes/s from producers."""
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
    return np.maximum(1.0, np.rint(share * MEAN_NET_IN))


def _capped(shape: ClusterShape, weight: Floats) -> Floats:
    """(n,) weights as shares of a broker's mean, none above the shape's largest."""
    total = shape.brokers / shape.rf
    share = weight
    for _ in range(20):
        share = np.minimum(share * (total / share.sum()), shape.largest)
    return share


def _giants(shape: ClusterShape, rng: np.random.Generator, share: Floats) -> Floats:
    """Replace some shares by large ones, half as many as brokers; scale the others."""
    if not shape.large_partitions:
        return share
    rows = rng.choice(len(share), shape.brokers // 2, replace=False)
    giants = rng.uniform(*GIANT, len(rows))
    others = share.copy()
    others[rows] = 0.0
    others *= (shape.brokers / shape.rf - giants.sum()) / others.sum()
    others[rows] = giants
    return others


# ---- placement


def _place(
    shape: ClusterShape, rng: np.random.Generator, topic: Ints, partition: Ints, rates: Floats
) -> Ints:
    """(n, rf) brokers of the replicas, preferred leader first.

    topic, partition: (n,) per partition; rates: (n, 2) net in and out, bytes/s.
    """
    if shape.nearly_balanced:
        return _largest_first(shape, rng, rates)
    racks = _racks(shape, old=True)
    topics = int(topic[-1]) + 1
    start = rng.integers(0, shape.brokers, (topics, shape.rf))
    lead_rack = start[topic, 0] + partition
    slots = []
    for slot in range(shape.rf):
        rack = (lead_rack + slot) % shape.racks
        turn = start[topic, slot] // shape.racks + partition // shape.racks
        slots.append(_nth(racks, rack, turn))
    placed = np.stack(slots, axis=1)
    return _to_young(shape, rng, placed) if shape.young else placed


def _racks(shape: ClusterShape, *, old: bool) -> list[Ints]:
    """Old or young brokers by rack."""
    young = shape.young_brokers
    brokers = np.arange(shape.brokers)
    brokers = brokers[:-young] if old and young else brokers
    brokers = brokers if old else brokers[shape.brokers - young :]
    return [brokers[brokers % shape.racks == r] for r in range(shape.racks)]


def _nth(racks: list[Ints], rack: Ints, turn: Ints) -> Ints:
    """The broker of each rack of an array whose turn it is; 0 where a rack has none."""
    length = np.array([max(1, len(r)) for r in racks])
    table = np.zeros((len(racks), length.max()), np.int64)
    for row, brokers in zip(table, racks, strict=True):
        row[: len(brokers)] = brokers
    chosen: Ints = table[rack, turn % length[rack]]
    return chosen


def _to_young(shape: ClusterShape, rng: np.random.Generator, placed: Ints) -> Ints:
    """Move some replicas to the young brokers of their rack."""
    old, young = _racks(shape, old=True), _racks(shape, old=False)
    share = np.array(
        [
            YOUNG_HOLD * len(y) / (len(o) + YOUNG_HOLD * len(y))
            for o, y in zip(old, young, strict=True)
        ]
    )
    rack = placed % shape.racks
    handed = rng.random(placed.shape) < share[rack]
    turn = rng.integers(0, shape.brokers, placed.shape)
    return np.where(handed, _nth(young, rack, turn), placed)


def _largest_first(shape: ClusterShape, rng: np.random.Generator, rates: Floats) -> Ints:
    """Place the largest first on the least loaded broker, then some at random in their racks."""
    share = rates / rates.sum(axis=0)
    # Followers serve no consumers.
    shares = share.sum(axis=1), *[share[:, 0]] * (shape.rf - 1)
    rack = np.arange(shape.brokers) % shape.racks
    load = np.zeros(shape.brokers)
    placed = np.empty((len(rates), shape.rf), np.int64)
    for row in np.argsort(-shares[0], kind="stable").tolist():
        free = np.ones(shape.brokers, np.bool_)
        for slot in range(shape.rf):
            broker = int(np.where(free, load, np.inf).argmin())
            load[broker] += shares[slot][row]
            free &= rack != rack[broker]
            placed[row, slot] = broker
    shaken = rng.choice(len(rates), round(SHAKEN * len(rates)), replace=False)
    racks = [np.flatnonzero(rack == r) for r in range(shape.racks)]
    turn = rng.integers(0, shape.brokers, (len(shaken), shape.rf))
    placed[shaken] = _nth(racks, rack[placed[shaken]], turn)
    return placed

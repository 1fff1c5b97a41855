"""Loads of the partitions of a synthetic cluster, by Zipf's law.

The rates of topics, and of the partitions of a topic, follow Zipf's law; the number of
partitions of a topic follows the square root of its rate. A partition has at most a
tenth of the mean rate of a broker, a large one up to 0.6. Rates are whole bytes per
second, since the last bit of a power differs between processors.
"""

from typing import Final

import numpy as np

from lab.synthetic.shape import ClusterShape
from model.snapshot.snapshot import Floats, Ints

MEAN_NET_IN: Final = 40e6
"""Mean bytes/s into a broker."""
LARGEST: Final = 0.1
"""Largest ordinary partition, as a share of the mean net_in of a broker."""
GIANT: Final = (0.1, 0.6)
"""Range of the large partitions, as the same share."""
FAN_OUT: Final = (0.5, 1.0, 1.0, 1.5, 2.0, 3.0)
"""Numbers of times that consumers read a topic."""
HOURS: Final = (6.0, 12.0, 24.0, 24.0, 48.0, 72.0)
"""Retention times of a topic on disk, hours."""
HOT_TOPICS: Final = 0.03
HOT: Final = 3.0


def partition_counts(shape: ClusterShape) -> Ints:
    """(topics,) partitions of each topic, at least 1."""
    n = shape.partitions
    topics = min(n, max(2, round(n**0.75 / 2)))
    share = np.arange(1, topics + 1) ** (-shape.topic_skew / 2)
    wanted = 1 + (n - topics) * share / share.sum()
    counts: Ints = np.floor(wanted).astype(np.int64)
    rest = np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]
    counts[rest] += 1
    return counts


def mean_loads(shape: ClusterShape, rng: np.random.Generator, topic: Ints, counts: Ints) -> Floats:
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
    """(n,) weights as shares of a broker's mean, none above `LARGEST`."""
    total = shape.brokers / shape.rf
    share = weight
    for _ in range(20):
        share = np.minimum(share * (total / share.sum()), LARGEST)
    return share


def _giants(shape: ClusterShape, rng: np.random.Generator, share: Floats) -> Floats:
    """Replace some shares by large ones, half as many as brokers; scale the others."""
    if not shape.giants:
        return share
    rows = rng.choice(len(share), shape.brokers // 2, replace=False)
    giants = rng.uniform(*GIANT, len(rows))
    others = share.copy()
    others[rows] = 0.0
    others *= (shape.brokers / shape.rf - giants.sum()) / others.sum()
    others[rows] = giants
    return others

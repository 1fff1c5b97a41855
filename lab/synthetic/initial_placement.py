"""Initial placement of the replicas of a synthetic cluster."""

from typing import Final

import numpy as np

from lab.synthetic.shape import ClusterShape
from model.snapshot.snapshot import Floats, Ints

YOUNG_HOLD: Final = 0.05
"""Replicas of a young broker as a share of those of an old one."""
SHAKEN: Final = 0.03
"""Share of the partitions of a nearly balanced cluster that are placed at random."""


def place(
    shape: ClusterShape, rng: np.random.Generator, topic: Ints, partition: Ints, rates: Floats
) -> Ints:
    """(n, rf) brokers of the replicas, preferred leader first.

    topic, partition: (n,) per partition; rates: (n, 2) net in and out, bytes/s.
    """
    if shape.near_level:
        return _largest_first(shape, rng, rates)[:, None]
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
    """Place the largest first on the least loaded broker, then some at random."""
    share = (rates / rates.sum(axis=0)).sum(axis=1)
    load = np.zeros(shape.brokers)
    placed = np.empty(len(rates), np.int64)
    for row in np.argsort(-share, kind="stable").tolist():
        broker = int(load.argmin())
        load[broker] += share[row]
        placed[row] = broker
    shaken = rng.choice(len(rates), round(SHAKEN * len(rates)), replace=False)
    placed[shaken] = rng.integers(0, shape.brokers, len(shaken))
    return placed

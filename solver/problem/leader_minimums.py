"""Minimum leaders per broker: what the goals ask for, by position."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.goals.goals import Goals
from model.ids import TopicName
from model.snapshot.snapshot import Bools, Ints, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMinimum:
    """One topic, and the brokers that must lead some of its rows."""

    topic: TopicName
    rows: Ints
    """(m,) the topic's rows, ascending."""
    brokers: tuple[int, ...]
    """Positions of the brokers, ascending."""
    leaders: int
    """Rows that each of the brokers must lead at least."""


def find_minimums(snapshot: Snapshot, goals: Goals, alive: Bools) -> tuple[LeaderMinimum, ...]:
    """List the minimums of all topics; empty where the goals set none.

    `alive` is (B,): brokers that may take load. Of several entries that match a topic, the first
    counts.
    """
    return tuple(_minimums(snapshot, goals, alive))


def _minimums(snapshot: Snapshot, goals: Goals, alive: Bools) -> Iterator[LeaderMinimum]:
    if not goals.min_leaders:
        return
    header = snapshot.header
    for at, topic in enumerate(header.topics):
        rule = next((m for m in goals.min_leaders if m.topics.match(topic.name)), None)
        if rule is None:
            continue
        brokers = tuple(
            b
            for b in np.flatnonzero(alive).tolist()
            if not rule.brokers or header.brokers[b].id in rule.brokers
        )
        rows = np.flatnonzero(snapshot.partitions.topic == at)
        if brokers and len(rows):
            yield LeaderMinimum(topic=topic.name, rows=rows, brokers=brokers, leaders=rule.leaders)


def has_minimums(leader: Ints, minimums: tuple[LeaderMinimum, ...]) -> bool:
    """Return whether (n,) leading brokers give every broker its minimum of leaders."""
    return all(
        int(np.count_nonzero(leader[m.rows] == b)) >= m.leaders for m in minimums for b in m.brokers
    )

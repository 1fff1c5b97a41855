"""Partitions in cooldown after a move, which are not moved again meanwhile."""

from collections import Counter
from collections.abc import Iterator

from model.goals.goals import Goals
from model.snapshot.snapshot import RecentMove, Snapshot


def cooldown_counts(snapshot: Snapshot, goals: Goals, now_ms: int) -> Counter[str]:
    """The number of partitions of each topic in cooldown now."""
    found = {(m.topic, m.partition) for m, _ in cooldowns(snapshot, goals, now_ms)}
    return Counter(topic for topic, _ in found)


def cooldowns(snapshot: Snapshot, goals: Goals, now_ms: int) -> Iterator[tuple[RecentMove, int]]:
    """Recent moves whose partition is in cooldown, and when it ends (ms)."""
    storage = {t.name: t.storage for t in snapshot.header.topics}
    for move in snapshot.header.recent_moves:
        if move.topic not in storage:
            continue
        rest_s = goals.rest_of(storage[move.topic]).rest_s
        until_ms = move.at_ms + int(1000 * rest_s)
        if until_ms > now_ms:
            yield move, until_ms

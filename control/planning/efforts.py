"""Goals of a plan at an effort: `quick` changes leaders only, and says what that leaves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from control.planning.staging import staged
from model.goals.effort import Effort
from model.goals.goals import Goals, Stay, without_replica_moves
from model.ids import PartitionId
from model.snapshot.snapshot import LEAVING, Snapshot
from model.units import count_text, listed

MOST_NAMED: Final = 5
"""Brokers that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortGoals:
    """The goals of one effort, and sentences on what it leaves."""

    goals: Goals
    notes: tuple[str, ...] = ()


def goals_at(snapshot: Snapshot, goals: Goals, effort: Effort) -> EffortGoals:
    """The goals of a plan at an effort.

    `good` and `best` have the given ones; they differ by the search budget (`limits_at`).
    `quick` has no budget for new replicas, and defers partitions that a rule forces to move:
    otherwise there would be no plan at all.
    """
    if effort is not Effort.QUICK:
        return EffortGoals(goals=goals)
    quick, left = staged(snapshot, without_replica_moves(goals))
    deferred = quick.deferred[len(goals.deferred) :] if left else ()
    return EffortGoals(goals=quick, notes=tuple(_left(snapshot, deferred, left)))


def _left(snapshot: Snapshot, deferred: Sequence[Stay], count: int) -> Iterator[str]:
    replicas = np.diff(snapshot.partitions.replica_start)
    if len(replicas) and int(replicas.max()) < 2:
        yield (
            "no partition has a second replica that could lead, and quick only changes leaders; "
            "--effort good moves replicas"
        )
    if not count:
        return
    ids = (PartitionId(stay.topic, n) for stay in deferred for n in stay.partitions)
    rows = (snapshot.find(partition) for partition in ids)
    held = {b for row in rows if row is not None for b in snapshot.replicas(row)}
    leaving = [b for b in snapshot.header.brokers if b.id in held and b.state in LEAVING]
    named = [f"broker {b.id} ({b.state})" for b in leaving]
    why = f"leave {listed(named, MOST_NAMED)}" if named else "be moved by a rule"
    yield (
        f"{count_text(count, 'partition')} that would have to {why} "
        f"{'stays' if count == 1 else 'stay'}, since quick copies nothing; --effort good moves "
        f"{'it' if count == 1 else 'them'}"
    )

"""Placement rules that no replica list can follow, in words."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from model.goals.rack_placement import ReplicaPlacement
from model.units import count_text
from solver.infeasible.assumptions import Barriers
from solver.infeasible.messages import (
    MOST_NAMED,
    no_such_rack,
    placement_text,
)
from solver.problem.co_location import RackMode
from solver.problem.problem import Problem


def placement_misfits(problem: Problem) -> Iterator[str]:
    """Rules that leave partitions that must move no place, whatever else is allowed.

    Their counts do not sum to the replication factor, or no broker is in a rack.
    """
    found: dict[int, list[str]] = defaultdict(list)
    barriers = Barriers(problem)
    for row in _rows(problem):
        number = barriers.placements_of(row)[0].at
        placement = problem.goals.placements[number].placement
        for words in _misfits(problem, row, placement):
            if words not in found[number]:
                found[number].append(words)
    for number, faults in sorted(found.items()):
        if faults:
            yield "; ".join([placement_text(problem, number), *_first(faults)])


def _rows(problem: Problem) -> list[int]:
    """A row that an explicit placement binds and that must move, of each kind."""
    spreading, topic = problem.may.spreading, problem.snapshot.partitions.topic
    exact = spreading.mode[spreading.group] == RackMode.EXACT
    rows = np.flatnonzero((problem.may.forced > 0) & exact)
    kinds = np.column_stack([topic[rows], problem.rf[rows]])
    _, first = np.unique(kinds, axis=0, return_index=True)
    return list(rows[first].tolist())


def _misfits(problem: Problem, row: int, placement: ReplicaPlacement) -> Iterator[str]:
    counts = (*placement.replicas, *placement.observers)
    wanted, rf = sum(entry.count for entry in counts), int(problem.rf[row])
    if wanted != rf:
        topic = problem.snapshot.id(row).topic
        yield (
            f"the counts sum to {wanted}, but {topic} has {count_text(rf, 'replica')}"
        )
    for entry in counts:
        if words := no_such_rack(problem, entry.constraints.rack):
            yield words


def _first(faults: list[str]) -> list[str]:
    more = len(faults) - MOST_NAMED
    return [*faults[:MOST_NAMED], f"and {more} more"] if more > 0 else faults

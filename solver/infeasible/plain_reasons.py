"""Reasons for infeasibility that need no search over combinations of rules."""

from collections import defaultdict
from collections.abc import Hashable, Iterator

import numpy as np

from model.goals.rack_placement import ReplicaPlacement
from model.plan.remaining import load_text
from model.snapshot.snapshot import dimension_words
from model.units import count_text
from solver.budget import Budget
from solver.infeasible.assumptions import Barriers
from solver.infeasible.messages import (
    MOST_NAMED,
    broker_names,
    conflict_text,
    no_such_rack,
    placement_text,
)
from solver.infeasible.minimal_conflict import conflict_of_rows
from solver.problem.co_location import RackMode
from solver.problem.problem import Problem


def plain_reasons(problem: Problem, budget: Budget) -> tuple[str, ...]:
    """Explain infeasibility that is evident row by row, without a search.

    That is where no broker is alive, an explicit placement cannot match, forced rows have no place
    (at most `MOST_NAMED` kinds are explained and the other rows counted), or else all brokers
    together lack capacity. Empty if none applies, or no row is forced to change. Work is charged
    to `budget`.
    """
    if not problem.may.forced.any():
        return ()
    if not problem.may.alive.any():
        full = broker_names(problem, np.unique(problem.replicas[problem.may.must_go]).tolist())
        return (f"{full} must be emptied, but no alive broker is left",)
    if misfits := tuple(_placement_misfits(problem)):
        return misfits
    stuck = _stuck(problem)
    texts = [_stuck_text(problem, rows[0], budget) for rows in stuck[:MOST_NAMED]]
    more = sum(map(len, stuck)) - len(texts)
    if more > 0:
        texts.append(f"and {count_text(more, 'more partition')} like these")
    return tuple(texts) or tuple(_insufficient_capacity(problem))


def _stuck(problem: Problem) -> list[list[int]]:
    """Rows that have to change and have no place, identical ones together."""
    may, found = problem.may, dict[Hashable, list[int]]()
    for row in np.flatnonzero(may.forced).tolist():
        home = problem.replicas[row].tobytes(), int(problem.leader[row])
        key = (home, int(may.spreading.group[row]), may.barred.get(row, ()))
        found.setdefault(key, []).append(row)
    return [rows for rows in found.values() if _has_no_place(problem, rows[0])]


def _has_no_place(problem: Problem, row: int) -> bool:
    may, rf = problem.may, int(problem.rf[row])
    able = may.may_hold(row, problem.replicas[row])
    led = able & may.may_lead(row, problem.replicas[row], int(problem.leader[row]))
    able = led if rf == 1 else able
    if able.sum() < rf or not led.any():
        return True
    home = problem.replicas[row]
    if not may.displaced[row] and led[home[home >= 0]].any():
        return False
    spreading = may.spreading
    group = spreading.group[row]
    room = np.bincount(spreading.rack[able], minlength=len(spreading.racks))
    if spreading.mode[group] == RackMode.EXACT:
        wanted = spreading.required[group]
        return bool(wanted.sum() != rf or (room < wanted).any())
    return bool((room > 0).sum() < spreading.distinct[group])


def _stuck_text(problem: Problem, row: int, budget: Budget) -> str:
    found = conflict_of_rows(problem, [row], budget)
    if found is None:
        return f"{problem.snapshot.id(row)} has to move, but no broker may hold it"
    return "; ".join(conflict_text(problem, found))


def _insufficient_capacity(problem: Problem) -> Iterator[str]:
    """Resources of which all brokers together have too little."""
    held = problem.may.holding
    allowed = np.where(held[:, None], problem.allowed, 0.0).sum(axis=0)
    staying = problem.loads_of_rows(np.flatnonzero(problem.may.fixed_reason))
    # Traffic to followers depends on the leader, but its sum does not.
    total = problem.loads_before.sum(axis=0) - staying[~held].sum(axis=0)
    for d in np.flatnonzero(total > allowed * (1 + 1e-9)).tolist():
        key = problem.dimensions[d].key
        yield (
            f"the brokers that may hold load are allowed {load_text(key, allowed[d])} of "
            f"{dimension_words(key)} together, but they have to carry {load_text(key, total[d])}"
        )


def _placement_misfits(problem: Problem) -> Iterator[str]:
    """Placements that leave forced partitions no place, whatever else is allowed.

    Their counts do not add up to the replication factor, or no broker is in a rack they name.
    """
    found: dict[int, list[str]] = defaultdict(list)
    barriers = Barriers(problem)
    for row in _placed_rows(problem):
        number = barriers.placements_of(row)[0].at
        placement = problem.goals.placements[number].placement
        for words in _misfits(problem, row, placement):
            if words not in found[number]:
                found[number].append(words)
    for number, faults in sorted(found.items()):
        more = len(faults) - MOST_NAMED
        counted = [f"and {more} more"] if more > 0 else []
        yield "; ".join([placement_text(problem, number), *faults[:MOST_NAMED], *counted])


def _placed_rows(problem: Problem) -> list[int]:
    """One forced row per topic and replication factor that an explicit placement binds."""
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
        yield (f"the counts sum to {wanted}, but {topic} has {count_text(rf, 'replica')}")
    for entry in counts:
        if words := no_such_rack(problem, entry.constraints.rack):
            yield words

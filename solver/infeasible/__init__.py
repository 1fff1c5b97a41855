"""Why no placement keeps every rule, in words with names."""

from collections.abc import Hashable, Iterator

import numpy as np

from model.goals.goals import SolveLimits
from model.snapshot.snapshot import Floats
from model.units import count_text
from solver.budget import Budget
from solver.infeasible.messages import (
    MOST_NAMED,
    amount_text,
    broker_names,
    conflict_words,
)
from solver.infeasible.minimal_conflict import (
    Conflict,
    conflict_of_rows,
    find_conflict,
)
from solver.infeasible.plain_reasons import placement_misfits
from solver.problem.co_location import RackMode
from solver.problem.problem import Problem, sum_loads

__all__ = ["Conflict", "conflict", "find_conflict", "plain_reasons"]


def plain_reasons(problem: Problem, budget: Budget | None = None) -> tuple[str, ...]:
    """What makes every plan impossible, and shows without a search."""
    if not problem.may.forced.any():
        return ()
    if not problem.may.alive.any():
        return (f"{_emptying(problem)} must empty and no alive broker is left",)
    if misfits := tuple(placement_misfits(problem)):
        return misfits
    stuck = _stuck(problem)
    budget = budget or Budget(limits=SolveLimits())
    told = [_why_stuck(problem, rows[0], budget) for rows in stuck[:MOST_NAMED]]
    more = sum(map(len, stuck)) - len(told)
    if more > 0:
        told.append(f"and {count_text(more, 'more partition')} alike")
    return tuple(told) or tuple(_too_little_room(problem))


def conflict(problem: Problem, budget: Budget) -> tuple[str, ...]:
    """The smallest set of things that cannot all be kept, in words.

    Empty where none was found within the search budget.
    """
    found = find_conflict(problem, budget)
    return () if found is None else conflict_words(problem, found)


def _emptying(problem: Problem) -> str:
    full = np.unique(problem.replicas[problem.may.must_go]).tolist()
    return broker_names(problem, full)


def _stuck(problem: Problem) -> list[list[int]]:
    """Rows that have to change and have no place; those alike together."""
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
    spreading = may.spreading
    group = spreading.group[row]
    room = np.bincount(spreading.rack[able], minlength=len(spreading.racks))
    if spreading.mode[group] == RackMode.EXACT:
        wanted = spreading.wanted[group]
        return bool(wanted.sum() != rf or (room < wanted).any())
    return bool((room > 0).sum() < spreading.distinct[group])


def _why_stuck(problem: Problem, row: int, budget: Budget) -> str:
    found = conflict_of_rows(problem, [row], budget)
    if found is None:
        return f"{problem.snapshot.id(row)} has to move and may lie nowhere"
    return "; ".join(conflict_words(problem, found))


def _too_little_room(problem: Problem) -> Iterator[str]:
    """A resource of which all brokers together have too little."""
    held = problem.may.holding
    allowed = np.where(held[:, None], problem.allowed, 0.0).sum(axis=0)
    # What is served to followers depends on who leads, but not its sum.
    total = problem.loads_before.sum(axis=0) - _lost(problem)[~held].sum(axis=0)
    for d in np.flatnonzero(total > allowed * (1 + 1e-9)).tolist():
        measure = problem.dimensions[d].measure
        yield (
            "the brokers that may hold load are allowed "
            f"{amount_text(measure, allowed[d])} of {problem.dimensions[d].key} "
            f"together, and {amount_text(measure, total[d])} has to be carried"
        )


def _lost(problem: Problem) -> Floats:
    """(B, D) load of partitions that stay where they are, as those deferred do."""
    stays = (problem.may.why_fixed > 0) & ~problem.may.forced
    rows = np.flatnonzero(stays | (problem.leader < 0))
    return sum_loads(
        problem.replicas[rows],
        problem.leader[rows],
        problem.lead[rows],
        problem.follow[rows],
        len(problem.brokers),
    )

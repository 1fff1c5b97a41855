"""Why a move is made, in words: whom it relieves, whom it fills."""

from dataclasses import dataclass

import numpy as np

from model.units import percent_text
from solver.placement import Placement, row_shift
from solver.problem import Problem
from solver.spreading import RackMode


def reason(problem: Problem, placement: Placement, row: int) -> str:
    """What one changed row does for the brokers, as they were before the plan."""
    must = problem.replicas[row][problem.may.must_go[row]]
    if len(must):
        broker = problem.snapshot.header.brokers[int(must[0])]
        if problem.may.leaving[must[0]]:
            return f"leaves broker {broker.id}, which is {broker.state}"
        return f"leaves broker {broker.id}, where a pin or placement forbids it"
    spreading = problem.may.spreading
    if (
        problem.may.forced[row]
        and spreading.mode[spreading.group[row]] == RackMode.EXACT
    ):
        return "goes where its placement wants it"
    if problem.may.forced[row]:
        return f"repairs racks: {_racks(problem, row)} held all its replicas"
    return _over_limit(problem, placement, row) or _balance(problem, placement, row)


def _racks(problem: Problem, row: int) -> str:
    """The racks that a row shares, by name."""
    spreading = problem.may.spreading
    home = problem.replicas[row]
    names = sorted({str(spreading.racks[spreading.rack[b]]) for b in home[home >= 0]})
    return f"{'rack' if len(names) == 1 else 'racks'} {', '.join(names)}"


def _over_limit(problem: Problem, placement: Placement, row: int) -> str:
    """The broker over a limit that a row takes most load off; empty if none."""
    brokers, shift = row_shift(problem, placement, row)
    limit, before = problem.limit[brokers], problem.loads_before[brokers]
    over = before > limit * (1 + 1e-9)
    relief = np.where(over, -shift / limit, 0.0)
    if relief.max(initial=0.0) <= 0:
        return ""
    at, d = divmod(int(np.argmax(relief)), shift.shape[1])
    share = percent_text(before[at, d] / limit[at, d])
    key = problem.dimensions[d].key
    return (
        f"relieves broker {problem.brokers[brokers[at]]}, which is over its limit "
        f"({key} at {share} of it)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a changed row does most for."""

    source: int
    """The broker relieved, by position."""
    target: int
    """The broker filled, by position."""
    goal: int
    """The counted dimension that gains most, 0 to K - 1."""


def served(problem: Problem, placement: Placement, row: int) -> Served | None:
    """Whom a changed row relieves and fills; None where no broker's load changes.

    Brokers are judged as they are before the plan.
    """
    brokers, moved = row_shift(problem, placement, row)
    shift = moved[:, problem.column] * problem.slope[brokers]
    if not np.any(shift):
        return None
    where = problem.deviations_before[brokers]
    gained = -(shift * where * problem.weight).sum(axis=0)
    k = int(np.argmax(np.where(np.any(shift, axis=0), gained, -np.inf)))
    return Served(
        source=brokers[int(np.argmax(np.where(shift[:, k] < 0, where[:, k], -np.inf)))],
        target=brokers[int(np.argmin(np.where(shift[:, k] > 0, where[:, k], np.inf)))],
        goal=k,
    )


def _balance(problem: Problem, placement: Placement, row: int) -> str:
    found = served(problem, placement, row)
    if found is None and problem.topic_share:
        return f"spreads topic {problem.snapshot.id(row).topic}"
    if found is None:
        return "lets other moves pay"
    where = problem.deviations_before
    over, under = where[found.source, found.goal], where[found.target, found.goal]
    return (
        f"{'relieves' if over > 0 else 'takes from'} "
        f"broker {problem.brokers[found.source]} "
        f"({problem.keys[found.goal]} {to_level(over)}); "
        f"broker {problem.brokers[found.target]} is {to_level(under)}"
    )


def to_level(deviation: float) -> str:
    """`+200 % over level`, `100 % under it`, `at level`."""
    percent = round(100 * abs(deviation))
    if percent == 0:
        return "at its level"
    return f"{percent} % {'over' if deviation > 0 else 'under'} its level"

"""Why a move is made, in words: whom it relieves, whom it fills."""

from dataclasses import dataclass

import numpy as np

from solver.placement import Placement, row_shift
from solver.problem import Problem


def reason(problem: Problem, placement: Placement, row: int) -> str:
    """What one changed row does for the brokers, as they were before the plan."""
    must = problem.replicas[row][problem.may.must_go[row]]
    if len(must):
        broker = problem.snapshot.header.brokers[int(must[0])]
        if problem.may.leaving[must[0]]:
            return f"leaves broker {broker.id}, which is {broker.state}"
        return f"leaves broker {broker.id}, where a pin or placement forbids it"
    if problem.may.forced[row]:
        return "goes where its placement wants it"
    return _balance(problem, placement, row)


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

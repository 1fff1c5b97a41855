"""The part of an imbalance that no allowed move can remove, by cause.

Partitions that may not move load their brokers in every plan. If all other load could
be divided freely, the least deviation would come from filling the brokers to a common
height, starting from what stays on each (water-filling): a bound that needs no search.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import LEAVING, TAKING, Bools, Floats
from solver.infeasible.messages import named, staying_text
from solver.problem.eligibility import FIXED_REASONS, FixedReason
from solver.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmovableImbalance:
    """Imbalance that one cause adds to the causes before it."""

    cause: str
    """`40 partitions belong to excluded topics`."""
    deviation: float
    """Weighted sum of squared deviations, in units of F."""


REPORTED_SHARE: Final = 0.1
"""Share of the imbalance above which the unmovable part is reported."""

_HALVINGS: Final = 200
"""Bisection steps for the common height; enough for the last digit of a float."""


def imbalance(problem: Problem) -> float:
    """Compute the weighted sum of squared deviations in the snapshot, in units of F.

    Squares under `band`, too; balance of single topics is left out.
    """
    squares = problem.deviations_before**2 * problem.weight
    return float(squares.sum())


def unmovable(problem: Problem) -> tuple[UnmovableImbalance, ...]:
    """List the causes that leave any imbalance, each with what it adds to earlier ones.

    In a fixed order: rows without a leader, broker states, then the other reasons for rows to stay.
    Causes that add no more than 1e-9 of F are left out; empty if all do.
    """
    found, stays = [], np.zeros(len(problem.leader), np.bool_)
    least = 0.0
    for cause, rows, states in _causes(problem):
        stays |= rows
        with_it = least_deviation(problem, stays, states_bind=states)
        if with_it - least > 1e-9:
            found.append(UnmovableImbalance(cause=cause, deviation=with_it - least))
        least = max(least, with_it)
    return tuple(found)


def unmovable_text(problem: Problem) -> tuple[str, ...]:
    """Describe the imbalance that no allowed move removes, with its causes, in one sentence.

    Empty where it is at most `REPORTED_SHARE` of the imbalance in the snapshot.
    """
    before, left = imbalance(problem), unmovable(problem)
    whole = sum(part.deviation for part in left)
    if whole <= REPORTED_SHARE * before or not left:
        return ()
    parts = "; ".join(f"{part.deviation:.3g} since {part.cause}" for part in left)
    share = min(1.0, whole / before) if before > 0 else 1.0
    return (
        f"no allowed move removes {whole:.3g} of the imbalance {before:.3g} "
        f"({100 * share:.0f} %): {parts}",
    )


def least_deviation(problem: Problem, stays: Bools, *, states_bind: bool) -> float:
    """Compute the least weighted sum of squared deviations if other load were divisible.

    `stays` is (n,): rows that remain as they are. If `states_bind`, brokers that take no new load
    get no more than they have. In units of F; found by water-filling, so a lower bound for every
    placement under the objective `variance`.
    """
    low = problem.loads_of_rows(np.flatnonzero(stays))
    # A row without a leader stays on a broker that is to be emptied.
    outside = low[~problem.may.holding].sum(axis=0)
    whole = problem.loads_before.sum(axis=0) - outside
    high = np.full(low.shape, np.inf)
    if states_bind:
        closed = problem.may.holding & ~problem.may.alive
        high[closed] = np.maximum(low, problem.loads_before)[closed]
    held = problem.may.holding
    return math.fsum(
        weight * _fill_evenly(problem.slope[held, k], low[held, d], high[held, d], float(whole[d]))
        for k, (d, weight) in enumerate(
            zip(problem.column.tolist(), problem.weight.tolist(), strict=True)
        )
    )


def _fill_evenly(slope: Floats, low: Floats, high: Floats, whole: float) -> float:
    """Least sum of (slope x - 1)^2 with low <= x <= high and sum x = whole, by bisection."""

    def fill(height: float) -> Floats:
        level: Floats = np.clip((1.0 + height / slope) / slope, low, high)
        return level

    # A broker that takes all the load deviates by at most this much.
    reach = float(np.abs(slope * (slope * (whole + low) + 1.0)).max(initial=1.0))
    below, above = -reach, reach
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        if fill(middle).sum() < whole:
            below = middle
        else:
            above = middle
    return float(((slope * fill(below) - 1.0) ** 2).sum())


def _causes(problem: Problem) -> Iterator[tuple[str, Bools, bool]]:
    """Cause, the rows it keeps in place, and whether broker states bind."""
    none = np.zeros(len(problem.leader), np.bool_)
    lost = problem.may.kept_by(FixedReason.NO_LEADER)
    if lost.any():
        yield staying_text(int(lost.sum()), FixedReason.NO_LEADER), lost, False
    closed = [
        b
        for b in problem.snapshot.header.brokers
        if b.state not in TAKING and b.state not in LEAVING
    ]
    if closed:
        names = named("broker", [f"{b.id} ({b.state})" for b in closed])
        takes = "takes" if len(closed) == 1 else "take"
        yield f"{names} {takes} no new load", none, True
    for reason in FIXED_REASONS:
        rows = problem.may.kept_by(reason)
        if rows.any() and reason is not FixedReason.NO_LEADER:
            yield staying_text(int(rows.sum()), reason), rows, True

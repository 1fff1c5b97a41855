"""The part of an imbalance that no allowed move can remove, and what keeps it there.

Partitions that stay load their brokers whatever is moved. Were all other load a fluid
that may be poured at will, the least deviation would be that of filling each broker to
a common height, from what stays on it upwards: a bound that needs no search.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import LEAVING, TAKING, Bools, Floats, Ints
from solver.infeasible.messages import named, staying_text
from solver.problem.eligibility import FIXED_REASONS, FixedReason
from solver.problem.placement import deviations
from solver.problem.problem import Problem, sum_loads


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmovableImbalance:
    """Imbalance that one cause leaves, beside the causes before it."""

    cause: str
    """`40 partitions are of excluded topics`."""
    deviation: float
    """Weighted sum of squared deviations, in units of F."""


REPORTED_SHARE: Final = 0.1
"""Share of the imbalance above which the unmovable part is reported."""

_HALVINGS: Final = 200
"""Steps of the search for the common height; enough for the last digit of a float."""


def imbalance(problem: Problem) -> float:
    """Weighted sum of squared deviations as the snapshot has it."""
    squares = deviations(problem, problem.loads_before) ** 2 * problem.weight
    return float(squares.sum())


def unmovable(problem: Problem) -> tuple[UnmovableImbalance, ...]:
    """Causes that leave any imbalance, in the order in which they are counted."""
    found, stays = [], np.zeros(len(problem.leader), np.bool_)
    least = 0.0
    for cause, rows, states in _causes(problem):
        stays |= rows
        with_it = least_deviation(problem, stays, states_bind=states)
        if with_it - least > 1e-9:
            found.append(UnmovableImbalance(cause=cause, deviation=with_it - least))
        least = max(least, with_it)
    return tuple(found)


def unmovable_words(problem: Problem) -> tuple[str, ...]:
    """What keeps a good part of the imbalance, in words; empty if little does."""
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
    """The least weighted sum of squared deviations, if all else could be poured.

    Parameters
    ----------
    stays
        (n,) rows that stay as they are.
    states_bind
        Whether brokers that take nothing new get no more than they have.
    """
    rows = np.flatnonzero(stays)
    low = _loads(problem, rows)
    # A row without a leader stays on a broker that is to be emptied.
    outside = low[~problem.may.holding].sum(axis=0)
    whole = problem.loads_before.sum(axis=0) - outside
    high = np.full(low.shape, np.inf)
    if states_bind:
        closed = problem.may.holding & ~problem.may.alive
        high[closed] = np.maximum(low, problem.loads_before)[closed]
    held = problem.may.holding
    return math.fsum(
        weight
        * _fill_evenly(
            problem.slope[held, k], low[held, d], high[held, d], float(whole[d])
        )
        for k, (d, weight) in enumerate(
            zip(problem.column.tolist(), problem.weight.tolist(), strict=True)
        )
    )


def _fill_evenly(slope: Floats, low: Floats, high: Floats, whole: float) -> float:
    """Least sum of (slope x - 1)^2 with low <= x <= high and sum x = whole."""

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


def _loads(problem: Problem, rows: Ints) -> Floats:
    """(B, D) load of some rows as the snapshot has them."""
    return sum_loads(
        problem.replicas[rows],
        problem.leader[rows],
        problem.lead[rows],
        problem.follow[rows],
        len(problem.brokers),
    )


def _causes(problem: Problem) -> Iterator[tuple[str, Bools, bool]]:
    """Words, the rows that stay for this cause, and whether broker states bind."""
    none = np.zeros(len(problem.leader), np.bool_)
    why = problem.may.fixed_reason
    lost = why == 1 + FIXED_REASONS.index(FixedReason.NO_LEADER)
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
        rows = why == 1 + FIXED_REASONS.index(reason)
        if rows.any() and reason is not FixedReason.NO_LEADER:
            yield staying_text(int(rows.sum()), reason), rows, True

"""Annealing of F plus a steep price of the excess over the tolerance."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.budget import Budget
from solver.kernels.band_annealing import anneal_band, evaluate_start, new_band_scratch
from solver.kernels.move_deltas import new_state
from solver.kernels.pricing import least_with, new_pricing_scratch
from solver.kernels.problem_arrays import find_columns, leader_first, placement_of, unit_prices
from solver.problem.placement import Placement, deviations, loads_of
from solver.problem.problem import Problem

STEPS: Final = 400_000
"""Most steps of one phase."""

SLICE: Final = 50_000
"""Steps between two checks whether to stop."""

EFFORT: Final = 250
"""Steps of one phase per candidate."""

FEWEST_STEPS: Final = 20_000
"""Steps of one phase with few candidates."""

WORK_OF_STEP: Final = 4e-7
"""Work units of one step, per replica of a row plus one; measured."""

WORK_OF_CANDIDATE: Final = 6e-9
"""Work units for pricing one row on one broker in one dimension; measured."""

PHASES: Final = ((0.5, 0.05, 10.0), (0.2, 0.02, 300.0), (0.1, 0.002, 100_000.0))
"""Initial and final temperature, in costs of a move, and price of the excess, in multiples of
F's slope at the edge of the tolerance: cheap enough to cross the edge at first, then expensive
enough to end inside."""

COOLING_STAGES: Final = 50
"""Temperatures of one phase, each a fixed share of the one before."""

MOST_PRICED: Final = 4_000_000
"""Rows x brokers that are priced as candidates."""

MOST_PAIRS: Final = 30_000
"""Candidates of one run: those that promise most."""


class ExcessAnnealing:
    """Annealing runs from given placements, over pairs of a row and a broker it may go to."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._problem, self._seed = problem, seed
        self._columns = find_columns(problem)
        self._kept = np.flatnonzero(problem.weight > 0)
        self._runs = 0

    def run(self, start: Placement, budget: Budget) -> Iterator[Placement]:
        """Yield the best placement of each phase; none where no row may go anywhere.

        Charges `budget`, and ends early where it is over. The placements keep limits and budgets
        of the compiled loops; check them by `is_allowed`.
        """
        problem, c = self._problem, self._columns
        at = leader_first(c, start.replicas, start.leader)
        pairs = self._pairs(start, budget)
        if not len(pairs[0]):
            return
        weight, tolerance = problem.weight[self._kept], problem.tolerance[self._kept]
        slope = 2.0 * weight * np.maximum(tolerance, 0.01)
        each = WORK_OF_STEP * (1 + c.home.shape[1])
        most = max(FEWEST_STEPS, EFFORT * len(pairs[0]))
        for hot, cold, steep in PHASES:
            steps = min(STEPS, most, int(budget.work_left / each))
            if steps <= 0 or budget.over():
                return
            heat = problem.costs.move * _cooled(hot, cold)
            seed = 1_000 * self._seed + self._runs
            run = pairs, (steep * slope, weight), tolerance, heat, seed
            memory, state = new_band_scratch(c, at, *run), new_state(c, at)
            value = least = evaluate_start(c, state, memory)
            self._runs += 1
            for first in range(0, steps, SLICE):
                if budget.stops():
                    break
                part = first, min(steps, first + SLICE), steps
                value, least = anneal_band(c, state, memory, part, 0.0, value, least)
                budget.work += (part[1] - first) * each
            at = memory.best
            yield placement_of(problem, at)

    def _pairs(self, start: Placement, budget: Budget) -> tuple[Ints, Ints]:
        """(m,) rows, ascending, and (m,) brokers that promise most from a placement.

        A broker that follows today stands for its taking the lead.
        """
        problem, c = self._problem, self._columns
        relative = deviations(problem, loads_of(problem, start))[:, self._kept]
        tolerance, weight = problem.tolerance[self._kept], problem.weight[self._kept]
        beyond: Bools = np.abs(relative) > tolerance
        rows = self._rows(start, np.asarray(beyond.any(axis=1)))
        # The slope of F, steeper where a broker is outside.
        prices = 2.0 * weight * relative * np.where(beyond, 3.0, 1.0)
        shape = len(rows), len(problem.brokers)
        holds, leads = np.empty(shape), np.empty(shape)
        least_with(c, unit_prices(c, prices), rows, holds, leads, new_pricing_scratch(c))
        budget.work += WORK_OF_CANDIDATE * holds.size * (1 + len(self._kept))
        cost = np.where(_home(c.home[rows], shape[1]), leads, holds)
        # The present leader is where the row starts, not a candidate.
        led = c.home[rows, 0]
        cost[np.arange(len(rows)), led] = np.inf
        least = np.minimum(holds, leads).min(axis=1, initial=np.inf)
        cost -= np.where(np.isfinite(least), least, 0.0)[:, None]
        finite = cost[np.isfinite(cost)]
        reach = np.inf
        if len(finite) > MOST_PAIRS:
            reach = float(np.partition(finite, MOST_PAIRS)[MOST_PAIRS])
        row, broker = np.nonzero(np.isfinite(cost) & (cost <= reach))
        return rows[row].astype(np.int64), broker.astype(np.int64)

    def _rows(self, start: Placement, outside: Bools) -> Ints:
        """(m,) rows to price, ascending: all, or those on brokers outside and some others."""
        problem = self._problem
        free = np.flatnonzero(problem.may.fixed_reason == 0)
        most = max(1, MOST_PRICED // max(1, len(problem.brokers)))
        if len(free) <= most:
            return free.astype(np.int64)
        held = start.replicas[free]
        first = ((held >= 0) & outside[held]).any(axis=1)
        first |= (start.replicas[free] != problem.replicas[free]).any(axis=1)
        near, others = free[first], free[~first]
        near = near[:: _stride(len(near), most // 2)]
        others = others[:: _stride(len(others), most - len(near))]
        return np.sort(np.concatenate((near, others))).astype(np.int64)


def _stride(count: int, most: int) -> int:
    """Return the least step by which at most `most` of `count` are taken."""
    return max(1, -(-count // max(1, most)))


def _home(home: Ints, brokers: int) -> Bools:
    """(m, B) membership of (m, M) brokers, -1 as filler."""
    on = np.zeros((len(home), brokers), np.bool_)
    row, at = np.nonzero(home >= 0)
    on[row, home[row, at]] = True
    return on


def _cooled(hot: float, cold: float) -> Floats:
    """(COOLING_STAGES,) temperatures, by repeated multiplication: alike on every processor."""
    factor = (cold / hot) ** (1 / (COOLING_STAGES - 1))
    heat = [hot]
    for _ in range(COOLING_STAGES - 1):
        heat.append(heat[-1] * factor)
    return np.array(heat)

"""Plans by annealing over the candidates, from the program's rounded optimum."""

import math
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.band.candidates import BandCandidates
from solver.band.load_prices import BandDual
from solver.kernels.band_annealing import anneal_band, evaluate_start, new_band_scratch
from solver.kernels.move_deltas import new_state
from solver.kernels.neighbourhood_annealing import exponential_quantiles
from solver.problem.placement import (
    NOTHING,
    Placement,
    deviation_cost,
    deviations,
    is_allowed,
    loads_of,
    objective,
)
from solver.search.search import Search

STEPS: Final = 500_000
"""Tries of one walk at most."""
SLICE: Final = 100_000
"""Tries between two looks whether to stop."""
EFFORT: Final = 250
"""Tries of one walk, by candidate."""
WORK_OF_TRY: Final = 4e-7
"""Work of one try, by replica of a row and one more; measured."""
STAGES: Final = 50
"""Temperatures of one walk, each a fixed share of the one before."""
PHASES: Final = ((0.03, 0.01, 30.0), (0.02, 0.002, 1_000.0))
"""First and last temperature, in prices of a move; price of the excess, in the
steepest of the prices that prove the bound. First cheap enough to cross the edge of a
band, then dear enough to end inside. Hotter walks lose what the program knows and come
back to worse."""
EXCESS_REPAIR: Final = (1.0, 100)
"""Reach, in prices of a move, and effort where excess is left: small rows mend it."""
LEAST_GAIN: Final = 1e-6
"""Share of the price of a move that a better placement gains at least."""
EVEN_SHARE: Final = 0.05
"""Share of all work that evening out may take."""
EVEN_PAIRS: Final = 30_000
"""Candidates that it chooses from at most."""
EVEN_TEMPERATURES: Final = (1.0, 1e-3)
"""Its first and last temperature, in what an average broker costs in a dimension."""
EVEN_PRICE: Final = 1e-3
"""What all unevenness costs, in prices of a move: less than any move saves."""
NOISE: Final = 4096


class BandAnnealing:
    """Walks one after the other, each from the start or from the best so far."""

    def __init__(
        self, search: Search, dual: BandDual, prices: Floats, start: Ints
    ) -> None:
        self._search, self._dual, self._at = search, dual, start
        self._noise = exponential_quantiles(NOISE)
        steepest = np.abs(prices).max(axis=0, initial=0.0)
        self._steepest = np.maximum(steepest, max(1e-9, steepest.max(initial=0.0) / 10))
        self._level = np.zeros(len(dual.tolerance))
        self._runs = 0

    def run(self, candidates: BandCandidates, reach: float) -> None:
        """Walk over the pairs up to a reduced cost; offer what keeps all rules."""
        price = self._search.problem.costs.move
        at = self._at if self._runs == 0 else self.best()
        pairs = candidates.pairs(reach)
        for phase in PHASES:
            if self._search.over():
                return
            at = self._phase(at, pairs, phase, EFFORT)
        if self._has_excess and not self._search.over():
            far, effort = EXCESS_REPAIR
            pairs = candidates.pairs(max(reach, far * price))
            self._phase(self.best(), pairs, PHASES[-1], effort)

    def _phase(
        self,
        at: Ints,
        pairs: tuple[Ints, Ints],
        phase: tuple[float, float, float],
        effort: int,
    ) -> Ints:
        search, (hot, cold, steep) = self._search, phase
        most = np.minimum(self._dual.most, steep * self._steepest)
        left = math.ceil(search.work_left / self._work_of_try)
        steps = min(STEPS, left, effort * len(pairs[0]))
        heat = search.problem.costs.move * _cooling(hot, cold)
        at = self._anneal(at, pairs, (most, self._level), heat, steps)
        placement = self._allowed(at)
        if placement is not None:
            search.offer(placement)
        return at

    def even_out(self, candidates: BandCandidates, needed: float) -> None:
        """Exchange moves for others as dear, so that the deviations get smaller.

        Parameters
        ----------
        needed
            Reduced cost that no pair of a plan as good as the best exceeds.
        """
        search, dual = self._search, self._dual
        imbalance = 0.0 if search.best is None else self._imbalance(search.best)
        if search.best is None or imbalance <= NOTHING or search.stopped:
            return
        price = EVEN_PRICE * search.problem.costs.move / imbalance
        level = price * search.problem.weight[dual.kept]
        pairs = candidates.pairs(min(needed, candidates.reach(EVEN_PAIRS)))
        most = EVEN_SHARE * search.limits.work / self._work_of_try
        steps = round(min(STEPS, most, EFFORT * len(pairs[0])))
        heat = price * imbalance / dual.home.size * _cooling(*EVEN_TEMPERATURES)
        at = self._anneal(self.best(), pairs, (dual.most, level), heat, steps)
        placement = self._allowed(at)
        if placement is None or self._imbalance(placement) >= imbalance:
            return
        value = objective(search.problem, placement)
        if value <= search.objective + NOTHING * max(1.0, value):
            search.best, search.objective = placement, value

    def best(self) -> Ints:
        """(n, M) the best placement known, leader first; the start if there is none."""
        placement = self._search.best
        if placement is None:
            return self._at
        leads = placement.replicas == placement.leader[:, None]
        order = np.argsort(~leads, axis=1, kind="stable")
        found = np.take_along_axis(placement.replicas, order, axis=1)
        return np.where(
            self._dual.columns.free[:, None], found, self._dual.columns.home
        ).astype(np.int32)

    def _anneal(
        self,
        at: Ints,
        pairs: tuple[Ints, Ints],
        deviation_prices: tuple[Floats, Floats],
        heat: Floats,
        steps: int,
    ) -> Ints:
        search, c = self._search, self._dual.columns
        best = at.copy()
        start = np.searchsorted(pairs[0], np.arange(len(c.rf) + 1))
        seed = 1_000 * search.limits.seed + self._runs
        memory = new_band_scratch(c, *deviation_prices, self._dual.tolerance, seed)
        gain = LEAST_GAIN * search.problem.costs.move
        state = new_state(c, at)
        value = least = evaluate_start(c, state, memory)
        self._runs += 1
        for first in range(0, steps if len(pairs[0]) else 0, SLICE):
            if search.stops():
                break
            part = first, min(steps, first + SLICE), steps
            value, least = anneal_band(
                c,
                state,
                memory,
                *pairs,
                start,
                part,
                heat,
                self._noise,
                gain,
                best,
                value,
                least,
            )
            search.work += (part[1] - first) * self._work_of_try
        return best

    @property
    def _has_excess(self) -> bool:
        problem, best = self._search.problem, self._search.best
        if best is None:
            return False
        return deviation_cost(problem, loads_of(problem, best)) > NOTHING

    @property
    def _work_of_try(self) -> float:
        return WORK_OF_TRY * float(1 + self._dual.columns.home.shape[1])

    def _imbalance(self, placement: Placement) -> float:
        """Sum of weight x squared deviation: the first part of `variance`."""
        problem = self._search.problem
        relative = deviations(problem, loads_of(problem, placement))
        found = problem.weight * relative**2
        return math.fsum(found.ravel().tolist())

    def _allowed(self, at: Ints) -> Placement | None:
        problem = self._search.problem
        leader = np.where(self._dual.columns.free, at[:, 0], problem.leader)
        placement = Placement(
            replicas=at.astype(np.int64), leader=leader.astype(np.int64)
        )
        return placement if is_allowed(problem, placement) else None


def _cooling(hot: float, cold: float) -> Floats:
    """(STAGES,) temperatures; powers one by one, the same on every processor."""
    factor = (cold / hot) ** (1 / (STAGES - 1))
    heat = [hot]
    for _ in range(STAGES - 1):
        heat.append(heat[-1] * factor)
    return np.array(heat)

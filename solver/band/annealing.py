"""Plans by annealing over the candidates, starting from the linear program's rounded optimum."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.band.candidates import BandCandidates, all_pairs
from solver.band.load_prices import BandDual
from solver.kernels.band_annealing import anneal_band, evaluate_start, new_band_scratch
from solver.kernels.move_deltas import new_state
from solver.problem.placement import (
    NOTHING,
    Placement,
    deviation_cost,
    deviations,
    loads_of,
    objective,
)
from solver.search.search import Search

STEPS: Final = 500_000
"""Most steps of one phase."""
FIRST_STEPS: Final = 200_000
"""The same in a first run, which finds most of what there is to find."""
FIRST_EFFORT: Final = 25
"""Steps per row of a phase of a first run, where that is more."""
SLICE: Final = 100_000
"""Steps between two checks whether to stop."""
EFFORT: Final = 250
"""Steps of one run per candidate."""
WORK_OF_TRY: Final = 4e-7
"""Work units of one step, per replica of a row plus one; measured."""
STAGES: Final = 50
"""Temperatures of one run, each a fixed share of the one before."""
PHASES: Final = ((0.03, 0.01, 30.0), (0.02, 0.002, 1_000.0))
"""Initial and final temperature, in costs of a move, and price of the excess, as a multiple of
the largest price that proves the bound. At first cheap enough to cross the edge of a band, then
expensive enough to end inside. Hotter runs lose what the linear program found, and end worse."""
EXCESS_REPAIR: Final = (1.0, 100)
"""Largest reduced cost, in costs of a move, and effort where excess is left: small rows
remove it."""
HOME_PHASES: Final = ((2.0, 0.1, 1.0), (0.1, 0.03, 0.3))
"""Initial and final temperature, in costs of a move, and share of the steps, of an annealing
without prices: hot enough that the first moves, chosen from all, may be undone."""
HOME_EXCESS: Final = 3.0
"""Price of the excess in its first phase, as a multiple of the program's first one."""
HOME_STEPS: Final = 400_000
"""Its steps, at most."""
HOME_EFFORT: Final = 150
"""Its steps per row."""
HOME_SHARE: Final = 0.5
"""Its share of the work left, at most."""
WAY_EFFORT: Final = 10
"""Steps per row for a way inside the bands, not a short one."""
WAY_SHARE: Final = 0.1
"""Its share of the work left, at most."""
LEAST_GAIN: Final = 1e-6
"""Share of the cost of a move by which a better placement must gain."""
EVEN_SHARE: Final = 0.05
"""Share of the search budget that evening out may take."""
EVEN_PAIRS: Final = 30_000
"""Candidates that evening out chooses from, at most."""
EVEN_TEMPERATURES: Final = (1.0, 1e-3)
"""Its first and last temperature, relative to the mean cost of a broker in a dimension."""
EVEN_PRICE: Final = 1e-3
"""Weight of all imbalance, in costs of a move: less than any move saves."""


class BandAnnealing:
    """Annealing runs in sequence, each from the start or from the incumbent.

    `prices` are (B, K) dual prices of deviation, and `start` (n, M) brokers, leader first.
    """

    def __init__(self, search: Search, dual: BandDual, prices: Floats, start: Ints) -> None:
        self._search, self._dual, self._at = search, dual, start
        steepest = np.abs(prices).max(axis=0, initial=0.0)
        self._steepest = np.maximum(steepest, max(1e-9, steepest.max(initial=0.0) / 10))
        self._level = np.zeros(len(dual.tolerance))
        self._work_of_try = WORK_OF_TRY * float(1 + dual.columns.home.shape[1])
        self._most = max(FIRST_STEPS, FIRST_EFFORT * len(start))
        """Steps of a phase, besides `STEPS`."""
        self._end = math.inf
        """Work of the search at which the present run is to end."""
        self._runs = 0

    def run(self, candidates: BandCandidates, reach: float, share: float = 1.0) -> None:
        """Anneal over the pairs of row and broker up to a reduced cost, in units of F.

        Offers allowed placements to the search. Starts from the incumbent, or in the
        first run from the start given; if the incumbent has excess left, a last phase also
        tries pairs of higher reduced cost. `share` of the work left limits the steps.
        Charges its work, and ends early where the search is over.
        """
        price = self._search.problem.costs.move
        self._end = self._search.work + share * self._search.work_left
        at = self._at if self._runs == 0 else self.best()
        pairs = candidates.pairs(reach)
        for phase in PHASES:
            if self._search.over():
                return
            at = self._phase(at, pairs, phase, EFFORT)
        best, problem = self._search.best, self._search.problem
        excess = best is not None and deviation_cost(problem, loads_of(problem, best)) > NOTHING
        if excess and not self._search.over():
            far, effort = EXCESS_REPAIR
            pairs = candidates.pairs(max(reach, far * price))
            self._phase(self.best(), pairs, PHASES[-1], effort)
        self._most = STEPS

    def _phase(
        self, at: Ints, pairs: tuple[Ints, Ints], phase: tuple[float, float, float], effort: int
    ) -> Ints:
        search, (hot, cold, steep) = self._search, phase
        most = np.minimum(self._dual.most, steep * self._steepest)
        left = min(search.work_left, self._end - search.work)
        most_steps = math.ceil(max(0.0, left) / self._work_of_try)
        steps = min(STEPS, self._most, most_steps, effort * len(pairs[0]))
        heat = search.problem.costs.move * _cooling(hot, cold)
        at = self._anneal(at, pairs, (most, self._level), heat, steps)
        placement = self._dual.allowed(at)
        if placement is not None:
            search.offer(placement)
        return at

    def run_without_prices(self, excess_price: float) -> None:
        """Anneal from the incumbent over all pairs of row and broker; offer allowed placements.

        `excess_price` is what a deviation of one mean load outside the band costs at first, in
        units of F. Charges its work, and ends early where the search is over.
        """
        steps = min(HOME_STEPS, HOME_EFFORT * len(self._at), self._affordable(HOME_SHARE))
        for at in self._from_home(excess_price, steps):
            placement = self._dual.allowed(at)
            if placement is not None:
                self._search.offer(placement)

    def way_inside(self, excess_price: float) -> Ints:
        """Return (n, M) brokers, leader first, that a short annealing without prices reaches.

        As `run_without_prices`, but nothing is offered, and rules may be broken. The start where
        that takes more than its share of the work left.
        """
        steps = WAY_EFFORT * len(self._at)
        if steps > self._affordable(WAY_SHARE):
            return self._at
        *_, reached = self._at, *self._from_home(excess_price, steps)
        return reached

    def _affordable(self, share: float) -> int:
        """Return the number of steps that a share of the work left pays for."""
        return int(share * self._search.work_left / self._work_of_try)

    def _from_home(self, excess_price: float, steps: int) -> Iterator[Ints]:
        """Yield what each phase without prices reaches."""
        at, price = self.best(), self._search.problem.costs.move
        pairs = all_pairs(self._search.problem)
        most = np.minimum(self._dual.most, HOME_EXCESS * excess_price)
        for hot, cold, share in HOME_PHASES:
            if self._search.over():
                return
            heat = price * _cooling(hot, cold)
            at = self._anneal(at, pairs, (most, self._level), heat, round(share * steps))
            yield at
            # What is still outside is brought inside at any cost.
            most = self._dual.most

    def even_out(self, candidates: BandCandidates, needed: float) -> None:
        """Exchange moves for others of equal cost, so that deviations shrink.

        `needed` is the reduced cost, in units of F, that no pair of an equally good
        plan exceeds. Replaces the incumbent without notifying the observer; does nothing
        without one, or where its deviations are 0.
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
        placement = self._dual.allowed(at)
        if placement is None or self._imbalance(placement) >= imbalance:
            return
        value = objective(search.problem, placement)
        if value <= search.objective + NOTHING * max(1.0, value):
            search.best, search.objective = placement, value

    def best(self) -> Ints:
        """Return (n, M) brokers of the incumbent, leader first; the start if there is none.

        Rows that may not change are as in the columns' `home`.
        """
        placement = self._search.best
        if placement is None:
            return self._at
        leads = placement.replicas == placement.leader[:, None]
        order = np.argsort(~leads, axis=1, kind="stable")
        found = np.take_along_axis(placement.replicas, order, axis=1)
        c = self._dual.columns
        return np.where(c.free[:, None], found, c.home)

    def _anneal(
        self,
        at: Ints,
        pairs: tuple[Ints, Ints],
        deviation_prices: tuple[Floats, Floats],
        heat: Floats,
        steps: int,
    ) -> Ints:
        search, c = self._search, self._dual.columns
        seed = 1_000 * search.limits.seed + self._runs
        run = pairs, deviation_prices, self._dual.tolerance, heat, seed
        memory, state = new_band_scratch(c, at, *run), new_state(c, at)
        gain = LEAST_GAIN * search.problem.costs.move
        value = least = evaluate_start(c, state, memory)
        self._runs += 1
        for first in range(0, steps if len(pairs[0]) else 0, SLICE):
            if search.stops():
                break
            part = first, min(steps, first + SLICE), steps
            value, least = anneal_band(c, state, memory, part, gain, value, least)
            search.work += (part[1] - first) * self._work_of_try
        return memory.best

    def _imbalance(self, placement: Placement) -> float:
        """Sum of weight x squared deviation: the first part of `variance`."""
        problem = self._search.problem
        relative = deviations(problem, loads_of(problem, placement))
        found = problem.weight * relative**2
        return math.fsum(found.ravel().tolist())


def _cooling(hot: float, cold: float) -> Floats:
    """(STAGES,) temperatures, by repeated multiplication: the same on every processor."""
    factor = (cold / hot) ** (1 / (STAGES - 1))
    heat = [hot]
    for _ in range(STAGES - 1):
        heat.append(heat[-1] * factor)
    return np.array(heat)

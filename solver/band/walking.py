"""Plans by annealing over the candidates, from the program's rounded optimum."""

import math
from typing import Final

import numpy as np

from model.snapshot import Floats, Ints
from solver.band.candidates import Candidates
from solver.band.dual import BandDual
from solver.kernels.annealing import exponential_quantiles
from solver.kernels.bandwalk import new_walk, walk
from solver.kernels.moves import new_state
from solver.placement import Placement, is_allowed
from solver.search import Search

STEPS: Final = 1_000_000
"""Tries of one walk at most."""
EFFORT: Final = 300
"""Tries of one walk, by candidate."""
WORK_OF_TRY: Final = 1e-6
"""Work of one try; measured."""
STAGES: Final = 50
"""Temperatures of one walk, each a fixed share of the one before."""
PHASES: Final = ((0.2, 0.02, 30.0, 0.8, 0.0), (0.3, 0.02, math.inf, 0.8, 1.0))
"""First and last temperature, in prices of a move; price of the excess, in the
steepest of the prices that prove the bound; share of the tries; least reach of the
candidates, in prices of a move. First cheap enough to cross the edge of a band, then
dear enough to end inside, by whatever move does it."""
NOISE: Final = 4096


class Walking:
    """Walks one after the other, each from the start or from the best so far."""

    def __init__(
        self, search: Search, dual: BandDual, prices: Floats, start: Ints
    ) -> None:
        self._search, self._dual, self._at = search, dual, start
        self._noise = exponential_quantiles(NOISE)
        steepest = np.abs(prices).max(axis=0, initial=0.0)
        self._steepest = np.maximum(steepest, max(1e-9, steepest.max(initial=0.0) / 10))
        self._walks = 0

    def run(self, candidates: Candidates, reach: float) -> None:
        """Walk over the pairs up to a reduced cost; offer what keeps all rules."""
        search = self._search
        price = search.problem.prices.move
        at = self._at if search.best is None or self._walks == 0 else self._best()
        for hot, cold, steep, share, far in PHASES:
            pairs = candidates.pairs(max(reach, far * price))
            most = np.minimum(self._dual.most, steep * self._steepest)
            heat = price * _cooling(hot, cold)
            steps = min(STEPS, EFFORT * len(pairs[0]))
            at = self._walk(at, pairs, most, heat, round(share * steps))
            self._offer(at)

    def _walk(
        self, at: Ints, pairs: tuple[Ints, Ints], most: Floats, heat: Floats, steps: int
    ) -> Ints:
        search, c = self._search, self._dual.columns
        best = at.copy()
        seed = 1_000 * search.limits.seed + self._walks
        memory = new_walk(c, most, self._dual.tolerance, seed)
        walk(c, new_state(c, at), memory, *pairs, steps, heat, self._noise, best)
        self._walks += 1
        search.work += steps * WORK_OF_TRY
        return best

    def _best(self) -> Ints:
        """(n, M) the best placement known, leader first."""
        placement = self._search.best
        if placement is None:
            return self._at
        leads = placement.replicas == placement.leader[:, None]
        order = np.argsort(~leads, axis=1, kind="stable")
        found = np.take_along_axis(placement.replicas, order, axis=1)
        return np.where(
            self._dual.columns.free[:, None], found, self._dual.columns.home
        ).astype(np.int32)

    def _offer(self, at: Ints) -> None:
        search, problem = self._search, self._search.problem
        leader = np.where(self._dual.columns.free, at[:, 0], problem.leader)
        placement = Placement(
            replicas=at.astype(np.int64), leader=leader.astype(np.int64)
        )
        if is_allowed(problem, placement):
            search.offer(placement)


def _cooling(hot: float, cold: float) -> Floats:
    """(STAGES,) temperatures; powers one by one, the same on every processor."""
    factor = (cold / hot) ** (1 / (STAGES - 1))
    heat = [hot]
    for _ in range(STAGES - 1):
        heat.append(heat[-1] * factor)
    return np.array(heat)

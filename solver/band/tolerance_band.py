"""Planning into tolerance bands: a bound first, then growing models of choices that matter."""

import logging
import math
from typing import Final

import numpy as np

from solver.band.annealing import EVEN_SHARE, BandAnnealing
from solver.band.bound_lifting import Lift, find_lift
from solver.band.candidates import BandCandidates
from solver.band.column_generation import ColumnGeneration, GeneratedColumns
from solver.band.load_prices import BandDual
from solver.band.restricted_master import RestrictedMaster
from solver.cpsat.model import MAX_PAIRS, WORK_OF_PAIR, ExactModel, pairs, solve_exactly
from solver.search.search import Search

log = logging.getLogger("plimsoll.solver")

FEW_PAIRS: Final = 600
"""Rows x brokers up to which the exact model alone is the quickest."""
SIZES: Final = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""Pairs of row and broker besides home, in successive models."""
REACHES: Final = (0.03, 0.1, 0.3)
"""Largest reduced costs, in costs of a move, for annealing and the restricted master."""
MOST_OVER_BOUND: Final = (0.1, 3.0)
"""A model looks for plans above the bound by at most this share and this many moves:
the tighter, the faster."""
MODEL_SHARE: Final = 0.3
"""Share of the remaining work for each model that proves nothing about the whole."""

LEAST_TURN: Final = 1e-3
"""Share of the search budget below which a turn has nothing left to try."""


def solve_band(search: Search) -> None:
    """Prove a bound, find plans, and close the gap within the search budget.

    Problems of up to `FEW_PAIRS` pairs of row and broker go to the exact model; larger
    ones are solved by prices first, and by the exact model if that leaves feasibility
    undecided. Results are left in `search`.
    """
    size = pairs(search.problem)
    if size > FEW_PAIRS:
        solve_by_prices(search)
    undecided = search.best is None and not search.infeasible
    if size <= FEW_PAIRS or (undecided and size <= MAX_PAIRS):
        solve_exactly(search)
        _even_out(search)


def solve_by_prices(search: Search) -> None:
    """Prove a bound by dual prices, then improve plans and bound in rounds.

    The prices come from column generation (Dantzig and Wolfe, 1960). Sets
    `search.infeasible` where some row has no allowed placement.
    """
    dual = BandDual(search.problem)
    if not math.isfinite(dual.value(np.zeros(dual.home.shape))):
        # Some row has no allowed placement.
        search.infeasible = True
        return
    generated = ColumnGeneration(search, dual).run()
    lift = find_lift(dual, generated.prices)
    search.prove(lift.of(generated.bound))
    log.info("band: no plan is under %.6g, work %.3g", search.bound, search.work)
    if search.proved or search.over():
        return
    candidates = BandCandidates(dual, generated.prices)
    rounds = _Rounds(search, generated, lift, candidates)
    rounds.run()
    rounds.even_out()


def _even_out(search: Search) -> None:
    """Even out without dual prices: over all candidates."""
    if search.best is not None:
        dual = BandDual(search.problem)
        prices = np.zeros(dual.home.shape)
        annealing = BandAnnealing(search, dual, prices, dual.columns.home)
        annealing.even_out(BandCandidates(dual, prices), float("inf"))


class _Rounds:
    """Annealing, integer programs and exact models, over more and more candidates."""

    def __init__(
        self, search: Search, generated: GeneratedColumns, lift: Lift, candidates: BandCandidates
    ) -> None:
        self._search, self._generated, self._lift = search, generated, lift
        self._candidates = candidates
        self._annealing = BandAnnealing(
            search, candidates.dual, generated.prices, generated.rounded
        )
        self._master = RestrictedMaster(candidates.dual, generated)
        self._turns = 0

    def run(self) -> None:
        """Continue until optimality is proved or the search budget is exhausted."""
        search = self._search
        self._improve()
        for size in SIZES:
            if self._done:
                return
            if self._pays(size):
                self._model(size)
            log.info(
                "band: F %.6g, bound %.6g, work %.3g", search.objective, search.bound, search.work
            )
            self._improve()
        before = -math.inf
        while not self._done and search.work - before >= LEAST_TURN * search.limits.work:
            before = search.work
            self._improve()

    def even_out(self) -> None:
        """Look for a more even plan among those as cheap as the incumbent."""
        self._annealing.even_out(self._candidates, self._search.objective - self._generated.bound)

    @property
    def _done(self) -> bool:
        search = self._search
        left = search.work_left - EVEN_SHARE * search.limits.work
        return search.stops() or search.proved or left <= 0

    def _improve(self) -> None:
        """Anneal, then recombine what annealing and column generation found."""
        search = self._search
        share = REACHES[self._turns % len(REACHES)]
        reach = share * search.problem.costs.move
        if not self._done:
            self._annealing.run(self._candidates, reach)
        if not self._done:
            best = self._annealing.best()
            self._master.run(search, best, reach, MODEL_SHARE * search.work_left)
        self._turns += 1

    def _pays(self, size: int) -> bool:
        """Whether a model of this many pairs is likely to prove something.

        With one replica a pair is a whole placement, and bounds rise by steps; with
        more, nothing is proved before all choices that matter are included.
        """
        single = bool((self._search.problem.rf == 1).all())
        return single or self._candidates.reach(size) >= self._needed()

    def _needed(self) -> float:
        """Choices with a higher reduced cost lead to nothing better."""
        value = self._search.objective
        return max(0.0, self._lift.needed(value) - self._generated.bound)

    def _model(self, size: int) -> None:
        search, needed = self._search, self._needed()
        if WORK_OF_PAIR * size > search.work_left:
            return
        reach = min(self._candidates.reach(size), needed)
        work = search.work_left * (1.0 if reach >= needed else MODEL_SHARE)
        known = self._candidates.within(reach, search.best)
        share, moves = MOST_OVER_BOUND
        limit = search.bound * (1 + share) + moves * search.problem.costs.move
        model = ExactModel(search.problem, min(search.objective, limit), known)
        proved = model.solve_part(search, work)
        # Choices left out have a reduced cost above `reach`.
        outside = self._lift.of(self._generated.bound + reach)
        search.prove(proved if reach == float("inf") else min(proved, outside))

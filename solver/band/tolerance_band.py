"""Planning into tolerance bands: a bound first, then growing models of choices that matter."""

import logging
import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from model.snapshot.snapshot import Count, Floats, Ints
from solver.band.annealing import EVEN_SHARE, BandAnnealing
from solver.band.candidates import BandCandidates
from solver.band.column_generation import ColumnGeneration, GeneratedColumns, first_excess_price
from solver.band.load_prices import BandDual
from solver.band.restricted_master import RestrictedMaster
from solver.band.row_sample import RowSample, is_worth_sampling
from solver.cpsat.model import MAX_PAIRS, WORK_OF_PAIR, ExactModel, pairs, solve_exactly
from solver.kernels.problem_arrays import prices_in_file
from solver.problem.problem import Problem
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

WORK_OF_CANDIDATE: Final = 1e-7
"""Work units for the reduced costs of one pair of row and broker; measured."""

COUNTED: Final = frozenset({Count.REPLICAS, Count.LEADERS})
"""Measures to which all partitions contribute alike."""
MOST_UNPRICED_PAIRS: Final = 5_000_000
"""Rows x brokers up to which all pairs are listed: 16 bytes each."""
SAMPLE_SHARE: Final = 0.3
"""Share of the work left for the linear program of a sample, and for annealing at its prices."""
SAMPLE_CLOSE: Final = 0.02
"""Share of its value that its gap may keep."""

LEAST_TURN: Final = 1e-3
"""Share of the search budget below which a turn has nothing left to try."""
SAME_PRICE: Final = 1e-9
"""Costs that differ by no more than this share are equal."""


def solve_band(search: Search) -> None:
    """Prove a bound, find plans, and close the gap within the search budget.

    Problems of up to `FEW_PAIRS` pairs of row and broker go to the exact model; larger
    ones are solved by prices first, and by the exact model if that leaves feasibility
    undecided and the exact model can hold it. Results are left in `search`: incumbent,
    bound, or `infeasible`. Raises ValueError if CP-SAT rejects a model as invalid.
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
    `search.infeasible` where some row has no allowed placement. Raises ValueError if CP-SAT
    rejects a model as invalid.
    """
    dual = BandDual(search.problem)
    if not math.isfinite(dual.value(np.zeros(dual.home.shape))):
        # Some row has no allowed placement.
        search.infeasible = True
        return
    start, prices = dual.columns.home, None
    if dual.columns.forced.any() or (np.abs(dual.home) > dual.tolerance).any():
        start = _plan_without_prices(search, dual)
        if is_worth_sampling(dual) and not search.over():
            start, prices = _plan_by_sample(search, dual, start)
    plan_early = partial(_plan_early, search, dual)
    generated = ColumnGeneration(search, dual).run(plan_early, start, prices)
    _prove(search, dual, generated)
    lift = _find_lift(dual, generated.prices)
    search.prove(lift.of(generated.bound))
    log.info("band: no plan is under %.6g, work %.3g", search.bound, search.work)
    if search.proved or search.over():
        return
    candidates = _candidates(search, dual, generated.prices)
    rounds = _Rounds(search, generated, lift, candidates)
    rounds.run()
    rounds.even_out()


def _plan_without_prices(search: Search, dual: BandDual) -> Ints:
    """Anneal before there are prices, where every pair fits in memory.

    Counts make many moves necessary, whichever they are, and the linear program slow. Without
    counts few moves suffice, and chance does not find them: then annealing only finds a way
    inside the bands. Returns (n, M) brokers for the first columns of the program.
    """
    problem, home = search.problem, dual.columns.home
    if search.best is None or problem.home.size > MOST_UNPRICED_PAIRS:
        return home
    annealing = BandAnnealing(search, dual, np.zeros(dual.home.shape), home)
    if COUNTED.intersection(problem.counted[k].resource for k in dual.kept.tolist()):
        annealing.run_without_prices(first_excess_price(dual))
        return home
    return annealing.way_inside(first_excess_price(dual))


def _plan_by_sample(search: Search, dual: BandDual, start: Ints) -> tuple[Ints, Floats]:
    """Anneal at the prices of a sample of the rows, whose program begins with (n, M) brokers.

    Returns (n, M) brokers and (B, K) prices to begin the whole linear program with.
    """
    sample = RowSample(dual)
    program = ColumnGeneration(search, sample)
    prices = program.run(start=start[sample.rows], share=SAMPLE_SHARE, close=SAMPLE_CLOSE).prices
    return _plan_early(search, dual, prices, share=SAMPLE_SHARE), prices


def _prove(search: Search, dual: BandDual, generated: GeneratedColumns) -> None:
    """Prove the bound of the linear program."""
    search.prove_by_prices(generated.bound, prices_in_file(search.problem, generated.prices))
    if generated.bound < 0.0:
        # Without prices, what rows must change remains: such as leaders on dead brokers.
        nothing = np.zeros(generated.prices.shape)
        search.prove_by_prices(dual.value(nothing), prices_in_file(search.problem, nothing))


def _plan_early(
    search: Search, dual: BandDual, prices: Floats, start: Ints | None = None, share: float = 1.0
) -> Ints:
    """Anneal at (B, K) prices that prove nothing yet, with a share of the work left.

    It begins with (n, M) brokers, those cheapest at the prices where none are given. Returns those
    of the incumbent, or the first ones where there is none.
    """
    candidates = _candidates(search, dual, prices)
    annealing = BandAnnealing(search, dual, prices, dual.best.copy() if start is None else start)
    annealing.run(candidates, REACHES[1] * search.problem.costs.move, share)
    return annealing.best()


def _candidates(search: Search, dual: BandDual, prices: Floats) -> BandCandidates:
    search.work += WORK_OF_CANDIDATE * search.problem.home.size
    return BandCandidates(dual, prices)


def _even_out(search: Search) -> None:
    """Even out without dual prices: over all candidates."""
    if search.best is not None:
        dual = BandDual(search.problem)
        prices = np.zeros(dual.home.shape)
        annealing = BandAnnealing(search, dual, prices, dual.columns.home)
        annealing.even_out(BandCandidates(dual, prices), float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Raises bounds to the next possible cost of all moves together.

    Let P be the cost of the moves and E that of the excess, F = P + E. Prices pi that
    are `slack` times below their maximum even prove P + E / slack >= D. P comes in
    steps, so either P reaches the step above D, or E has to make up the difference.
    """

    step: float
    """Every cost is a multiple of this; 0 where that is not known."""
    slack: float
    """At least 1."""

    def of(self, bound: float) -> float:
        """Return the bound of F that a bound of P + E / slack proves, both in units of F.

        Never below `bound`; equal to it where the step is not known.
        """
        if self.step <= 0.0 or math.isinf(bound):
            return bound
        below = math.floor(bound / self.step + SAME_PRICE) * self.step
        if bound <= below * (1 + SAME_PRICE):
            return bound
        # Lowered by the possible rounding error of the steps.
        above = (below + self.step) * (1 - SAME_PRICE / 10)
        return max(bound, min(above, below + self.slack * (bound - below)))

    def needed(self, value: float) -> float:
        """Return the least bound of P + E / slack that proves F >= value; the inverse of `of`.

        All in units of F. Equal to `value` where the step is not known.
        """
        if self.step <= 0.0 or math.isinf(value):
            return value
        below = (math.ceil(value / self.step - SAME_PRICE) - 1) * self.step
        return min(value, below + self.step / self.slack)


def _find_lift(dual: BandDual, prices: Floats) -> Lift:
    """Derive the lift from the costs of moves and (B, K) dual prices of deviation.

    The slack is the least ratio of the highest price that the excess allows to the
    highest price used, over the K dimensions.
    """
    steepest = np.abs(prices).max(axis=0, initial=0.0)
    slack = [
        most / price
        for most, price in zip(dual.most.tolist(), steepest.tolist(), strict=True)
        if price > 0
    ]
    step = _price_step(dual.problem)
    return Lift(step=step, slack=max(1.0, min(slack, default=1.0) * (1 - SAME_PRICE)))


def _price_step(problem: Problem) -> float:
    """A step of which every plan's cost of moves is a multiple; 0 if none is known.

    With one replica per row, a move changes the leader too.
    """
    free = problem.may.fixed_reason == 0
    prices, leader = problem.costs.replica[free], problem.costs.leader
    if not len(prices) or np.ptp(prices) > SAME_PRICE * prices.max():
        return 0.0
    price = float(prices[0])
    if (problem.rf[free] == 1).all() and not problem.may.forced.any():
        return price + leader
    if leader == 0:
        return price
    steps = price / leader
    whole = abs(steps - round(steps)) <= SAME_PRICE * steps
    return leader if whole else 0.0


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

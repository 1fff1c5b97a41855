"""The linear program of the tolerance band, solved by column generation."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.band.load_prices import BandDual
from solver.band.lp import BandProgram, LinearSolution
from solver.band.row_placements import Placements, describe
from solver.band.row_sample import RowSample
from solver.search.search import Search

log = logging.getLogger("plimsoll.solver")

MOST_ROUNDS: Final = 300
MOST_NEW: Final = 1_000
"""Columns that one round may add: those of least reduced cost; more for rows that must move."""
SHARE: Final = 0.7
"""Share of the work left for column generation: everything else depends on its prices."""
STABILISATION: Final = 0.5
"""Weight of the best prices in those priced next: pure LP prices oscillate (Wentges, 1997)."""
CLOSE: Final = 1e-5
"""Share of the program's value that its gap may keep."""
LEAST_REDUCED_COST: Final = 1e-7
"""A placement whose reduced cost is above minus this is not added."""
FIRST_EXCESS_PRICE: Final = 25.0
"""First price of excess, as a multiple of the cost of average moves that would end it."""
EXCESS_PRICE_FACTOR: Final = 5.0
"""Factor on the price of excess while there is excess."""
WORK_OF_STEP: Final = 4e-8
"""Work units of a simplex step, per row of the program; measured."""
WORK_OF_READING: Final = 5e-7
"""Work units for reading the program's solution, per row of the program; measured."""
WORK_OF_PRICE: Final = 3e-9
"""Work units for pricing one row on one broker in one dimension; measured."""
WORK_OF_COLUMN: Final = 3e-5
"""Work units for adding a column; measured."""

EARLY_WORK: Final = 1.0
"""Work units before the first early plan: smaller clusters have theirs by then."""
EARLY_EXCESS_WORK: Final = 4.0
"""The same while the program leaves excess: its placements are far from a plan then."""
EARLY_GROWTH: Final = 2.0
"""Factor on the work between two early plans."""
EARLY_GAIN: Final = 0.05
"""An early plan is sought where the program is below the incumbent by this share of F."""

PlanEarly = Callable[[Floats, Ints], object]
"""Looks for a plan at (B, K) prices, from (n, M) brokers, before the bound is proved."""


@dataclass(slots=True, kw_only=True)
class GeneratedColumns:
    """The bound, its dual prices, the rounded optimum and the columns generated.

    The bound of a sample of rows is an estimate, and its rounded optimum has no meaning.
    B brokers, K weighted dimensions, n rows, m columns.
    """

    bound: float
    """The best value D of the dual."""
    prices: Floats
    """(B, K) dual prices that prove it."""
    excess: float
    """Deviation that the program leaves outside the bands, summed."""
    rounded: Ints
    """(n, M) brokers, leader first: each row where most of it lies."""
    row: Ints
    """(m,) rows of the placements added."""
    at: Ints
    """(m, M) their brokers, leader first."""


class ColumnGeneration:
    """A restricted master program, and the columns it has (Dantzig and Wolfe, 1960)."""

    def __init__(self, search: Search, dual: BandDual | RowSample) -> None:
        self._search, self._dual, c = search, dual, dual.columns
        self._balanced: Bools = c.scale > 0
        self._place = np.full(c.scale.shape, -1, np.int64)
        self._place[self._balanced] = np.arange(self._balanced.sum())
        self._price = first_excess_price(dual)
        band = np.broadcast_to(dual.tolerance, c.scale.shape)[self._balanced]
        home = dual.home[self._balanced]
        self._program = BandProgram(
            low=-band - home,
            high=band - home,
            excess_price=self._excess_prices(),
            must_move=c.forced,
            copies=dual.copies,
        )
        self._row: list[Ints] = []
        self._at: list[Ints] = []
        self._known: set[tuple[int, bytes]] = set()
        self._early_at = EARLY_WORK
        """Work units of column generation at which the next early plan is due."""
        self._early_work = 0.0
        """Work units of early plans."""

    def run(
        self,
        plan_early: PlanEarly | None = None,
        start: Ints | None = None,
        prices: Floats | None = None,
        share: float = SHARE,
        close: float = CLOSE,
    ) -> GeneratedColumns:
        """Generate columns until the gap is close to 0, or until a share of the work left is done.

        `close` is a share of the program's value. The work is charged. Every row needs an allowed
        placement: `value` of the dual must be finite. `plan_early`, if given, is called on large
        clusters, where this takes long. `start`, (n, M) brokers, leader first, gives the first
        columns, and (B, K) `prices` the next ones: far outside the bands, the usual first prices
        send all rows to the same few brokers, round after round.
        """
        search, dual = self._search, self._dual
        prices = self._first_prices() if prices is None else prices
        best = GeneratedColumns(
            bound=-np.inf,
            prices=prices,
            excess=np.inf,
            rounded=dual.columns.home,
            row=np.zeros(0, np.int64),
            at=dual.columns.home[:0],
        )
        self._begin(dual.columns.home if start is None else start)
        trial, row_prices = prices, None
        enough = (1 - share) * search.work_left
        for _ in range(MOST_ROUNDS):
            self._try(best, trial)
            added = self._add(prices, row_prices)
            if not added and trial is not prices:
                self._try(best, prices)
                added = self._add(prices, row_prices)
            solution = self._solve()
            if solution is None:
                break
            best.excess = solution.excess
            self._plan(solution, plan_early)
            if search.stops() or search.work_left <= enough:
                break
            value = solution.objective - dual.refund
            if value - best.bound <= close * max(1.0, abs(value)):
                if not self._raise_price(solution):
                    break
            elif not added and row_prices is not None:
                break
            prices, row_prices = self._prices(solution), solution.row_prices
            trial = STABILISATION * best.prices + (1 - STABILISATION) * prices
        best.rounded = self._rounded()
        if self._row:
            best.row, best.at = np.concatenate(self._row), np.concatenate(self._at)
        return best

    def _begin(self, start: Ints) -> None:
        """Add what (n, M) brokers change against the present placement."""
        c = self._dual.columns
        row = np.flatnonzero((start != c.home).any(axis=1))
        self._known.update((p, start[p].tobytes()) for p in row.tolist())
        self._post(describe(c, row, start[row]))

    def _plan(self, solution: LinearSolution, plan_early: PlanEarly | None) -> None:
        """Look for a plan before the bound is proved, if one is due."""
        if plan_early is None:
            return
        search = self._search
        own = search.work - self._early_work
        ready = own >= EARLY_EXCESS_WORK or solution.excess <= LEAST_REDUCED_COST
        value = solution.objective - self._dual.refund
        if own >= self._early_at and ready and value < (1 - EARLY_GAIN) * search.objective:
            self._early_at = EARLY_GROWTH * own
            plan_early(self._prices(solution), self._rounded())
            self._early_work = search.work - own

    def _try(self, best: GeneratedColumns, prices: Floats) -> None:
        c = self._dual.columns
        value = self._dual.value(prices)
        self._search.work += WORK_OF_PRICE * len(c.rf) * c.scale.size
        if value > best.bound:
            best.bound, best.prices = value, prices

    def _add(self, prices: Floats, row_prices: Floats | None) -> int:
        """Add placements that are cheapest in the dual and have negative reduced cost."""
        c, best = self._dual.columns, self._dual.best
        row = np.flatnonzero((best != c.home).any(axis=1))
        new = describe(c, row, best[row])
        # At first a row that must move needs a placement at any cost.
        earned = np.where(c.forced[row], np.inf, 0.0)
        if row_prices is not None:
            earned = row_prices[row]
        reduced = new.price - earned + new.cost_of_load(prices)
        order = np.argsort(reduced, kind="stable")
        # Without a placement for each of these the program would have no solution.
        needed = int(np.isneginf(reduced).sum())
        order = order[reduced[order] < -LEAST_REDUCED_COST][: max(MOST_NEW, needed)]
        new = new.of(order)
        keys = [(p, at.tobytes()) for p, at in zip(new.row.tolist(), new.at, strict=True)]
        unknown = [i for i, key in enumerate(keys) if key not in self._known]
        self._known.update(keys)
        self._post(new.of(np.array(unknown, np.int64)))
        return len(unknown)

    def _post(self, new: Placements) -> None:
        self._row.append(new.row)
        self._at.append(new.at)
        known = (new.broker >= 0)[:, :, None]
        band = np.where(known, self._place[new.broker], -1)
        size = len(new.row), band.shape[1] * band.shape[2]
        self._program.add(new.row, new.price, band.reshape(size), new.shift.reshape(size))
        self._search.work += WORK_OF_COLUMN * len(new.row)

    def _solve(self) -> LinearSolution | None:
        """The optimum; None where the solver fails, so that what is proved has to do."""
        rows = max(1, self._program.size)
        most = int(self._search.work_left / (WORK_OF_STEP * rows))
        if most <= 0:
            return None
        before, solution, failed = self._program.iterations, None, ""
        try:
            solution = self._program.solve(most, self._search.stops)
        except ArithmeticError as exc:
            failed = str(exc)
        steps = self._program.iterations - before
        self._search.work += (WORK_OF_STEP * steps + WORK_OF_READING) * rows
        if failed and not self._search.over():
            log.warning("prices for the bands are not the best: %s", failed)
        return solution

    def _rounded(self) -> Ints:
        """(n, M) each row on its largest share; at home where no share is large enough."""
        c = self._dual.columns
        found, most = c.home.copy(), np.where(c.forced, 0.0, 0.5)
        share = self._program.shares().tolist()
        if not share:
            return found
        row, at = np.concatenate(self._row), np.concatenate(self._at)
        for i, (p, part) in enumerate(zip(row.tolist(), share, strict=True)):
            if part > most[p]:
                found[p], most[p] = at[i], part
        return found

    def _raise_price(self, solution: LinearSolution) -> bool:
        """Raise the price of excess if there is some; return whether that was possible."""
        if solution.excess <= LEAST_REDUCED_COST or self._price >= self._dual.most.max():
            return False
        self._price *= EXCESS_PRICE_FACTOR
        self._program.price_excess(self._excess_prices())
        return True

    def _prices(self, solution: LinearSolution) -> Floats:
        found = np.zeros(self._balanced.shape)
        found[self._balanced] = solution.prices
        return np.clip(found, -self._dual.most, self._dual.most)

    def _excess_prices(self) -> Floats:
        """(m,) one price for all, where the goals demand no less."""
        most = np.minimum(self._dual.most, self._price)
        return np.broadcast_to(most, self._balanced.shape)[self._balanced]

    def _first_prices(self) -> Floats:
        """Dual prices on brokers outside their band."""
        dual = self._dual
        outside = np.sign(dual.home) * (np.abs(dual.home) > dual.tolerance)
        price = np.minimum(dual.most, self._price / (5 * FIRST_EXCESS_PRICE))
        return outside * price * self._balanced


def first_excess_price(dual: BandDual | RowSample) -> float:
    """Return a price of excess, in units of F per mean load: average moves end it for less.

    If it is too low, columns generated while excess is cheap are of little use later; if it
    is too high, it is never paid.
    """
    c = dual.columns
    size = np.maximum(c.lead, c.follow)[c.free].max(axis=1, initial=0.0)
    size = np.sort(size[size > 0])
    if not len(size):
        return float(dual.most.max(initial=0.0))
    cost = np.sort(c.price[c.free])[c.free.sum() // 2] + c.leader_price
    return FIRST_EXCESS_PRICE * float(max(cost, 1e-9) / size[len(size) // 2])

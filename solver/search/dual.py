"""Dual prices of the deviations, and the Lagrangian bound of F they prove.

Column generation: `solver.kernels.relaxation` warms up and prices configurations over
which rows may be split, `solver.kernels.smoothing` finds the best dual prices of the
restricted problem. The two alternate while the smoothing is lowered.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from model.files import rounded
from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import changed
from solver.kernels.pricing import new_pricing_scratch
from solver.kernels.problem_arrays import NO_BUDGET, Columns, sum_loads_at, unit_prices
from solver.kernels.relaxation import (
    ROUNDING,
    drop_empty,
    dual_value,
    new_masses,
    place_forced_rows,
    price_all,
    sweep,
)
from solver.kernels.smoothing import Options, ascend, list_options

PRICED_BUDGETS: Final = ("replica_moves", "bytes", "leader_changes")
"""Budgets that can have a price, in the order of `Columns.budgets`."""

EXTRA_NODES: Final = 65_536
"""Nodes beyond four per row: large partitions are split over hundreds of brokers."""

TEMPERATURES: Final = (0.1, 0.03, 0.01, 0.003, 0.001)
"""Smoothing from first to last, in multiples of the cost of a move."""

AGAIN: Final = (0.1, 0.01, 0.001)
"""The same where prices of a similar problem are known."""

FROM_START: Final = TEMPERATURES[1:]
"""The same from prices of groups of brokers."""

WARM_SWEEPS: Final = 20
"""Sweeps over all rows before prices are optimised."""

MOST_PRICED: Final = 100_000_000
"""Rows x brokers x dimensions priced between two checks of the limits, about 0.1 s."""

MOST_EVALUATIONS: Final = 100
"""Evaluations of the smoothed dual between two pricings of all rows."""

MOST_ROUNDS: Final = 3
"""Pricings of all rows at one temperature."""

WORK_PER_ROW: Final = 4e-7
"""Work units for pricing one row, besides those of each broker; measured."""

WORK_PER_PRICE: Final = 0.9e-9
"""Work units for pricing one row with one replica on one broker in one dimension; measured."""

SETS: Final = 3.5
"""How many times as much it takes to price a row with several replicas; measured."""

WORK_PER_OPTION: Final = 3.2e-8
"""Work units for one configuration in one evaluation of the smoothed dual, besides those of
its loads; measured."""

WORK_PER_LOAD: Final = 3.5e-9
"""Work units for one load of a configuration in such an evaluation; measured."""


class Relaxation:
    """The Lagrangian relaxation during its solution; updated in place.

    Starts with every row at home: `v` is (B, K), the deviations there. `seed` decides the
    random order of the sweeps, and `stops` is whether the observer asks to stop.
    """

    def __init__(
        self, columns: Columns, v: Floats, seed: int, stops: Callable[[], bool] = lambda: False
    ) -> None:
        c = columns
        self.columns, self.stops = c, stops
        self.v: Floats = v.copy()
        """(B, K) deviations of the relaxed placement."""
        self.mean: Floats = np.ones(len(v))
        """(B,) load from which each broker deviates, in the unit of `scale`; more for groups."""
        self.rows: Ints = np.flatnonzero(c.free & (c.lead.any(axis=1) | c.forced))
        """(m,) rows that may change."""
        self.budget_prices: Floats = np.zeros(len(PRICED_BUDGETS))
        """Price of each of `PRICED_BUDGETS`, which `columns` charge besides costs."""
        self.price = self.unpriced = _median_price(c.price[self.rows])
        """Median cost of a new replica, leaving out free ones such as empty logs; `price` is with
        prices of budgets, that of leader changes included, and `unpriced` without."""
        self.masses = new_masses(c, 4 * len(self.rows) + EXTRA_NODES)
        """Which configurations each row is split over, and in what shares."""
        self.rng = np.random.default_rng(seed)
        self.scratch = new_pricing_scratch(c)
        self.bound = -np.inf
        """Best bound of F so far, before the refund of forced moves is subtracted."""
        self.prices: Floats = np.zeros((0, 0))
        """(B, K) dual prices that prove the bound."""
        self.start: Floats | None = None
        """(B, K) prices to begin with; None for those at the deviations."""
        self.work = 0.0
        """Work units spent."""
        self.impossible = False
        """A row that must move has nowhere to go."""
        if c.forced.any():
            q = unit_prices(c, 2.0 * c.weight * self.v)
            self.impossible = not place_forced_rows(c, self.masses, self.v, q, self.scratch)
        self.uncharged = c
        """The columns without prices of budgets."""

    def charge(self, prices: Floats) -> None:
        """Charge prices, one for each of `PRICED_BUDGETS`, from now on. Forgets the bound.

        Budgets without a limit must have a price of 0.
        """
        if not prices.any() and self.columns is self.uncharged:
            return
        c, (of_replica, of_byte, of_leader) = self.uncharged, prices.tolist()
        self.columns = changed(
            c,
            price=c.price + of_replica + of_byte * c.bytes_,
            leader_price=c.leader_price + of_leader,
        )
        self.budget_prices, self.bound = prices.copy(), -np.inf
        # What a budget of nothing costs only says that nothing may be done.
        of_replica, of_byte, of_leader = (prices * (c.budgets[: len(prices)] > 0)).tolist()
        self.price = max(
            _median_price(c.price[self.rows] + of_replica + of_byte * c.bytes_[self.rows]),
            (c.leader_price + of_leader) * (of_leader > 0.0),
        )

    @property
    def given_back(self) -> float:
        """What plans within the budgets pay for them at most, in units of F."""
        most, y = self.columns.budgets[: len(PRICED_BUDGETS)], self.budget_prices
        return float((y * most)[most != NO_BUDGET].sum()) * (1.0 + ROUNDING)


def _median_price(prices: Floats) -> float:
    """The median of the prices above 0; 1 without any."""
    prices = np.sort(prices[prices > 0.0])
    return float(prices[len(prices) // 2]) if len(prices) else 1.0


def solve_relaxation(r: Relaxation, work: float) -> None:
    """Improve dual prices and bound to convergence, for up to `work` work units.

    Call `warm_up` first. Leaves them in `r.prices` and `r.bound`; ends early when the observer
    asks to stop. At least one bound is computed.
    """
    end = r.work + work
    pi = 2.0 * r.columns.weight * r.v if r.start is None else r.start.copy()
    pi[~r.columns.holding] = 0.0
    for temperature in TEMPERATURES if r.start is None else FROM_START:
        _at_temperature(r, pi, temperature * r.price, end)
        if r.work >= end or r.stops():
            break


def resolve(r: Relaxation, prices: Floats, work: float, cut: float) -> None:
    """Solve a relaxation whose columns have changed a little, from prices (B, K) that were best.

    Forgets the old bound. Ends early with a bound of at least `cut`, after up to `work` work
    units, or when the observer asks to stop.
    """
    end, pi = r.work + work, prices.copy()
    r.bound = -np.inf
    for temperature in AGAIN:
        _at_temperature(r, pi, temperature * r.price, end)
        if r.bound >= cut or r.work >= end or r.stops():
            break


def warm_up(r: Relaxation, work: float = float("inf"), sweeps: int = WARM_SWEEPS) -> None:
    """Bring the relaxed placement near its optimum by sweeps over all rows.

    Ends early after `work` work units or when the observer asks to stop.
    """
    end, size = r.work + work, max(1, MOST_PRICED // max(1, r.v.size))
    q = unit_prices(r.columns, 2.0 * r.columns.weight * r.v)
    for _ in range(sweeps):
        order = r.rng.permutation(r.rows)
        for first in range(0, len(order), size):
            if r.work >= end or r.stops():
                break
            part = order[first : first + size]
            _spend(r, sweep(r.columns, r.masses, r.v, q, part, r.scratch))
    drop_empty(r.columns, r.masses, r.rows)


def _at_temperature(r: Relaxation, pi: Floats, t: float, end: float) -> None:
    """Generate columns at one temperature, keeping the best bound."""
    for _ in range(MOST_ROUNDS):
        # The first plan is rounded from what one round finds.
        if r.bound > -np.inf and (r.work >= end or r.stops()):
            break
        q, near = unit_prices(r.columns, pi), min(3.0 * t, 0.1 * r.price)
        made, priced = price_all(r.columns, r.masses, q, r.rows, near, r.scratch)
        _spend(r, priced + len(r.rows) // 20)
        _solve_restricted(r, pi, t, end)
        if made <= len(r.rows) // 500 or r.work >= end or r.stops():
            break
    prove_bound(r, pi)
    drop_empty(r.columns, r.masses, r.rows)


def _solve_restricted(r: Relaxation, pi: Floats, t: float, end: float) -> None:
    """Optimise the prices over the known configurations: the restricted master problem.

    Ends at about `end` work units, after at least one evaluation.
    """
    c, m = r.columns, r.masses
    split = r.rows[m.head[r.rows] >= 0]
    options = list_options(c, m, split)
    mass = np.zeros(len(options.cost))
    small = 1e-3 * r.price * t
    whole = np.ones(len(c.home), np.bool_)
    whole[split] = False
    # The kernels measure deviations from 1, so the rest of a group's mean is taken off here.
    unsplit = sum_loads_at(c, np.flatnonzero(whole), c.home[whole]) + 1.0 - r.mean[:, None]
    each = len(options.cost) * WORK_PER_OPTION + options.load.size * WORK_PER_LOAD
    most = min(MOST_EVALUATIONS, int(max(0.0, end - r.work) / max(1e-12, each)))
    r.work += each * ascend(c, options, unsplit, t, pi, mass, most, small)
    m.mass[options.node] = mass
    r.v[:] = _deviations(c, options, mass, unsplit)


def _deviations(c: Columns, o: Options, mass: Floats, unsplit: Floats) -> Floats:
    """(B, K) deviations of the relaxed placement."""
    found = unsplit.copy()
    for k in range(o.broker.shape[1]):
        at = np.flatnonzero(o.broker[:, k] >= 0)
        for d in range(found.shape[1]):
            load = mass[at] * o.load[at, k, d]
            found[:, d] += np.bincount(o.broker[at, k], load, len(found))
    return np.where(c.holding[:, None], found - 1.0, 0.0)


def prove_bound(r: Relaxation, pi: Floats) -> None:
    """Compute the bound of F that prices, (B, K), prove; keep the best in `r`.

    The prices are first rounded as a plan file has them, so that anybody can check the
    bound from the file.
    """
    in_file = np.array([[rounded(x) for x in row] for row in pi.tolist()])
    bound = dual_value(r.columns, in_file, r.scratch)
    bound -= float(((r.mean - 1.0)[:, None] * in_file).sum())
    _spend(r, len(r.rows) // 4)
    if bound > r.bound:
        r.bound, r.prices = bound, in_file


def _spend(r: Relaxation, priced: int) -> None:
    r.work += priced * pricing_work(r.columns)


def pricing_work(c: Columns) -> float:
    """Compute the work units for pricing one row on all brokers."""
    brokers, dims = len(c.scale), len(c.weight)
    each = WORK_PER_PRICE if c.home.shape[1] == 1 else SETS * WORK_PER_PRICE
    return WORK_PER_ROW + brokers * (dims + 2) * each

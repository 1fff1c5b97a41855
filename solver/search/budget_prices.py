"""Prices of the budgets: what F would gain by one more move, byte or leader change.

The relaxation knows no budgets. Where it moves more than one allows, each move is charged a price
besides its cost, at which it moves about as much as the budget allows. With a price y >= 0 for each
budget k, and L(y) the bound of the problem with these charges,

    F >= L(y) - the sum of y k over all budgets

for all plans within the budgets: Lagrangian relaxation (Everett, 1963). Reduced costs then say
which moves are worth their part of the budget.
"""

from typing import Final

import numpy as np

from model.files import rounded
from model.snapshot.snapshot import Floats
from solver.kernels.problem_arrays import NO_BUDGET, Columns
from solver.kernels.smoothing import list_options
from solver.search.dual import PRICED_BUDGETS, Relaxation, warm_up

SWEEPS: Final = 25
"""Sweeps over all rows, with other prices after each."""

FIRST_SHARE: Final = 1 / 8
"""First price of a budget, as a share of F without changes over the budget."""

STEEPNESS: Final = 3.0
"""A price changes with this power of what is used over what may be used."""

MOST_CHANGE: Final = 4.0
"""Factor by which a price rises or falls at once, at most."""

DAMPING: Final = 0.6
"""Exponent of that factor after the right price was overshot; else it grows by `RECOVERY`."""

RECOVERY: Final = 1.1

NEAR: Final = 1.1
"""Ratio of use to budget above which prices are looked for again."""

LEAST_USE: Final = 1e-9
"""Use that counts as none."""

LEAST_SHARE: Final = 1e-9
"""Share of F without changes below which a price of a whole budget is none."""


def exceeds(r: Relaxation) -> bool:
    """Return whether the relaxed placement uses more of a budget than rounding can make up for."""
    c = r.columns
    return are_limited(c) and bool((use_of(r) > NEAR * allowed(c) + units(r)).any())


def price_budgets(r: Relaxation, objective: float, work: float = float("inf")) -> None:
    """Charge the relaxation for budgets that it exceeds; leaves it as it is within all of them.

    Call `warm_up` first. `objective` is F of the placement without changes. Prices that are
    charged already are where the search for better ones begins. Ends after `work` work units, or
    when the observer asks to stop.
    """
    if not are_limited(r.columns) or work <= 0.0 or r.stops():
        return
    most, end = allowed(r.columns), r.work + work
    exceeded = use_of(r) > most
    if not exceeded.any():
        return
    # No change is worth more than all there is to gain, which a budget of nothing costs.
    unit = units(r)
    highest = max(objective, 0.0) / unit
    priced = np.isfinite(most) & (most > 0.0)
    prices = np.where(most == 0.0, highest, 0.0)
    first = np.minimum(FIRST_SHARE * max(objective, 0.0) / most[priced], highest[priced])
    prices[priced] = np.where(exceeded[priced], first, 0.0)
    prices = np.where(r.budget_prices > 0.0, r.budget_prices, prices)
    most = np.where(priced, most, 1.0)
    widest = np.log(MOST_CHANGE)
    reach, before = np.full(len(most), widest), np.zeros(len(most))
    for _ in range(SWEEPS):
        r.charge(_in_file(prices))
        if r.work >= end or r.stops():
            break
        warm_up(r, end - r.work, 1)
        over = np.where(priced, np.log(np.maximum(use_of(r), LEAST_USE) / most), 0.0)
        overshot = np.sign(over) * before < 0
        reach = np.where(overshot, DAMPING * reach, np.minimum(RECOVERY * reach, widest))
        before = np.sign(over)
        prices = np.minimum(prices * np.exp(np.clip(STEEPNESS * over, -reach, reach)), highest)
        # A budget that does not bind needs no price.
        prices[priced & (prices * np.maximum(most, unit) < LEAST_SHARE * objective)] = 0.0


def are_limited(c: Columns) -> bool:
    """Return whether any of `PRICED_BUDGETS` has a limit."""
    return bool((c.budgets[: len(PRICED_BUDGETS)] != NO_BUDGET).any())


def allowed(c: Columns) -> Floats:
    """(3,) what the budgets of `PRICED_BUDGETS` allow; infinite without a limit."""
    most = c.budgets[: len(PRICED_BUDGETS)]
    return np.where(most == NO_BUDGET, np.inf, most.astype(np.float64))


def units(r: Relaxation) -> Floats:
    """(3,) what one change uses of the budgets of `PRICED_BUDGETS`: the median of bytes."""
    size = r.columns.bytes_[r.rows]
    size = size[size > 0]
    return np.array([1.0, float(np.median(size)) if len(size) else 1.0, 1.0])


def use_of(r: Relaxation) -> Floats:
    """(3,) what the relaxed placement uses of the budgets of `PRICED_BUDGETS`."""
    c, m = r.columns, r.masses
    split = r.rows[m.head[r.rows] >= 0]
    options = list_options(c, m, split)
    row, mass, at = np.repeat(split, np.diff(options.start)), m.mass[options.node], options.broker
    held = (at[:, :, None] == c.home[row][:, None, :]).any(axis=2)
    new = mass * (~held & (at >= 0)).sum(axis=1)
    led = mass * (at[:, 0] != c.home[row, 0])
    return np.array([new.sum(), (new * c.bytes_[row]).sum(), led.sum()])


def _in_file(prices: Floats) -> Floats:
    """The prices as a plan file has them, so that anybody can check the bound from it."""
    return np.array([rounded(x) for x in prices.tolist()])

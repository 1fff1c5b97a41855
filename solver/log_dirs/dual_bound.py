"""A lower bound on the cost of any choice of directories, by weak duality."""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.budget import Budget
from solver.log_dirs.broker_dirs import CLOSE, WORK_OF_CALL, WORK_OF_PLACE, BrokerDirs

STEPS: Final = 100
"""Steps of the ascent; more gain next to nothing."""


def price_bound(dirs: BrokerDirs, where: Ints, budget: Budget) -> float:
    """Compute a lower bound of one broker's objective, in units of F, from dual prices.

    Subgradient ascent from the prices at a `where`, (k,), with Polyak's step length (1969).
    Capacities are left out, which only lowers the bound. Charges `budget` by the step; 0 if it
    allows none.
    """
    dual = _Dual(dirs)
    target = dirs.objective(where)
    price = dirs.cost_slope(dirs.deviation(dirs.used(where)))
    best, length = 0.0, 1.0
    for step in range(STEPS):
        if budget.over():
            break
        budget.work += WORK_OF_CALL + WORK_OF_PLACE * len(dirs.size) * len(dirs.fixed)
        value, ascent = dual.value(price)
        if value <= best and step % 10 == 9:
            length /= 2
        best = max(best, value)
        steep = float((ascent * ascent).sum())
        if steep <= 0 or target - best <= CLOSE * target:
            break
        price = dual.allowed(price + length * (target - value) / steep * ascent)
    return best


class _Dual:
    """The dual function of the prices, and its subgradient."""

    def __init__(self, dirs: BrokerDirs) -> None:
        self._dirs, self._slope = dirs, dirs.slope
        places = np.arange(len(dirs.fixed))
        stays: Bools = dirs.home[:, None] == places
        change_cost = np.where(stays, 0.0, dirs.price[:, None])
        may = dirs.allowed(np.arange(len(dirs.row)))
        self._change_cost: Floats = np.where(may, change_cost, np.inf)
        self._fixed: Floats = dirs.fixed * dirs.slope - 1.0

    def value(self, price: Floats) -> tuple[float, Floats]:
        """Return the bound at prices, (m,), and a subgradient there.

        Every replica goes where its bytes and its change cost least; every directory
        takes the most profitable deviation.
        """
        dirs = self._dirs
        each = dirs.size[:, None] * (price * self._slope) + self._change_cost
        at = each.argmin(axis=1)
        least = np.take_along_axis(each, at[:, None], axis=1).sum()
        brought = np.bincount(at, dirs.size, minlength=len(price)) * self._slope
        if dirs.excess is None:
            most, deviation = price * price / (4 * dirs.weight), price / 2 / dirs.weight
        else:
            most, deviation = np.abs(price) * dirs.tolerance, np.sign(price) * dirs.tolerance
        bound = float(least + (price * self._fixed).sum() - most.sum())
        return bound, brought + self._fixed - deviation

    def allowed(self, price: Floats) -> Floats:
        """Return the nearest prices that a deviation can have."""
        if self._dirs.excess is None:
            return price
        most = self._dirs.weight * self._dirs.excess
        return price.clip(-most, most)

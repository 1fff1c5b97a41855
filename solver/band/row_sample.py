"""A sample of the rows, whose linear program has nearly the same prices in a fraction of the time.

The largest rows are in it, and every s-th of the others, by leader and size, which then counts s
times: so every broker's load is represented. Rows that may not change are left out.
"""

import math
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.band.load_prices import BandDual
from solver.kernels.band import cheapest_of_all, stay_costs
from solver.kernels.pricing import new_pricing_scratch
from solver.kernels.problem_arrays import columns_of, unit_prices

LEAST: Final = 1_250
"""Rows of a sample, at least."""
PER_BROKER: Final = 25
"""Rows per broker, at least."""
LARGEST: Final = 0.2
"""Share of a sample for the largest rows."""
WORTH: Final = 2
"""A sample is drawn where there are at least this many times its rows."""


def size_of(brokers: int) -> int:
    """Return the number of rows of a sample."""
    return max(LEAST, PER_BROKER * brokers)


def is_worth_sampling(dual: BandDual) -> bool:
    """Whether there are so many rows that a sample of them saves time."""
    free = int(np.count_nonzero(dual.columns.free))
    return free >= WORTH * size_of(len(dual.home))


class RowSample:
    """What a linear program needs of a `BandDual`, over a sample of m of its n rows."""

    def __init__(self, dual: BandDual) -> None:
        self.rows, copies = _drawn(dual)
        """(m,) the rows, ascending."""
        self.columns = columns_of(dual.columns, self.rows)
        self.copies: Floats = copies
        """(m,) how often each row counts."""
        self.tolerance, self.most, self.home = dual.tolerance, dual.most, dual.home
        self.best: Ints = self.columns.home.copy()
        """(m, M) the cheapest placement of each row at the last prices."""
        self.refund = 0.0
        self._least: Floats = np.zeros(len(copies))
        self._scratch = new_pricing_scratch(self.columns)

    def value(self, prices: Floats) -> float:
        """Estimate the dual at (B, K) prices, in units of F; fills `best`. It proves nothing."""
        c, q = self.columns, unit_prices(self.columns, prices)
        cheapest_of_all(c, q, self.best, self._least, self._scratch)
        gained = self.copies * (self._least - stay_costs(c, q))
        here = prices * self.home - self.tolerance * np.abs(prices)
        # A library's sum differs between processors.
        return math.fsum([*gained.tolist(), *here.ravel().tolist()])


def _drawn(dual: BandDual) -> tuple[Ints, Floats]:
    """(m,) rows, ascending, and how often each counts."""
    c = dual.columns
    wanted = size_of(len(c.scale))
    size = np.maximum(c.lead, c.follow).max(axis=1, initial=0.0)
    free = np.flatnonzero(c.free)
    by_size = free[np.argsort(-size[free], kind="stable")]
    certain = round(LARGEST * wanted)
    largest, others = by_size[:certain], by_size[certain:]
    # By leader, and within each by size, which the sort keeps.
    others = others[np.argsort(c.home[others, 0], kind="stable")]
    step = max(1.0, len(others) / (wanted - certain))
    some = others[np.arange(step / 2, len(others), step).astype(np.int64)]
    copies = np.zeros(len(size))
    copies[largest] = 1.0
    copies[some] = len(others) / max(1, len(some))
    rows = np.flatnonzero(copies)
    return rows, copies[rows]

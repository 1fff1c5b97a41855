"""Placements of rows other than their homes, and what each changes."""

from dataclasses import dataclass

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.band import describe_placements
from solver.kernels.problem_arrays import Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """m placements of rows, with up to M replicas and K weighted dimensions."""

    row: Ints
    """(m,) rows."""
    at: Ints
    """(m, M) brokers, leader first."""
    price: Floats
    """(m,) cost of the move."""
    broker: Ints
    """(m, 2M) brokers that gain or lose load; -1 fills."""
    shift: Floats
    """(m, 2M, K) change of deviation there."""

    def cost_of_load(self, prices: Floats) -> Floats:
        """Compute (m,) costs of the shifts, in units of F, at (B, K) prices of deviation."""
        found = np.zeros(len(self.row))
        # Term by term: a library's sum of products differs between processors.
        for e in range(self.broker.shape[1]):
            for d in range(self.shift.shape[2]):
                cost = prices[self.broker[:, e], d] * self.shift[:, e, d]
                found += np.where(self.broker[:, e] >= 0, cost, 0.0)
        return found

    def of(self, chosen: Ints) -> "Placements":
        """Return the placements at the (m',) positions `chosen`, in that order."""
        return Placements(
            row=self.row[chosen],
            at=self.at[chosen],
            price=self.price[chosen],
            broker=self.broker[chosen],
            shift=self.shift[chosen],
        )


def describe(c: Columns, row: Ints, at: Ints) -> Placements:
    """Compute the costs and shifts of deviation of placing (m,) rows on (m, M) brokers.

    `at` has the leader first and -1 as filler. Costs are in units of F.
    """
    shape = len(row), 2 * at.shape[1]
    broker, shift = np.full(shape, -1), np.zeros((*shape, c.scale.shape[1]))
    price = np.zeros(len(row))
    describe_placements(c, row, at, price, broker, shift)
    return Placements(row=row, at=at, price=price, broker=broker, shift=shift)

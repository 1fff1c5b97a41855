"""The linear program of the tolerance band, over the placements of rows found so far.

minimise costs of the placements + price of the excess, so that every deviation is
within its band, except for the excess, and each row has at most one placement besides
its home: exactly one, if it must move.

Columns are added, and it is solved again from where it was (GLOP, primal simplex).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from ortools.linear_solver import linear_solver_pb2, pywraplp

from model.snapshot.snapshot import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSolution:
    """Optimal value and dual prices, in units of F, over the columns known so far."""

    objective: float
    prices: Floats
    """(m,) dual price of one unit of each band's sum."""
    row_prices: Floats
    """(n,) dual price of each row's constraint."""
    excess: float
    """Sum of what is outside the bands."""


SLICE: Final = 1_000
"""Simplex steps between two checks of the limits."""


class BandProgram:
    """A program of m sums to be kept in bands, and n rows to be placed.

    `low` and `high` are (m,) limits of each sum's shift, `excess_price` is (m,) prices of one
    unit outside, `must_move` (n,): rows that may not stay at home, and `copies` (n,): how often
    each row counts.
    """

    def __init__(
        self, low: Floats, high: Floats, excess_price: Floats, must_move: Bools, copies: Floats
    ) -> None:
        self.size = len(low) + len(must_move)
        """Number of constraints."""
        self.iterations = 0
        """Simplex steps so far."""
        self._solver = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.SetSolverSpecificParametersAsString(
            "use_preprocessing: false use_scaling: false use_dual_simplex: false "
            f"max_number_of_iterations: {SLICE}"
        )
        self._solved = False
        self._excess: list[Any] = []
        self._columns: list[Any] = []
        limits = zip(low.tolist(), high.tolist(), strict=True)
        self._bands = [self._solver.RowConstraint(*limit, "") for limit in limits]
        for band in self._bands:
            for sign in (1.0, -1.0):
                excess = self._solver.NumVar(0.0, pywraplp.Solver.infinity(), "")
                band.SetCoefficient(excess, sign)
                self._excess.append(excess)
        self._rows = [
            self._solver.RowConstraint(least, most, "")
            for least, most in zip((must_move * copies).tolist(), copies.tolist(), strict=True)
        ]
        self.price_excess(excess_price)
        self._solver.Objective().SetMinimization()

    def add(self, row: Ints, price: Floats, band: Ints, shift: Floats) -> None:
        """Add c placements of rows as columns.

        `row` and `price` are (c,): the row of each placement, and its cost in units of F.
        `band` and `shift` are (c, e): the bands whose sums it shifts, each at most once, and
        by how much; -1 in `band` fills.
        """
        # The last optimum has no values for new columns: the solver would print a line for each.
        self._solved = self._solved and not len(row)
        infinity, objective = pywraplp.Solver.infinity(), self._solver.Objective()
        entries = zip(row.tolist(), price.tolist(), band.tolist(), shift.tolist(), strict=True)
        for p, cost, at, by in entries:
            column = self._solver.NumVar(0.0, infinity, "")
            objective.SetCoefficient(column, cost)
            self._rows[p].SetCoefficient(column, 1.0)
            for i, value in zip(at, by, strict=True):
                if i >= 0 and value:
                    self._bands[i].SetCoefficient(column, value)
            self._columns.append(column)

    def price_excess(self, price: Floats) -> None:
        """Set the (m,) prices of one unit outside each band, in units of F, for later solves."""
        objective = self._solver.Objective()
        for excess, cost in zip(self._excess, np.repeat(price, 2).tolist(), strict=True):
            objective.SetCoefficient(excess, cost)

    def solve(self, most: int, stops: Callable[[], bool]) -> LinearSolution:
        """Solve over all columns.

        `most` limits the simplex steps, rounded up to a slice; `stops` is asked after
        each slice whether to give up. Raises ArithmeticError if either ends the solve,
        or if the solver fails numerically.
        """
        end = self.iterations + most
        status = self._solver.Solve()
        while status != pywraplp.Solver.OPTIMAL:
            steps = self._solver.Iterations()
            if steps < SLICE or self.iterations + steps >= end or stops():
                break
            self.iterations += steps
            status = self._solver.Solve()
        self.iterations += self._solver.Iterations()
        self._solved = status == pywraplp.Solver.OPTIMAL
        if not self._solved:
            raise ArithmeticError(f"the linear program ends with status {status}")
        found = self._values()
        duals = np.array(found.dual_value, np.float64)
        return LinearSolution(
            objective=float(self._solver.Objective().Value()),
            prices=-duals[: len(self._bands)],
            row_prices=duals[len(self._bands) :],
            excess=sum(found.variable_value[: len(self._excess)]),
        )

    def _values(self) -> Any:
        """All values of the last optimum at once: one call for each takes longer than a step."""
        found = linear_solver_pb2.MPSolutionResponse()
        self._solver.FillSolutionResponseProto(found)
        return found

    def shares(self) -> Floats:
        """Return the (columns,) share of each placement in the last optimum, 0 to a row's copies.

        Columns are in the order in which they were added; empty where columns were added since, or
        before the first optimum.
        """
        if not self._solved:
            return np.zeros(0)
        return np.array(self._values().variable_value[len(self._excess) :], np.float64)

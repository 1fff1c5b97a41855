"""The dual of the tolerance band: the bound that prices of load prove.

For any pi with |pi| at most the price of excess, no allowed plan's F is below

D(pi) = sum over rows of their least cost - sum_bk (pi_bk + tolerance_k |pi_bk|)

because a deviation inside its band earns at most its tolerance times |pi|, and one
outside pays more than it earns (weak duality).
"""

import math

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.band import cheapest_of_all
from solver.kernels.pricing import least_with, new_pricing_scratch
from solver.kernels.problem_arrays import find_columns, unit_prices
from solver.problem.placement import Placement, deviations, excess_price, is_allowed
from solver.problem.problem import Problem, sum_loads

ROUNDING = 1e-12
"""Share of the summed magnitudes that float arithmetic may have added."""


class BandDual:
    """The dual D and the rows' least costs, over n rows, B brokers, K weighted dimensions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.columns = find_columns(problem)
        self.kept: Ints = np.flatnonzero(problem.weight > 0).astype(np.int64)
        """(K,) positions among the problem's counted dimensions."""
        self.tolerance: Floats = problem.tolerance[self.kept]
        self.most: Floats = excess_price(problem) * problem.weight[self.kept]
        """(K,) the highest |pi| that is valid."""
        self.home: Floats = deviations(problem, problem.loads_before)[:, self.kept]
        """(B, K) deviations before the plan."""
        self.best: Ints = self.columns.home.copy()
        """(n, M) the cheapest placement of each row at the last prices."""
        self.least: Floats = np.zeros(len(self.best))
        """(n,) its cost."""
        self.copies: Floats = np.ones(len(self.best))
        """(n,) how often each row counts."""
        self.refund = math.fsum(problem.costs.refund.tolist())
        """Refund of forced moves, in units of F; already subtracted in `value`."""
        self._scratch = new_pricing_scratch(self.columns)
        self._fixed = _fixed_deviations(problem, self.kept)

    def value(self, prices: Floats) -> float:
        """Compute D, the dual bound of F, at (B, K) prices; fills `best` and `least`.

        A valid bound, in units of F, where no |price| exceeds `most`, which is not checked: the
        terms are added exactly (`math.fsum`) and their rounding errors subtracted. Not finite where
        some row has no allowed placement.
        """
        c = self.columns
        cheapest_of_all(c, unit_prices(c, prices), self.best, self.least, self._scratch)
        terms = [
            *self.least.tolist(),
            *(prices * self._fixed).ravel().tolist(),
            *(-self.tolerance * np.abs(prices)).ravel().tolist(),
            -self.refund,
        ]
        return math.fsum(terms) - ROUNDING * math.fsum(map(abs, terms))

    def reduced_costs(self, prices: Floats) -> tuple[Floats, Floats]:
        """Compute by how much F at least exceeds D with a broker in a row's placement.

        `prices` are (B, K). Returns (n, B) for a replica on the broker, and (n, B) for the
        leader, in units of F; infinite for rows that may not change and where rules forbid
        it. Fills `best` and `least`.
        """
        c = self.columns
        shape = len(self.best), len(self.problem.brokers)
        holds, leads = np.empty(shape), np.empty(shape)
        self.value(prices)
        rows = np.arange(len(self.best))
        least_with(c, unit_prices(c, prices), rows, holds, leads, self._scratch)
        least = self.least[:, None]
        return holds - least, leads - least

    def allowed(self, at: Ints) -> Placement | None:
        """Return the placement of (n, M) brokers, leader first; None if it breaks a rule.

        -1 fills. Rows that may not change keep the snapshot's leader; `at` has their home.
        """
        leader = np.where(self.columns.free, at[:, 0], self.problem.leader)
        placement = Placement(replicas=at.astype(np.int64), leader=leader.astype(np.int64))
        return placement if is_allowed(self.problem, placement) else None


def _fixed_deviations(problem: Problem, kept: Ints) -> Floats:
    """(B, K) deviations from only the rows that may not change; 0 if not balanced."""
    stay = problem.replicas.copy()
    stay[problem.may.fixed_reason == 0] = -1
    loads = sum_loads(stay, problem.leader, problem.lead, problem.follow, len(problem.brokers))
    return deviations(problem, loads)[:, kept]

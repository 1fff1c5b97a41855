"""Choices that can be part of a plan better than the incumbent."""

from dataclasses import dataclass

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.band.load_prices import BandDual
from solver.cpsat.variables import Choices
from solver.problem.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class BandCandidates:
    """Pairs of row and broker, with their reduced costs."""

    dual: BandDual
    holds: Floats
    """(n, B) as in `BandDual.reduced_costs`."""
    leads: Floats
    """(n, B) as in `BandDual.reduced_costs`."""

    def reach(self, pairs: int) -> float:
        """Return the reduced cost, in units of F, up to which about `pairs` pairs lie.

        Counts pairs of a row and a broker that does not hold it. Infinite where there
        are no more than `pairs` of them.
        """
        cost = self.holds[np.isfinite(self.holds) & ~self._home]
        if len(cost) <= pairs:
            return float("inf")
        return float(np.partition(cost, pairs)[pairs])

    def pairs(self, cost: float) -> tuple[Ints, Ints]:
        """Return (m,) rows and (m,) brokers with a reduced cost of at most `cost`.

        A broker that follows today stands for its taking the lead, any other for a new
        replica there. Only pairs that the rules allow; `cost` is in units of F.
        """
        follows = self._home.copy()
        rows = np.flatnonzero(self.dual.problem.leader >= 0)
        follows[rows, self.dual.problem.leader[rows]] = False
        near = np.where(self._home, follows & (self.leads <= cost), self.holds <= cost)
        # An infinite cost would also include pairs that no rule allows.
        free = self.dual.problem.may.fixed_reason == 0
        row, broker = np.nonzero(near & self.dual.problem.hold & free[:, None])
        return row, broker

    def within(self, cost: float, known: Placement | None) -> Choices:
        """Return the choices of rows with a reduced cost of at most `cost`.

        The present placement and the known one are always included.
        """
        problem = self.dual.problem
        hold = (self.holds <= cost) | problem.home
        led = np.zeros(hold.shape, np.bool_)
        rows = np.flatnonzero(problem.leader >= 0)
        led[rows, problem.leader[rows]] = True
        if known is not None:
            hold |= known.on(len(problem.brokers))
            led[rows, known.leader[rows]] = True
        hold &= problem.hold
        lead = problem.may_lead & hold & ((self.leads <= cost) | led)
        single = problem.rf == 1
        hold[single] &= lead[single]
        free = problem.may.fixed_reason == 0
        free &= (hold.sum(axis=1) > problem.rf) | (lead.sum(axis=1) > 1) | self._forced
        chosen = np.flatnonzero(free).tolist()
        return _listed(hold, chosen), _listed(lead, chosen)

    @property
    def _home(self) -> Bools:
        return self.dual.problem.home

    @property
    def _forced(self) -> Bools:
        return self.dual.problem.may.forced > 0


def find_candidates(dual: BandDual, prices: Floats) -> BandCandidates:
    """Compute the reduced cost, in units of F, of every pair of row and broker.

    `prices` are (B, K) dual prices of deviation.
    """
    holds, leads = dual.reduced_costs(prices)
    return BandCandidates(dual=dual, holds=holds, leads=leads)


def _listed(table: Bools, rows: list[int]) -> dict[int, tuple[int, ...]]:
    return {row: tuple(np.flatnonzero(table[row]).tolist()) for row in rows}

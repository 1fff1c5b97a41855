"""Choices that can be part of a plan better than the incumbent."""

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.band.load_prices import BandDual
from solver.cpsat.variables import Choices
from solver.problem.placement import Placement
from solver.problem.problem import Problem


class BandCandidates:
    """Pairs of row and broker, with their reduced costs in units of F.

    `prices` are (B, K) dual prices of deviation.
    """

    def __init__(self, dual: BandDual, prices: Floats) -> None:
        self.dual = dual
        self._holds, self._leads = dual.reduced_costs(prices)
        self._free = dual.problem.may.fixed_reason == 0

    def reach(self, pairs: int) -> float:
        """Return the reduced cost, in units of F, up to which about `pairs` pairs lie.

        Counts pairs of a row and a broker that does not hold it. Infinite where there
        are no more than `pairs` of them.
        """
        cost = self._holds[np.isfinite(self._holds) & ~self.dual.problem.home]
        if len(cost) <= pairs:
            return float("inf")
        return float(np.partition(cost, pairs)[pairs])

    def pairs(self, cost: float) -> tuple[Ints, Ints]:
        """Return (m,) rows and (m,) brokers with a reduced cost of at most `cost`.

        A broker that follows today stands for its taking the lead, any other for a new
        replica there. Only pairs that the rules allow; `cost` is in units of F.
        """
        problem = self.dual.problem
        follows = problem.home & ~_on(problem.leader, problem.home.shape)
        near = np.where(problem.home, follows & (self._leads <= cost), self._holds <= cost)
        # An infinite cost would also include pairs that no rule allows.
        row, broker = np.nonzero(near & problem.hold & self._free[:, None])
        return row, broker

    def within(self, cost: float, known: Placement | None) -> Choices:
        """Return the choices of rows with a reduced cost of at most `cost`.

        By row, the brokers that may hold and those that may lead, ascending; only rows with
        more than one choice, or that must change. The present placement and the known one
        are always included where rules allow them; `cost` is in units of F.
        """
        problem = self.dual.problem
        hold = (self._holds <= cost) | problem.home
        led = _on(problem.leader, hold.shape)
        if known is not None:
            hold |= known.on(len(problem.brokers))
            led |= _on(np.where(problem.leader >= 0, known.leader, -1), hold.shape)
        hold &= problem.hold
        lead = problem.may_lead & hold & ((self._leads <= cost) | led)
        single = problem.rf == 1
        hold[single] &= lead[single]
        open_ = (hold.sum(axis=1) > problem.rf) | (lead.sum(axis=1) > 1) | (problem.may.forced > 0)
        chosen = np.flatnonzero(self._free & open_).tolist()
        return _listed(hold, chosen), _listed(lead, chosen)


def all_pairs(problem: Problem) -> tuple[Ints, Ints]:
    """Return (m,) rows and (m,) brokers: every change of one row that the rules allow.

    A broker that follows today stands for its taking the lead, any other for a new replica.
    """
    free = problem.may.fixed_reason == 0
    leads = _on(problem.leader, problem.home.shape)
    row, broker = np.nonzero(problem.hold & ~leads & free[:, None])
    return row, broker


def _on(broker: Ints, shape: tuple[int, ...]) -> Bools:
    """(n, B) table with one broker of each row marked; none for -1."""
    marked: Bools = np.arange(shape[1]) == broker[:, None]
    return marked


def _listed(table: Bools, rows: list[int]) -> dict[int, tuple[int, ...]]:
    return {row: tuple(np.flatnonzero(table[row]).tolist()) for row in rows}

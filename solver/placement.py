"""A placement of every row, and what it is worth by the solver's own arithmetic."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot import Bools, Floats, Ints
from solver.problem import CAPACITY_SLACK, Problem, sum_loads

NOTHING: Final = 1e-12
"""A difference of F under this is rounding of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where replicas lie and who leads."""

    on: Bools
    """(n, B)"""
    leader: Ints
    """(n,) position of the leading broker, -1 for none."""

    @classmethod
    def home(cls, problem: Problem) -> "Placement":
        """The placement that the snapshot has."""
        return cls(on=problem.home, leader=problem.leader)

    def reverted(self, problem: Problem, row: int) -> "Placement":
        """The same with one row as the snapshot has it."""
        on, leader = self.on.copy(), self.leader.copy()
        on[row], leader[row] = problem.home[row], problem.leader[row]
        return Placement(on=on, leader=leader)


def changed_rows(problem: Problem, placement: Placement) -> list[int]:
    """Rows that differ from the snapshot."""
    differs = (placement.on != problem.home).any(axis=1)
    differs |= placement.leader != problem.leader
    return [int(row) for row in np.flatnonzero(differs)]


def loads_of(problem: Problem, placement: Placement) -> Floats:
    """(B, R) load per broker."""
    return sum_loads(placement.on, placement.leader, problem.lead, problem.follow)


def deviations(problem: Problem, loads: Floats) -> Floats:
    """(B, K) utilisation / level - 1; 0 for brokers that are not levelled."""
    relative: Floats = loads[:, problem.column] * problem.slope - 1.0
    relative[~problem.may.holding] = 0.0
    return relative


def objective(problem: Problem, placement: Placement) -> float:
    """F: the weighted squared deviations and the prices."""
    return deviation_cost(problem, loads_of(problem, placement)) + price_of(
        problem, placement
    )


def deviation_cost(problem: Problem, loads: Floats) -> float:
    """The part of F that is balance, from (B, R) loads."""
    return float((deviations(problem, loads) ** 2 @ problem.weight).sum())


def price_of(problem: Problem, placement: Placement) -> float:
    """The part of F that is prices."""
    rows = changed_rows(problem, placement)
    return float(_prices(problem, placement, rows).sum())


def _prices(problem: Problem, placement: Placement, rows: list[int]) -> Floats:
    """(len(rows),) price of each changed row; replicas that had to leave are free."""
    on, home = placement.on[rows], problem.home[rows]
    new = (on & ~home).sum(axis=1)
    left = (home & ~on & problem.may.leaving).sum(axis=1)
    paid: Floats = np.maximum(0, new - left) * problem.prices.replica[rows]
    changed = placement.leader[rows] != problem.leader[rows]
    paid += changed * problem.prices.leader
    return paid


def gains(problem: Problem, placement: Placement) -> dict[int, float]:
    """What F would rise by with one changed row left as it was, others kept."""
    loads = loads_of(problem, placement)
    cost = deviation_cost(problem, loads)
    rows = changed_rows(problem, placement)
    found = {}
    for row, price in zip(rows, _prices(problem, placement, rows), strict=True):
        without = loads - row_loads(problem, placement, row)
        without += row_loads(problem, Placement.home(problem), row)
        found[row] = deviation_cost(problem, without) - cost - float(price)
    return found


def row_loads(problem: Problem, placement: Placement, row: int) -> Floats:
    """(B, R) what one row adds to each broker."""
    on, led = placement.on[row], int(placement.leader[row])
    loads: Floats = on[:, None] * problem.follow[row]
    if led >= 0 and on[led]:
        loads[led] = problem.lead[row]
    return loads


def is_allowed(problem: Problem, placement: Placement) -> bool:
    """Whether capacity, replica limits and leaving brokers are respected."""
    return next(broken_limits(problem, placement), None) is None


def broken_limits(problem: Problem, placement: Placement) -> Iterator[int]:
    """Brokers over a limit, or left with replicas that had to go."""
    loads = loads_of(problem, placement)
    count = placement.on.sum(axis=0)
    over = (loads > problem.allowed * (1 + CAPACITY_SLACK)).any(axis=1)
    over |= count > problem.allowed_replicas
    over |= problem.may.leaving & placement.on[problem.leader >= 0].any(axis=0)
    yield from (int(b) for b in np.flatnonzero(over))


def without_needless(problem: Problem, placement: Placement) -> Placement:
    """The placement less those changes that F does not miss."""
    while True:
        gain = gains(problem, placement)
        needless = [
            row
            for row in sorted(gain, key=lambda r: (gain[r], r))
            if gain[row] <= NOTHING and not problem.may.forced[row]
        ]
        for row in needless:
            reverted = placement.reverted(problem, row)
            if is_allowed(problem, reverted):
                placement = reverted
                break
        else:
            return placement

"""A proof by numbers of moves: they are whole, which prices do not see.

Where moves cost about the same, most of the gap lies between the fraction of a move
that prices allow and the whole one. So the number k of rows that take a costly
configuration is tried value by value: |v|^2 gets one more square, of what the number
misses k by, times a large factor; it is 0 for every choice of k. Prices that prove a
bound for k prove it for all larger numbers too if the number's own price is not above
0, for all smaller ones if it is not below.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools
from solver.bounds.configurations import ConfigurationList
from solver.bounds.incumbent import WORK_PER_OPERATION, Incumbent
from solver.kernels.node_bound import (
    CUTOFF,
    EFFORT,
    FLOOR,
    SearchTree,
    bound_node,
    new_tree,
)

STIFFNESS: Final = 1e3
"""What a number that is one off costs, in prices of a move."""

COSTLY: Final = 0.5
"""Share of the price of a move from which on a configuration is counted."""

PROMISING_DISTANCE: Final = 2
"""Where numbers so far from the most promising one are open at the root, so many are
that it is no use to search their trees."""


def prove_by_counts(best: Incumbent, end: float) -> None:
    """Search the trees of all numbers of moves, where few of those are open."""
    search = best.local.search
    if search.proved or search.stopped:
        return
    counts = _Counts.of(best)
    first = counts.lowest()
    if (
        min(
            counts.root(first - PROMISING_DISTANCE),
            counts.root(first + PROMISING_DISTANCE),
        )
        < best.goal
    ):
        return
    floor = counts.floor((first, 1), end)
    if floor is not None:
        below = counts.floor((first - 1, -1), end)
        if below is not None:
            best.prove(min(floor, below))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """The trees of R rows, by how many of them take a costly configuration."""

    best: Incumbent
    listed: ConfigurationList
    costly: Bools
    stiffness: float

    @classmethod
    def of(cls, best: Incumbent) -> "_Counts":
        price = best.local.relaxation.price
        costly = best.listed.configurations.price >= COSTLY * price
        stiffness = float(np.sqrt(STIFFNESS * price))
        listed = best.listed.counted(costly, stiffness)
        return cls(best=best, listed=listed, costly=costly, stiffness=stiffness)

    def lowest(self) -> int:
        """The number with the least bound at its root, from the best plan's on."""
        search = self.best.local.search
        k = int(self.costly[self.best.chosen].sum())
        bound = self.root(k)
        for step in (1, -1):
            while not search.over() and (beside := self.root(k + step)) < bound:
                k, bound = k + step, beside
        return k

    def floor(self, numbers: tuple[int, int], end: float) -> float | None:
        """What no choice is under whose number is the first one or a step on.

        None where that takes too long.
        """
        k, step = numbers
        floor = np.inf
        while 0 <= k <= len(self.listed.rows):
            tree = self._tree(k)
            tree.figure[CUTOFF] = self.best.goal
            bound = self._bound(tree)
            if bound >= self.best.goal and step * tree.pi[0, -1] <= 0.0:
                return min(floor, bound)
            if not self.best.exhaust(self.listed.configurations, tree, end):
                return None
            floor = min(floor, float(tree.figure[FLOOR]))
            k += step
        return floor

    def root(self, k: int) -> float:
        """What is proved at once for a number; there are none under 0 or over R."""
        if not 0 <= k <= len(self.listed.rows):
            return np.inf
        return self._bound(self._tree(k))

    def _bound(self, tree: SearchTree) -> float:
        bound = bound_node(self.listed.configurations, tree, 0, self.best.heat)
        self.best.local.search.work += float(tree.counter[EFFORT]) * WORK_PER_OPERATION
        return float(bound)

    def _tree(self, k: int) -> SearchTree:
        v = self.listed.fixed.copy()
        v[-1] = -self.stiffness * k
        pi = np.append(self.best.prices, 0.0)
        return new_tree(self.listed.configurations, v, pi)

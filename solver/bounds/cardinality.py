"""A proof by number of moves: it is an integer, which dual prices ignore.

Where moves cost about the same, most of the gap lies between the fractional number of
moves that prices allow and the next integer. So the number k of rows that take a costly
configuration is tried value by value: |v|^2 gets one more square, of the difference
between that number and k, times a large factor; it is 0 for every choice with k such
rows. Prices that prove a bound for k prove it for all larger numbers too if the price
of the number itself is at most 0, for all smaller ones if it is at least 0.
"""

from typing import Final

import numpy as np

from solver.bounds.incumbent import WORK_PER_OPERATION, Incumbent
from solver.kernels.node_bound import CUTOFF, EFFORT, FLOOR, SearchTree, bound_node, new_tree

STIFFNESS: Final = 1e3
"""Cost of a number that is one off, in costs of a move."""

COSTLY: Final = 0.5
"""Share of the cost of a move from which on a configuration is counted."""

PROMISING_DISTANCE: Final = 2
"""If numbers this far from the most promising one are open at the root, too many are
for searching their trees."""


def prove_by_counts(best: Incumbent, end: float) -> None:
    """Search the trees of all numbers of moves, if few of them are open.

    Ends at `end`, in work units that the search has spent. Raises the proved bound if all
    trees are searched by then, and may find a better incumbent. Searches no tree where
    the search is proved or stopped, or where a number `PROMISING_DISTANCE` from the most
    promising one is still open.
    """
    search = best.local.search
    if search.near_enough or search.stopped:
        return
    counts = _Counts(best)
    first = counts.lowest()
    near = (counts.root(first + far) for far in (-PROMISING_DISTANCE, PROMISING_DISTANCE))
    if min(near) < best.goal:
        return
    floor = counts.floor((first, 1), end)
    if floor is not None:
        below = counts.floor((first - 1, -1), end)
        if below is not None:
            best.prove(min(floor, below))


class _Counts:
    """Trees of R rows, by how many of them take a costly configuration."""

    def __init__(self, best: Incumbent) -> None:
        price = best.local.relaxation.price
        self.best = best
        self.costly = best.listed.configurations.price >= COSTLY * price
        self.stiffness = float(np.sqrt(STIFFNESS * price))
        self.listed = best.listed.counted(self.costly, self.stiffness)

    def lowest(self) -> int:
        """The number with the least bound at its root, searched from the incumbent's."""
        search = self.best.local.search
        k = int(self.costly[self.best.chosen].sum())
        bound = self.root(k)
        for step in (1, -1):
            while not search.over() and (beside := self.root(k + step)) < bound:
                k, bound = k + step, beside
        return k

    def floor(self, numbers: tuple[int, int], end: float) -> float | None:
        """A bound of all choices whose number is the first one or further steps on.

        None where the work limit `end` is reached first.
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
        """The bound at the root for a number; infinite below 0 and above R."""
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
        return new_tree(self.listed.configurations, v, pi, self.listed.between)

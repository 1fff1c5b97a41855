"""Branch and bound on where the largest rows go.

Dual prices let a row be split over brokers. Where a row is large compared with a broker, that
causes most of the gap, and prices say little about where it belongs. So the row that gains most by
being split is put on each of its brokers in turn, and the relaxation is solved again, best bound
first (Land and Doig, 1960). A row lies on exactly one broker, so the least bound of all nodes that
are open or were pruned is a bound of F.

A node waits with the bound that its reduced cost proves, and is solved when its turn
comes. Where splitting saves less than `MOST_SAVED`, a node is a start for the search.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.bounds.single_replica_choices import SLACK, WORK_PER_OPERATION, find_choices
from solver.kernels.branching import most_split, place_cheapest, price_children, relax, restore
from solver.kernels.problem_arrays import Columns
from solver.kernels.relaxed_point import Relaxed, new_relaxed
from solver.search.dual import Relaxation
from solver.search.search import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A relaxed placement of R rows, with dual prices."""

    prices: Floats
    """(B, K) prices of deviation."""
    at: Ints
    """(R,) int16 broker that holds most of each row."""
    row: Ints
    """(M,) rows that are split, once for each broker."""
    broker: Ints
    """(M,) brokers of the split rows."""
    mass: Floats
    """(M,) shares of the split rows."""


@dataclass(slots=True, kw_only=True)
class Node:
    """One node: the rows decided so far, and the bound this proves."""

    bound: float
    point: Point
    """The parent's point; once solved, its own."""
    parent: "Node | None" = None
    row: int = -1
    """Position of the row decided here; -1 at the root."""
    broker: int = -1
    started: bool = False
    """Whether it, or a node above it, is a start."""


METHOD: Final = "giants kept whole"

NODE_ACCURACY: Final = 0.003
"""Accuracy of a node's bound, as a share of the best F."""

SMALL: Final = 1e-6
"""Least gain of a row by a shift, in costs of a move."""

MOST_LOOKS: Final = 300
"""Iterations for one node at most."""

MOST_EFFORT: Final = 200_000_000
"""Operations for one node at most, about 0.5 s: an early bound is as valid."""

MOST_SAVED: Final = 3.0
"""Most that splitting any row may save in a start, in costs of a move."""

MOST_STARTS: Final = 6
"""Starts kept, those with the least bounds."""

MOST_SOLVED: Final = 20_000
"""Nodes solved at most, which bounds the memory."""


class LargePartitionTree:
    """The open nodes; their bounds leave out what is decided beforehand.

    The root is at the prices of the relaxation. All rows must have one replica
    (`single_replica_choices.has_choices`).
    """

    def __init__(self, search: Search, c: Columns, r: Relaxation) -> None:
        self.search = search
        self.choices = find_choices(search, c, r)
        rows = self.choices.rows
        x = new_relaxed(self.choices.cost, c.lead[rows], c.scale, self.choices.fixed, c.weight)
        place_cheapest(x, r.prices)
        self._relaxed = x
        self._price = r.price
        root = Node(bound=-np.inf, point=_point(x, r.prices))
        self.waiting = [(root.bound, 0, root)]
        """Open nodes, a heap by bound, then by age."""
        self.least = np.inf
        """Least bound of the pruned nodes."""
        self.made, self.solved = 1, 0
        self.starts: list[Node] = []
        """Solved nodes whose points are starts for the search, the least bound first."""

    def grow(self, work: float) -> None:
        """Branch for up to `work` work units, and prove the resulting bound.

        At first, and after 1, 3, 7 and so on solved nodes, the child of least bound is
        followed down to a start (diving). Ends early with the search, at `MOST_SOLVED` nodes,
        or once the incumbent is proved optimal.
        """
        search, end = self.search, self.search.work + work
        while self.waiting and self.solved < MOST_SOLVED and not search.over(end):
            node: Node | None = heappop(self.waiting)[2]
            follow = self.solved & (self.solved + 1) == 0
            while node is not None:
                children = self._branch(node)
                node = min(children, key=lambda n: n.bound, default=None)
                ended = node is not None and (node.started or search.over(end))
                if not follow or ended:
                    node = None
                for child in children:
                    if child is not node:
                        heappush(self.waiting, (child.bound, self.made, child))
                        self.made += 1
            open_ = self.waiting[0][0] if self.waiting else np.inf
            proved = min(open_, self.least) + self.choices.decided - SLACK
            search.prove(min(proved, search.objective), METHOD)
            if search.near_enough:
                return

    def _branch(self, node: Node) -> list[Node]:
        """Solve a node; return its children, none if it is pruned or decided."""
        x, cut = self._relaxed, self.search.objective - self.choices.decided
        solved = self._solve(node, cut) if node.bound < cut else node.bound
        if node.bound >= cut:
            self.least = min(self.least, node.bound)
            return []
        row, saved = most_split(x)
        if saved < MOST_SAVED * self._price and not node.started:
            node.started = True
            self.starts = sorted([*self.starts, node], key=lambda n: n.bound)[:MOST_STARTS]
        if row < 0:
            self.least = min(self.least, node.bound)
            return []
        more = np.empty(len(x.fixed))
        effort = price_children(x, row, more)
        self.search.work += effort * WORK_PER_OPERATION
        return [
            Node(
                # `more` is over what the node's own prices prove; those above it may have
                # proved more of the node.
                bound=max(node.bound, solved + float(more[b])),
                point=node.point,
                parent=node,
                row=row,
                broker=int(b),
                started=node.started,
            )
            for b in np.flatnonzero(np.isfinite(more))
        ]

    def _solve(self, node: Node, cut: float) -> float:
        """Relax a node; return the bound that the prices left in `relaxed` prove."""
        x = self._relaxed
        x.decided[:] = -1
        above: Node | None = node
        while above is not None and above.row >= 0:
            x.decided[above.row] = above.broker
            above = above.parent
        p = node.point
        restore(x, p.at, p.row, p.broker, p.mass)
        within = NODE_ACCURACY * self.search.objective
        left = int(self.search.work_left / WORK_PER_OPERATION)
        most = MOST_LOOKS, min(MOST_EFFORT, left)
        bound, _, effort = relax(x, within, cut, *most, SMALL * self._price)
        self.search.work += effort * WORK_PER_OPERATION
        self.solved += 1
        node.bound = max(node.bound, bound)
        node.point = _point(x, x.prices)
        return float(bound)


def _point(x: Relaxed, prices: Floats) -> Point:
    held = x.mass > 0.0
    row, broker = np.nonzero(held & (held.sum(axis=1) > 1)[:, None])
    return Point(
        prices=prices.copy(),
        at=x.mass.argmax(axis=1).astype(np.int16),
        row=row,
        broker=broker,
        mass=x.mass[row, broker],
    )

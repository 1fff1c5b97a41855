"""Branch and bound on where the largest rows go.

Dual prices let a row be split over brokers. Where a row is large compared with a broker, that
causes most of the gap, and prices say little about where it belongs. So the row that gains most by
being split is put on each of its brokers in turn, and the relaxation is solved again, best bound
first (Land and Doig, 1960). A row lies on exactly one broker, so the least bound of all nodes that
are open or were pruned is a bound of F.

A node waits with the bound that its reduced cost proves, and is solved when its turn
comes. Where splitting saves less than `MOST_SAVED`, a node is a start for the search.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.bounds.single_replica_choices import SLACK, RowChoices, find_choices
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


@dataclass(slots=True, kw_only=True)
class LargePartitionTree:
    """The open nodes; their bounds leave out what is decided beforehand."""

    search: Search
    choices: RowChoices
    relaxed: Relaxed
    price: float
    """Typical cost of a move."""
    waiting: list[tuple[float, int, Node]]
    """Open nodes, a heap by bound, then by age."""
    least: float = np.inf
    """Least bound of the pruned nodes."""
    made: int = 1
    solved: int = 0
    starts: list[Node] = field(default_factory=list)
    """Solved nodes whose points are starts for the search, the least bound first."""


METHOD: Final = "giants kept whole"

WORK_PER_OPERATION: Final = 3e-9

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


def plant_tree(search: Search, c: Columns, r: Relaxation) -> LargePartitionTree:
    """Create the tree with its root, at the prices of the relaxation.

    All rows must have one replica (`single_replica_choices.has_choices`).
    """
    choices = find_choices(search, c, r)
    relaxed = new_relaxed(choices.cost, c.lead[choices.rows], c.scale, choices.fixed, c.weight)
    place_cheapest(relaxed, r.prices)
    root = Node(bound=-np.inf, point=_point(relaxed, r.prices))
    return LargePartitionTree(
        search=search,
        choices=choices,
        relaxed=relaxed,
        price=r.price,
        waiting=[(root.bound, 0, root)],
    )


def grow_tree(tree: LargePartitionTree, work: float) -> None:
    """Branch for up to `work` work units, and prove the resulting bound.

    After the first node, the second, the fourth and so on, the cheapest child is
    followed down to a start (diving).
    """
    search, end = tree.search, tree.search.work + work
    while tree.waiting and tree.solved < MOST_SOLVED and not search.over(end):
        node: Node | None = heappop(tree.waiting)[2]
        follow = tree.solved & (tree.solved + 1) == 0
        while node is not None:
            children = _branch(tree, node)
            node = min(children, key=lambda n: n.bound, default=None)
            ended = node is not None and (node.started or search.over(end))
            if not follow or ended:
                node = None
            for child in children:
                if child is not node:
                    heappush(tree.waiting, (child.bound, tree.made, child))
                    tree.made += 1
        open_ = tree.waiting[0][0] if tree.waiting else np.inf
        proved = min(open_, tree.least) + tree.choices.decided - SLACK
        search.prove(min(proved, search.objective), METHOD)
        if search.proved:
            return


def _branch(tree: LargePartitionTree, node: Node) -> list[Node]:
    """Solve a node; return its children, none if it is pruned or decided."""
    x, cut = tree.relaxed, tree.search.objective - tree.choices.decided
    solved = _solve(tree, node, cut) if node.bound < cut else node.bound
    if node.bound >= cut:
        tree.least = min(tree.least, node.bound)
        return []
    row, saved = most_split(x)
    if saved < MOST_SAVED * tree.price and not node.started:
        node.started = True
        tree.starts = sorted([*tree.starts, node], key=lambda n: n.bound)[:MOST_STARTS]
    if row < 0:
        tree.least = min(tree.least, node.bound)
        return []
    more = np.empty(len(x.fixed))
    effort = price_children(x, row, more)
    tree.search.work += effort * WORK_PER_OPERATION
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


def _solve(tree: LargePartitionTree, node: Node, cut: float) -> float:
    """Relax a node; return the bound that the prices left in `relaxed` prove."""
    x = tree.relaxed
    x.decided[:] = -1
    above: Node | None = node
    while above is not None and above.row >= 0:
        x.decided[above.row] = above.broker
        above = above.parent
    p = node.point
    restore(x, p.at, p.row, p.broker, p.mass)
    within = NODE_ACCURACY * tree.search.objective
    left = int(tree.search.work_left / WORK_PER_OPERATION)
    most = MOST_LOOKS, min(MOST_EFFORT, left)
    bound, _, effort = relax(x, within, cut, *most, SMALL * tree.price)
    tree.search.work += effort * WORK_PER_OPERATION
    tree.solved += 1
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

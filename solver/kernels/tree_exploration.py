"""Depth-first branch and bound over whole rows, bounded by dual prices at every node.

With configuration i of a row instead of its cheapest one, the bound of
`solver.kernels.node_bound` rises by their difference in cost: configurations that then
reach the cutoff are left out below the node. The row that the smoothed masses split
most is branched on, its cheapest configuration first, and the prices start at the
parent's; so depth-first search needs only one node per row in memory.
"""

from solver.kernels.compiled import compiled
from solver.kernels.node_bound import (
    CUTOFF,
    EFFORT,
    FLOOR,
    FRESH,
    LEVEL,
    NODES,
    VALUE,
    Configurations,
    SearchTree,
    bound_node,
)

EXHAUSTED = 0
INTERRUPTED = 1
FOUND = 2

TIE = 1e-3
"""Weight of a row's size, relative to how split it is."""


@compiled
def _prune(c: Configurations, t: SearchTree, level: int, bound: float) -> None:
    """Leave out what no better choice uses; find the row to branch on."""
    kept, rows, highest = 0, 0, -1.0
    for r in range(t.open[level]):
        first, end, here = t.start[level, r], t.start[level, r + 1], kept
        for s in range(first, end):
            over = t.cost[s] - t.least[r]
            if bound + over >= t.figure[CUTOFF]:
                t.figure[FLOOR] = min(t.figure[FLOOR], bound + over)
                continue
            t.known[level, kept] = t.known[level, s]
            t.cost[kept], t.mass[kept] = over, t.mass[s]
            kept += 1
        if kept == here + 1:
            _decide(c, t, level, t.rows[level, r], t.known[level, here])
            kept = here
            continue
        score = _split(c, t, level, here, kept)
        t.rows[level, rows] = t.rows[level, r]
        t.start[level, rows] = here
        if score > highest:
            highest, t.branch[level] = score, rows
        rows += 1
    t.start[level, rows] = kept
    t.open[level] = rows


@compiled
def _decide(c: Configurations, t: SearchTree, level: int, row: int, i: int) -> None:
    t.chosen[level, row] = i
    t.decided[level] += c.price[i]
    for z in range(c.used[i]):
        t.v[level, c.at[i, z]] += c.load[i, z]


@compiled
def _split(c: Configurations, t: SearchTree, level: int, first: int, end: int) -> float:
    """Variance of a row's load under its masses, plus a little for its size."""
    t.mean[:] = 0.0
    total, size = 0.0, 0.0
    for s in range(first, end):
        i = t.known[level, s]
        for z in range(c.used[i]):
            x = c.load[i, z]
            t.mean[c.at[i, z]] += t.mass[s] * x
            total += t.mass[s] * x * x
            if s == first:
                size += x * x
    for j in range(len(t.mean)):
        total -= t.mean[j] * t.mean[j]
    return max(0.0, total) + TIE * size


@compiled
def _list_children(t: SearchTree, level: int, bound: float) -> None:
    """List the configurations of the row branched on, cheapest first."""
    r = t.branch[level]
    first, end = t.start[level, r], t.start[level, r + 1]
    for s in range(first, end):
        i, value = t.known[level, s], bound + t.cost[s]
        k = s - first
        while k > 0 and t.bound[level, k - 1] > value:
            t.bound[level, k] = t.bound[level, k - 1]
            t.child[level, k] = t.child[level, k - 1]
            k -= 1
        t.bound[level, k], t.child[level, k] = value, i
    t.children[level], t.tried[level] = end - first, 0


@compiled
def _descend(c: Configurations, t: SearchTree, level: int) -> None:
    """Make the node of the next child."""
    i, r = t.child[level, t.tried[level]], t.branch[level]
    below = level + 1
    t.tried[level] += 1
    t.v[below], t.pi[below] = t.v[level], t.pi[level]
    t.decided[below], t.chosen[below] = t.decided[level], t.chosen[level]
    _decide(c, t, below, t.rows[level, r], i)
    kept, rows = 0, 0
    for k in range(t.open[level]):
        if k != r:
            t.rows[below, rows], t.start[below, rows] = t.rows[level, k], kept
            for s in range(t.start[level, k], t.start[level, k + 1]):
                t.known[below, kept] = t.known[level, s]
                kept += 1
            rows += 1
    t.start[below, rows], t.open[below] = kept, rows
    t.counter[LEVEL], t.counter[FRESH] = below, 1


@compiled
def _enter(c: Configurations, t: SearchTree, level: int, heat: float) -> bool:
    """Bound a fresh node; return whether it is a choice of all rows under the cutoff."""
    t.counter[FRESH] = 0
    t.counter[NODES] += 1
    bound = bound_node(c, t, level, heat)
    if bound < t.figure[CUTOFF]:
        _prune(c, t, level, bound)
        if t.open[level]:
            _list_children(t, level, bound)
            return False
        bound = t.decided[level]
        for j in range(t.v.shape[1]):
            bound += t.v[level, j] * t.v[level, j]
    t.figure[FLOOR] = min(t.figure[FLOOR], bound)
    t.figure[VALUE] = bound
    t.counter[LEVEL] -= 1
    return bound < t.figure[CUTOFF]


@compiled
def explore(c: Configurations, t: SearchTree, nodes: int, effort: int, heat: float) -> int:
    """Continue until a choice under the cutoff is found, or for `nodes` nodes.

    `effort` limits the operations, and `heat` is the temperature of the smoothing, in
    units of F. Returns `FOUND`: `chosen` below the present level has the choice and
    `figure[VALUE]` its value, and the caller may lower the cutoff; `EXHAUSTED`: no
    choice has a value under `figure[FLOOR]`; `INTERRUPTED`: too many nodes or
    operations.
    """
    last, most = t.counter[NODES] + nodes, t.counter[EFFORT] + effort
    while t.counter[LEVEL] >= 0:
        level = t.counter[LEVEL]
        if t.counter[FRESH]:
            if _enter(c, t, level, heat):
                return FOUND
        elif t.counter[NODES] >= last or t.counter[EFFORT] >= most:
            return INTERRUPTED
        elif t.tried[level] == t.children[level]:
            t.counter[LEVEL] -= 1
        elif t.bound[level, t.tried[level]] >= t.figure[CUTOFF]:
            at = t.tried[level]
            t.figure[FLOOR] = min(t.figure[FLOOR], t.bound[level, at])
            t.counter[LEVEL] -= 1
        else:
            _descend(c, t, level)
    return EXHAUSTED

"""The best choice of configurations, one for each of a few rows.

By annealing, which changes one to three rows at a time; and by depth-first branch and bound.
With configuration i of a row instead of its cheapest one, the bound of
`solver.kernels.node_bound` rises by their difference in cost: configurations that then
reach the cutoff are left out below the node. The row that the smoothed masses split
most is branched on, its cheapest configuration first, and the prices start at the
parent's; so depth-first search needs only one node per row in memory.
"""

import numpy as np

from solver.kernels.arithmetic import below, draw, exponential
from solver.kernels.compiled import Array, compiled
from solver.kernels.copying import copy_to
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

UNIT = 1.0 / 2.0**31

MOST = 3
"""Most rows changed at a time."""

EXHAUSTED = 0
INTERRUPTED = 1
FOUND = 2

TIE = 1e-3
"""Weight of a row's size, relative to how split it is."""


@compiled
def _exchange(c: Configurations, v: Array, old: int, new: int) -> float:
    """Change a row's configuration; return the change of F."""
    change = c.price[new] - c.price[old]
    for z in range(c.used[old]):
        j, x = c.at[old, z], c.load[old, z]
        change -= (2.0 * v[j] - x) * x
        v[j] -= x
    for z in range(c.used[new]):
        j, x = c.at[new, z], c.load[new, z]
        change += (2.0 * v[j] + x) * x
        v[j] += x
    return change


@compiled
def _is_between(v: Array, between: Array) -> bool:
    """Whether (J,) deviations are between the bounds, (2, J)."""
    for j in range(len(v)):
        if v[j] < between[0, j] or v[j] > between[1, j]:
            return False
    return True


@compiled
def _value_of(c: Configurations, fixed: Array, chosen: Array, v: Array) -> float:
    """F of `chosen`, (R,) indices of configurations; v, (J,), gets its deviations."""
    copy_to(v, fixed)
    total = 0.0
    for r in range(len(chosen)):
        i = chosen[r]
        total += c.price[i]
        for z in range(c.used[i]):
            v[c.at[i, z]] += c.load[i, z]
    for j in range(len(v)):
        total += v[j] * v[j]
    return total


@compiled
def anneal_choice(
    c: Configurations,
    fixed: Array,
    start: Array,
    may: Array,
    chosen: Array,
    steps: int,
    hot: float,
    cooling: float,
    random: Array,
    between: Array,
) -> float:
    """Anneal from a choice, (R,); leave the best one found there, and return its F.

    `chosen` holds indices of configurations and is changed in place. `fixed` is (J,)
    deviations from all other rows, scaled to weight 1. Row r may take the configurations
    may[start[r]:start[r + 1]], at least one; `start` is (R + 1,), and R at least 1. `hot` is
    the temperature before the first step, in units of F, and `cooling` its factor per step.
    `random` is (1,) uint64, not 0, and is advanced. A step that leaves a deviation outside
    `between`, (2, J), is not taken; where that is finite, the choice must be inside.
    """
    v = np.empty(len(fixed))
    value = _value_of(c, fixed, chosen, v)
    bounded = np.isfinite(between).any()
    now, least = chosen.copy(), value
    rows, before = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    t = hot
    for _ in range(steps):
        t *= cooling
        change = 0.0
        many = 1 + below(random, MOST)
        for k in range(many):
            r = below(random, len(now))
            i = may[start[r] + below(random, start[r + 1] - start[r])]
            rows[k], before[k] = r, now[r]
            change += _exchange(c, v, now[r], i)
            now[r] = i
        taken = change <= 0.0 or exponential(-change / t) > draw(random) * UNIT
        if taken and (not bounded or _is_between(v, between)):
            value += change
            if value < least:
                least = value
                copy_to(chosen, now)
        else:
            for k in range(many - 1, -1, -1):
                _exchange(c, v, now[rows[k]], before[k])
                now[rows[k]] = before[k]
    return _value_of(c, fixed, chosen, v)


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
    deeper = level + 1
    t.tried[level] += 1
    t.v[deeper], t.pi[deeper] = t.v[level], t.pi[level]
    t.decided[deeper], t.chosen[deeper] = t.decided[level], t.chosen[level]
    _decide(c, t, deeper, t.rows[level, r], i)
    kept, rows = 0, 0
    for k in range(t.open[level]):
        if k != r:
            t.rows[deeper, rows], t.start[deeper, rows] = t.rows[level, k], kept
            for s in range(t.start[level, k], t.start[level, k + 1]):
                t.known[deeper, kept] = t.known[level, s]
                kept += 1
            rows += 1
    t.start[deeper, rows], t.open[deeper] = kept, rows
    t.counter[LEVEL], t.counter[FRESH] = deeper, 1


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
        if not _is_between(t.v[level], t.between):
            bound = np.inf
    t.figure[FLOOR] = min(t.figure[FLOOR], bound)
    t.figure[VALUE] = bound
    t.counter[LEVEL] -= 1
    return bound < t.figure[CUTOFF]


@compiled
def explore(c: Configurations, t: SearchTree, nodes: int, effort: int, heat: float) -> int:
    """Continue until a choice under the cutoff is found, or for `nodes` nodes.

    The caller sets `figure[CUTOFF]` first. `effort` limits the operations of this call, and
    `heat` is the temperature of the smoothing, in units of F. Returns `FOUND`: row
    `counter[LEVEL]` + 1 of `chosen` has the choice and `figure[VALUE]` its F, and the caller
    may lower the cutoff and call again; `EXHAUSTED`: no choice has a value under
    `figure[FLOOR]`; `INTERRUPTED`: `nodes` or `effort` is used up, and a call resumes.
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

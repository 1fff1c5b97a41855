"""A bound on the best choice of configurations, by dual prices computed for each node.

minimise |v|^2 + sum_p price of p's configuration, v = v_0 + sum_p its load

with deviations and loads scaled so that each square has weight 1. At prices pi

D(pi) = v_0 . pi - |pi|^2 / 4 + sum_p min over i of (price_i + pi . load_i)

is below the value of every choice, since |v|^2 >= pi . v - |pi|^2 / 4 for any v. Where v must
lie between bounds, x . (pi - x) takes the place of |pi|^2 / 4, with x the point between them
that is nearest to pi / 2, and D is below the value of every choice that keeps them. The
prices come from Newton's method on the smoothed D (`solver.kernels.smoothing`). The
tree of `solver.kernels.configuration_search` is stored here: each of its nodes is bounded
this way.
"""

from typing import NamedTuple

import numpy as np

from solver.kernels.arithmetic import exponential, logarithm
from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.copying import copy_to

FARTHEST = 30.0
"""Temperatures above the cheapest beyond which a configuration has no mass."""

SMALL = 1e-12
"""Mass below which a configuration adds no curvature."""

STEPS = 6
"""Newton steps at one temperature."""

SHORTENINGS = 8
SHORTER = 0.3
ENOUGH = 0.1
"""Share of the promised ascent from which on a step is taken."""

AT_END = 0.05
"""Curvature, instead of 1/2, of a v at a bound: without any, Newton steps are too long."""

SMOOTHING = 10
"""Operations counted for the mass of one configuration."""

LEVEL, FRESH, NODES, EFFORT = 0, 1, 2, 3
"""Places in `SearchTree.counter`."""

CUTOFF, FLOOR, VALUE = 0, 1, 2
"""Places in `SearchTree.figure`."""


@by_reference
class Configurations(NamedTuple):
    """N configurations of R rows, row after row; J deviations of weight 1."""

    start: Array
    """(R + 1,) first configuration of each row."""
    at: Array
    """(N, Z) deviations that a configuration loads."""
    load: Array
    """(N, Z) by how much."""
    used: Array
    """(N,) how many of the Z are used."""
    price: Array
    """(N,) cost of the change."""


@by_reference
class SearchTree(NamedTuple):
    """The nodes from the root to the present one, at most L = R + 1."""

    rows: Array
    """(L, R) rows still open."""
    open: Array
    """(L,) how many are open."""
    start: Array
    """(L, R + 1) where each of them begins in `known`."""
    known: Array
    """(L, N) configurations left."""
    v: Array
    """(L, J) deviations from what is decided."""
    decided: Array
    """(L,) cost of what is decided."""
    pi: Array
    """(L, J) dual prices."""
    chosen: Array
    """(L, R) configuration of each decided row; -1 for open ones."""
    branch: Array
    """(L,) which of the open rows is branched on."""
    child: Array
    """(L, N) its configurations, cheapest first."""
    bound: Array
    """(L, N) bound that each of them proves."""
    children: Array
    """(L,) how many children."""
    tried: Array
    """(L,) how many were begun."""
    cost: Array
    """(N,) cost of the configurations, at the present prices."""
    mass: Array
    """(N,) smoothed masses."""
    least: Array
    """(R,) least cost of each open row."""
    slope: Array
    """(J,) gradient of the smoothed bound."""
    trial: Array
    """(J,) prices tried."""
    now: Array
    """(J,) best prices at this temperature."""
    step: Array
    """(J,) Newton step."""
    mean: Array
    """(J,) mean load of one row."""
    between: Array
    """(2, J) least and largest deviations that a choice may leave; infinite for any."""
    hessian: Array
    """(J, J) curvature of the smoothed bound, lower half."""
    counter: Array
    """(4,) level, whether it is fresh, nodes, operations."""
    figure: Array
    """(3,) cutoff, least bound that was cut off, value found."""


def new_tree(c: Configurations, v: Array, pi: Array, between: Array) -> SearchTree:
    """Create a tree with the root alone.

    `v` is (J,) deviations from all other rows, `pi` (J,) prices to start from, and `between`,
    (2, J), the deviations between which choices must end. The cutoff is infinite until the
    caller sets `figure[CUTOFF]`.
    """
    rows, most, dims = len(c.start) - 1, len(c.price), len(v)
    deep = rows + 1
    tree = SearchTree(
        rows=np.zeros((deep, rows), np.int64),
        open=np.zeros(deep, np.int64),
        start=np.zeros((deep, rows + 1), np.int64),
        known=np.zeros((deep, most), np.int64),
        v=np.zeros((deep, dims)),
        decided=np.zeros(deep),
        pi=np.zeros((deep, dims)),
        chosen=np.full((deep, rows), -1, np.int64),
        branch=np.zeros(deep, np.int64),
        child=np.zeros((deep, most), np.int64),
        bound=np.zeros((deep, most)),
        children=np.zeros(deep, np.int64),
        tried=np.zeros(deep, np.int64),
        cost=np.zeros(most),
        mass=np.zeros(most),
        least=np.zeros(rows),
        slope=np.zeros(dims),
        trial=np.zeros(dims),
        now=np.zeros(dims),
        step=np.zeros(dims),
        mean=np.zeros(dims),
        between=between.copy(),
        hessian=np.zeros((dims, dims)),
        counter=np.array([0, 1, 0, 0], np.int64),
        figure=np.full(3, np.inf),
    )
    tree.rows[0] = np.arange(rows)
    tree.open[0] = rows
    tree.start[0] = c.start
    tree.known[0] = np.arange(most)
    tree.v[0], tree.pi[0] = v, pi
    return linked(tree)


def unbounded(dims: int) -> Array:
    """Return (2, J) bounds that leave any deviation to each of `dims`."""
    return np.repeat([[-np.inf], [np.inf]], dims, axis=1)


@compiled
def _evaluate(
    c: Configurations, t: SearchTree, level: int, pi: Array, heat: float
) -> tuple[float, float]:
    """Smoothed bound, with gradient and masses left in the tree, and the true bound."""
    total = t.decided[level]
    for j in range(len(pi)):
        cheapest = min(max(pi[j] / 2.0, t.between[0, j]), t.between[1, j])
        total += t.v[level, j] * pi[j] - (pi[j] - cheapest) * cheapest
        t.slope[j] = t.v[level, j] - cheapest
    smooth = total
    for r in range(t.open[level]):
        least, spread = _weigh(c, t, level, r, pi, heat)
        t.least[r] = least
        total += least
        smooth += least - spread
    t.counter[EFFORT] += t.start[level, t.open[level]] * (c.at.shape[1] + SMOOTHING)
    return smooth, total


@compiled
def _weigh(
    c: Configurations, t: SearchTree, level: int, r: int, pi: Array, heat: float
) -> tuple[float, float]:
    """Costs and masses of an open row; return its least cost, and what smoothing subtracts."""
    first, end = t.start[level, r], t.start[level, r + 1]
    least = np.inf
    for s in range(first, end):
        i = t.known[level, s]
        cost = c.price[i]
        for z in range(c.used[i]):
            cost += c.load[i, z] * pi[c.at[i, z]]
        t.cost[s] = cost
        least = min(least, cost)
    weight = 0.0
    for s in range(first, end):
        over = (t.cost[s] - least) / heat
        t.mass[s] = exponential(-over) if over < FARTHEST else 0.0
        weight += t.mass[s]
    for s in range(first, end):
        if t.mass[s] > 0.0:
            t.mass[s] /= weight
            i = t.known[level, s]
            for z in range(c.used[i]):
                t.slope[c.at[i, z]] += t.mass[s] * c.load[i, z]
    return least, heat * logarithm(weight)


@compiled
def _direct(c: Configurations, t: SearchTree, level: int, heat: float) -> float:
    """Newton step from the gradient; return the ascent it promises."""
    dims = len(t.slope)
    t.hessian[:] = 0.0
    for r in range(t.open[level]):
        _add_curvature(c, t, level, r)
    for j in range(dims):
        for k in range(j + 1):
            t.hessian[j, k] /= heat
        inside = t.between[0, j] <= t.now[j] / 2.0 <= t.between[1, j]
        t.hessian[j, j] += 0.5 if inside else AT_END
        t.step[j] = t.slope[j]
    _solve(t.hessian, t.step)
    t.counter[EFFORT] += dims * dims * dims // 3
    promised = 0.0
    for j in range(dims):
        promised += t.step[j] * t.slope[j]
    return promised


@compiled
def _add_curvature(c: Configurations, t: SearchTree, level: int, r: int) -> None:
    """Add the covariance of a row's load to the lower half of `hessian`."""
    first, end = t.start[level, r], t.start[level, r + 1]
    for s in range(first, end):
        if t.mass[s] > 1.0 - SMALL:
            return
    t.mean[:] = 0.0
    for s in range(first, end):
        if t.mass[s] > SMALL:
            i = t.known[level, s]
            t.counter[EFFORT] += c.used[i] * c.used[i]
            for z in range(c.used[i]):
                x, j = t.mass[s] * c.load[i, z], c.at[i, z]
                t.mean[j] += x
                for y in range(z + 1):
                    k = c.at[i, y]
                    t.hessian[max(j, k), min(j, k)] += x * c.load[i, y]
    for j in range(len(t.mean)):
        if t.mean[j] != 0.0:
            for k in range(j + 1):
                t.hessian[j, k] -= t.mean[j] * t.mean[k]


@compiled
def _solve(a: Array, x: Array) -> None:
    """Solve a y = x in place by Cholesky; a is positive definite, given by its lower half."""
    n = len(x)
    for j in range(n):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = np.sqrt(max(a[j, j], 1e-30))
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
    for i in range(n):
        for k in range(i):
            x[i] -= a[i, k] * x[k]
        x[i] /= a[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= a[k, i] * x[k]
        x[i] /= a[i, i]


@compiled
def _ascend(
    c: Configurations, t: SearchTree, level: int, heat: float, best: float, small: float
) -> float:
    """Raise the bound at one temperature; `pi` of the level becomes the best one."""
    cutoff = t.figure[CUTOFF]
    smooth, bound = _evaluate(c, t, level, t.now, heat)
    best = _keep(t, level, t.now, bound, best)
    for _ in range(STEPS):
        if best >= cutoff:
            break
        promised = _direct(c, t, level, heat)
        if promised < small:
            break
        length, gain = 1.0, 0.0
        for _ in range(SHORTENINGS):
            for j in range(len(t.now)):
                t.trial[j] = t.now[j] + length * t.step[j]
            found, bound = _evaluate(c, t, level, t.trial, heat)
            best = _keep(t, level, t.trial, bound, best)
            gain = found - smooth
            if gain >= ENOUGH * length * promised or best >= cutoff:
                break
            length *= SHORTER
        if gain < small:
            break
        smooth += gain
        copy_to(t.now, t.trial)
    return best


@compiled
def _keep(t: SearchTree, level: int, pi: Array, bound: float, best: float) -> float:
    if bound > best:
        copy_to(t.pi[level], pi)
        return bound
    return best


@compiled
def bound_node(c: Configurations, t: SearchTree, level: int, heat: float) -> float:
    """Compute a lower bound of F below the node at `level`, by Newton's method.

    Ascends from the prices `pi` of the level at ten times `heat`, the temperature in units of
    F, then at `heat`, and keeps the best prices there. Stops as soon as the bound reaches
    `figure[CUTOFF]`; otherwise `cost`, `mass` and `least` are those at the best prices.
    """
    copy_to(t.now, t.pi[level])
    best = _ascend(c, t, level, 10.0 * heat, -np.inf, 1e-2 * heat)
    if best < t.figure[CUTOFF]:
        copy_to(t.now, t.pi[level])
        best = _ascend(c, t, level, heat, best, 1e-2 * heat)
    if best < t.figure[CUTOFF]:
        _evaluate(c, t, level, t.pi[level], heat)
    return best

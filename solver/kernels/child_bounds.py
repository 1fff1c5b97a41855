"""Bounds of children: the least cost of having a split row on one broker.

The parent's prices are kept on the other brokers. The broker itself is relaxed again,
with each other row either there or where it is cheapest otherwise; any prices prove a
bound (weak duality), and these a better one than the reduced cost.
"""

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled
from solver.kernels.relaxed_point import Relaxed, may, price_of

LIFTS = 4
"""Improvements of a child's prices before it waits."""


@compiled
def price_children(x: Relaxed, p: int, found: Floats) -> int:
    """Fill found, (B,), with the least rise of the bound with row p on each broker.

    The best prices are kept on the other brokers; those of the broker itself follow
    what it would hold. Returns the approximate number of operations.
    """
    brokers, rows = len(x.fixed), len(x.cost)
    for b in range(brokers):
        for d in range(len(x.weight)):
            x.q[b, d] = x.prices[b, d] * x.scale[b, d]
    low, second = np.empty(rows), np.empty(rows)
    at = np.empty(rows, np.int64)
    for i in range(rows):
        _cheapest_two(x, i, low, second, at)
    rest, share = np.empty(rows), np.empty(rows)
    for b in range(brokers):
        found[b] = np.inf
        if not may(x, p, b):
            continue
        for i in range(rows):
            rest[i] = second[i] if at[i] == b else low[i]
            share[i] = x.mass[i, b]
            if x.decided[i] >= 0:
                share[i] = 1.0 if x.decided[i] == b else 0.0
        share[p] = 1.0
        found[b] = _lift(x, p, b, low, rest, share)
    return (4 * LIFTS + 1) * x.cost.size * len(x.weight)


@compiled
def _cheapest_two(x: Relaxed, p: int, low: Floats, second: Floats, at: Ints) -> None:
    """Store a row's cheapest broker, its price, and the second lowest price."""
    low[p], second[p], at[p] = np.inf, np.inf, -1
    for b in range(len(x.fixed)):
        if may(x, p, b):
            price = price_of(x, p, b)
            if price < low[p]:
                low[p], second[p], at[p] = price, low[p], b
            elif price < second[p]:
                second[p] = price


@compiled
def _lift(x: Relaxed, p: int, b: int, low: Floats, rest: Floats, share: Floats) -> float:
    """Rise of the bound with row p on broker b and better prices there.

    `low` and `rest` are (R,) least prices with and without broker b. `share` is (R,):
    how much of each row to start with; it is improved row by row.
    """
    dims, before = len(x.weight), 0.0
    v, e = np.empty(dims), np.empty(dims)
    for d in range(dims):
        e[d] = x.prices[b, d]
        before += e[d] * x.fixed[b, d] - e[d] * e[d] / (4.0 * x.weight[d])
        v[d] = x.fixed[b, d]
    for i in range(len(x.cost)):
        before += low[i]
        for d in range(dims):
            v[d] += share[i] * x.load[i, d] * x.scale[b, d]
    best = 0.0
    for k in range(LIFTS + 1):
        best = max(best, _value_at(x, p, b, rest, e) - before)
        if k == LIFTS:
            break
        for i in range(len(x.cost)):
            if i != p and rest[i] < np.inf and may(x, i, b):
                _fit(x, i, b, rest[i], share, v)
        for d in range(dims):
            e[d] = 2.0 * x.weight[d] * v[d]
    return best


@compiled
def _value_at(x: Relaxed, p: int, b: int, rest: Floats, e: Floats) -> float:
    """Value of all rows and broker b at its prices e, (K,), with row p on it."""
    found = 0.0
    for d in range(len(e)):
        found += e[d] * x.fixed[b, d] - e[d] * e[d] / (4.0 * x.weight[d])
    for i in range(len(x.cost)):
        price = np.inf
        if may(x, i, b):
            price = x.cost[i, b]
            for d in range(len(e)):
                price += e[d] * x.scale[b, d] * x.load[i, d]
        found += price if i == p else min(price, rest[i])
    return found


@compiled
def _fit(x: Relaxed, i: int, b: int, rest: float, share: Floats, v: Floats) -> None:
    """The optimal share of a row on broker b, if the rest costs `rest`."""
    slope, bend = x.cost[i, b] - rest, 0.0
    for d in range(len(v)):
        a = x.load[i, d] * x.scale[b, d]
        slope += 2.0 * x.weight[d] * v[d] * a
        bend += 2.0 * x.weight[d] * a * a
    if bend > 0.0:
        new = min(1.0, max(0.0, share[i] - slope / bend))
    else:
        new = 1.0 if slope < 0.0 else 0.0
    for d in range(len(v)):
        v[d] += (new - share[i]) * x.load[i, d] * x.scale[b, d]
    share[i] = new

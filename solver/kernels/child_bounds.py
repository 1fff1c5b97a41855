"""What it costs at least to have a split row on one broker: bounds of children.

The prices of the parent are kept on the other brokers. The broker itself is relaxed
anew, each other row going there or to where it is cheapest else; any prices prove a
bound (weak duality), these ones a better one than the reduced cost.
"""

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled
from solver.kernels.relaxed_point import Relaxed, may, price_of

LIFTS = 4
"""Times that a child's prices are improved before it waits."""


@compiled
def price_children(x: Relaxed, p: int, found: Floats) -> int:
    """Fill found (B,): by how much the bound rises at least with row p on a broker.

    The best prices are kept on the other brokers; those of the broker itself follow
    what it would hold. Returns about how many operations that took.
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
    """Enter a row's cheapest broker, its price, and the second lowest price."""
    low[p], second[p], at[p] = np.inf, np.inf, -1
    for b in range(len(x.fixed)):
        if may(x, p, b):
            price = price_of(x, p, b)
            if price < low[p]:
                low[p], second[p], at[p] = price, low[p], b
            elif price < second[p]:
                second[p] = price


@compiled
def _lift(
    x: Relaxed, p: int, b: int, low: Floats, rest: Floats, share: Floats
) -> float:
    """By how much the bound rises with row p on broker b and better prices there.

    low, rest: (R,) least prices, with broker b and without. share: (R,) how much of
    each row to begin with; it is improved, row by row.
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
    """What all rows and broker b are worth at its prices e (K,), row p on it."""
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
    """The share of a row that broker b holds at best, if the rest costs `rest`."""
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

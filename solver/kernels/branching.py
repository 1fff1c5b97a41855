"""The relaxation of one node of a tree in which some rows are decided, and bounds of its children.

Row by row, mass moves from the most expensive broker to the cheapest by an exact line
search, then split rows are mixed. The prices 2 w v prove a bound at any moment (weak
duality). Starting from the parent's point this takes a few rounds.

A child has a split row on one broker. The parent's prices are kept on the other brokers. The
broker itself is relaxed again, with each other row either there or where it is cheapest
otherwise; any prices prove a bound, and these a better one than the reduced cost.
"""

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled
from solver.kernels.copying import copy_rows_to
from solver.kernels.relaxed_point import UNSPLIT, Relaxed, may, mix, price_of, quote

CHECK_EVERY = 4
"""Pricings of all rows between two comparisons of value and bound."""

STEPS = 150
"""Most conjugate directions between two pricings."""

LIFTS = 4
"""Improvements of a child's prices before it waits."""


@compiled
def place_cheapest(x: Relaxed, prices: Floats) -> None:
    """Put the whole mass of each row on the broker where it is cheapest.

    `prices` is (B, K), of deviation, in units of F. Sets `x.q` and `x.mass`, and considers
    only brokers where the row `may` be, of which each row needs one. Of equally cheap
    brokers the first is taken.
    """
    _price_at(x, prices)
    x.mass[:, :] = 0.0
    for p in range(len(x.cost)):
        at, _, _ = _cheapest_two(x, p)
        x.mass[p, at] = 1.0


@compiled
def _price_at(x: Relaxed, prices: Floats) -> None:
    for b in range(len(x.fixed)):
        for d in range(len(x.weight)):
            x.q[b, d] = prices[b, d] * x.scale[b, d]


@compiled
def _cheapest_two(x: Relaxed, p: int) -> tuple[int, float, float]:
    """A row's cheapest broker, its price, and the second lowest price."""
    at, low, second = -1, np.inf, np.inf
    for b in range(len(x.fixed)):
        if may(x, p, b):
            price = price_of(x, p, b)
            if price < low:
                at, low, second = b, price, low
            elif price < second:
                second = price
    return at, low, second


@compiled
def restore(x: Relaxed, at: Ints, row: Ints, broker: Ints, mass: Floats) -> None:
    """Restore a stored point, except for rows decided otherwise since.

    `at` is (R,): the broker of each whole row. `row`, `broker` and `mass` are (m,): the places
    of split rows, with the share of the row there. Sets `x.mass` alone; a row decided by
    `x.decided` is whole on its broker.
    """
    x.mass[:, :] = 0.0
    for p in range(len(at)):
        x.mass[p, at[p] if x.decided[p] < 0 else x.decided[p]] = 1.0
    for i in range(len(row)):
        if x.decided[row[i]] < 0:
            x.mass[row[i], :] = 0.0
    for i in range(len(row)):
        if x.decided[row[i]] < 0:
            x.mass[row[i], broker[i]] = mass[i]


@compiled
def relaxed_value(x: Relaxed) -> float:
    """Recompute deviations and prices at the masses; return F there, without the refund.

    Sets `x.v` and `x.q`.
    """
    brokers, dims = x.fixed.shape
    found = 0.0
    copy_rows_to(x.v, x.fixed)
    for p in range(len(x.cost)):
        for b in range(brokers):
            m = x.mass[p, b]
            if m > 0.0:
                found += m * x.cost[p, b]
                for d in range(dims):
                    x.v[b, d] += m * x.load[p, d] * x.scale[b, d]
    for b in range(brokers):
        quote(x, b)
        for d in range(dims):
            found += x.weight[d] * x.v[b, d] * x.v[b, d]
    return found


@compiled
def _price_all_rows(x: Relaxed, small: float) -> tuple[float, int]:
    """The bound that the present prices prove; lists rows that are cheaper elsewhere."""
    brokers, dims = x.fixed.shape
    bound, many = 0.0, 0
    for b in range(brokers):
        for d in range(dims):
            pi = 2.0 * x.weight[d] * x.v[b, d]
            bound += pi * x.fixed[b, d] - pi * pi / (4.0 * x.weight[d])
    for p in range(len(x.cost)):
        low, held = np.inf, np.inf
        if x.decided[p] >= 0:
            bound += price_of(x, p, x.decided[p])
            continue
        for b in range(brokers):
            price = price_of(x, p, b)
            if price < low:
                low = price
            if x.mass[p, b] > 0.0 and price < held:
                held = price
        bound += low
        if held - low > small:
            x.active[many] = p
            many += 1
    return bound, many


@compiled
def _shift(x: Relaxed, p: int) -> None:
    """Move mass of a row from its most expensive broker to its cheapest."""
    low, high, to, off = np.inf, -np.inf, -1, -1
    for b in range(len(x.fixed)):
        if may(x, p, b):
            price = price_of(x, p, b)
            if price < low:
                to, low = b, price
            if x.mass[p, b] > 0.0 and price > high:
                off, high = b, price
    if high <= low:
        return
    curve = 0.0
    for d in range(len(x.weight)):
        one, other = x.load[p, d] * x.scale[to, d], x.load[p, d] * x.scale[off, d]
        curve += 2.0 * x.weight[d] * (one * one + other * other)
    m = x.mass[p, off]
    if (high - low) < m * curve:
        m = (high - low) / curve
    x.mass[p, off] -= m
    x.mass[p, to] += m
    if x.mass[p, off] < UNSPLIT:
        x.mass[p, off] = 0.0
    for d in range(len(x.weight)):
        x.v[to, d] += m * x.load[p, d] * x.scale[to, d]
        x.v[off, d] -= m * x.load[p, d] * x.scale[off, d]
    quote(x, to)
    quote(x, off)


@compiled
def relax(
    x: Relaxed, within: float, cut: float, looks: int, most: int, small: float
) -> tuple[float, float, int]:
    """Solve the relaxation from the present masses; `x.prices` gets the best prices.

    Ends when value and bound are within `within`, when the bound reaches `cut`, after
    `looks` pricings of all rows, or after `most` operations. Gains of a row below
    `small` count as none. Returns the bound, the value, both in units of F without the
    refund, and the approximate number of operations. The bound is -inf, and `x.prices`
    unchanged, if `looks` is 0.
    """
    value, best = relaxed_value(x), -np.inf
    all_, one = x.cost.size * (len(x.weight) + 1), x.cost.shape[1] * len(x.weight)
    effort = all_
    for k in range(looks):
        bound, many = _price_all_rows(x, small)
        effort += all_
        if bound > best:
            best = bound
            for b in range(len(x.fixed)):
                for d in range(len(x.weight)):
                    x.prices[b, d] = 2.0 * x.weight[d] * x.v[b, d]
        if k % CHECK_EVERY == CHECK_EVERY - 1:
            value = relaxed_value(x)
        if best >= cut or value - best < within or effort >= most:
            break
        for i in range(many):
            _shift(x, x.active[i])
        effort += 2 * many * one
        effort += mix(x, small, STEPS)
    return best, relaxed_value(x), effort


@compiled
def most_split(x: Relaxed) -> tuple[int, float]:
    """Return the row that gains most by being split, and its gain; -1 where all are whole.

    The gain, in units of F, is the rise of the expected cost of deviations if the row were
    put on one broker drawn by its masses. Of equal rows the first is returned.
    """
    row, most = -1, 0.0
    for p in range(len(x.cost)):
        found = 0.0
        for b in range(len(x.fixed)):
            m = x.mass[p, b]
            if 0.0 < m < 1.0:
                for d in range(len(x.weight)):
                    a = x.load[p, d] * x.scale[b, d]
                    found += x.weight[d] * m * (1.0 - m) * a * a
        if found > most:
            row, most = p, found
    return row, most


@compiled
def price_children(x: Relaxed, p: int, found: Floats) -> int:
    """Fill `found`, (B,), with the least rise of the bound with row p on each broker.

    The rise is in units of F, over what `x.prices` prove; infinite where p may not be.
    Call `relax` first: `x.prices` is kept on the other brokers, and the prices of the
    broker itself follow what it would hold. Sets `x.q`; returns the approximate number of
    operations.
    """
    brokers, rows = len(x.fixed), len(x.cost)
    _price_at(x, x.prices)
    low, second = np.empty(rows), np.empty(rows)
    at = np.empty(rows, np.int64)
    for i in range(rows):
        at[i], low[i], second[i] = _cheapest_two(x, i)
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

"""The convex relaxation, in which rows may be split over configurations.

minimise sum_bd w_d v_bd^2 + costs, v = loads of all configurations - 1

Block-coordinate pairwise Frank-Wolfe: a row's mass moves from its most expensive
configuration to the cheapest one at the present prices, pi = 2 w v, by an exact line
search (Lacoste-Julien and Jaggi, 2015). Rows that stay whole at home need no memory.
Any pi gives a valid bound of F (weak duality), the best one at the optimum.
"""

from typing import NamedTuple

import numpy as np

from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.pricing import (
    PricingScratch,
    cheapest,
    lowest_prices,
    price_row,
    stay_cost,
    stays_cheapest,
)
from solver.kernels.problem_arrays import Columns

NONE = -1

ROUNDING = 1e-12
"""Share of the summed magnitudes that float arithmetic may have added."""


@by_reference
class Masses(NamedTuple):
    """How rows are split: linked lists of nodes, one per configuration with mass."""

    head: Array
    """(n,) first node of a row; -1 for rows whole at home."""
    next: Array
    """(nodes,) next node of the same row."""
    at: Array
    """(nodes, M) brokers, leader first."""
    mass: Array
    """(nodes,) share of the row."""
    unused: Array
    """(1,) first node of the list of unused ones."""


def new_masses(c: Columns, room: int) -> Masses:
    """Create masses with all rows whole at home, and space for `room` configurations, >= 1."""
    following = np.arange(1, room + 1, dtype=np.int64)
    following[-1] = NONE
    record = Masses(
        head=np.full(len(c.home), NONE, np.int64),
        next=following,
        at=np.full((room, c.home.shape[1]), -1, np.int64),
        mass=np.zeros(room),
        unused=np.zeros(1, np.int64),
    )
    return linked(record)


@compiled
def _new_node(m: Masses, p: int, at: Array, mass: float, rf: int) -> bool:
    node = m.unused[0]
    if node == NONE:
        return False
    m.unused[0] = m.next[node]
    m.next[node] = m.head[p]
    m.head[p] = node
    m.mass[node] = mass
    for k in range(rf):
        m.at[node, k] = at[k]
    return True


@compiled
def _drop_node(m: Masses, p: int, node: int) -> None:
    if m.head[p] == node:
        m.head[p] = m.next[node]
    else:
        before = m.head[p]
        while m.next[before] != node:
            before = m.next[before]
        m.next[before] = m.next[node]
    m.next[node] = m.unused[0]
    m.unused[0] = node


@compiled
def cost_of(r: PricingScratch, at: Array, rf: int) -> float:
    """Compute the cost of a configuration of the priced row, in units of F.

    `at` has `rf` brokers, leader first. Call `price_row` first.
    """
    total = r.lead[at[0]]
    for k in range(1, rf):
        total += r.follow[at[k]]
    return total


@compiled
def _add(c: Columns, v: Array, p: int, at: Array, mass: float) -> None:
    for k in range(c.rf[p]):
        b = at[k]
        for d in range(v.shape[1]):
            a = c.lead[p, d] if k == 0 else c.follow[p, d]
            v[b, d] += mass * a * c.scale[b, d]


@compiled
def _reprice(c: Columns, v: Array, q: Array, lowest: Array, at: Array, rf: int) -> None:
    for k in range(rf):
        b = at[k]
        for d in range(v.shape[1]):
            q[d, b] = 2.0 * c.weight[d] * v[b, d] * c.scale[b, d]
            if q[d, b] < lowest[d]:
                lowest[d] = q[d, b]


@compiled
def _shift(
    c: Columns, v: Array, q: Array, lowest: Array, p: int, old: Array, new: Array, mass: float
) -> None:
    """Move mass of row p from one configuration to another; update deviations and prices."""
    _add(c, v, p, old, -mass)
    _add(c, v, p, new, mass)
    _reprice(c, v, q, lowest, old, c.rf[p])
    _reprice(c, v, q, lowest, new, c.rf[p])


@compiled
def _slot(at: Array, rf: int, b: int) -> int:
    """Slot of broker b in a configuration, -1 for none."""
    for k in range(rf):
        if at[k] == b:
            return k
    return NONE


@compiled
def _curvature(c: Columns, p: int, old: Array, new: Array) -> float:
    """Half the second derivative of F along the exchange of two configurations."""
    rf = c.rf[p]
    total = 0.0
    for k in range(rf):
        b = new[k]
        was = _slot(old, rf, b)
        for d in range(c.lead.shape[1]):
            a = c.lead[p, d] if k == 0 else c.follow[p, d]
            if was == 0:
                a -= c.lead[p, d]
            elif was > 0:
                a -= c.follow[p, d]
            x = a * c.scale[b, d]
            total += c.weight[d] * x * x
    for j in range(rf):
        b = old[j]
        if _slot(new, rf, b) == NONE:
            for d in range(c.lead.shape[1]):
                a = c.lead[p, d] if j == 0 else c.follow[p, d]
                x = a * c.scale[b, d]
                total += c.weight[d] * x * x
    return total


@compiled
def place_forced_rows(c: Columns, m: Masses, v: Array, q: Array, r: PricingScratch) -> bool:
    """Move rows that may not stay to their cheapest configuration.

    Prices q, (K, B), and deviations v, (B, K), are updated row by row. Returns False at the
    first row without an allowed configuration.
    """
    lowest = np.full(v.shape[1], -np.inf)
    for p in range(len(c.home)):
        if c.forced[p]:
            price_row(c, q, p, 0.0, r)
            if cheapest(c, p, r) == np.inf:
                return False
            _new_node(m, p, r.best, 1.0, c.rf[p])
            _shift(c, v, q, lowest, p, c.home[p], r.best, 1.0)
    return True


@compiled
def sweep(c: Columns, m: Masses, v: Array, q: Array, rows: Array, r: PricingScratch) -> int:
    """Take one pairwise step of each of `rows`, in order; return how many were priced.

    Updates the masses, deviations v, (B, K), and prices q, (K, B) per unit of load, which
    must be those of v. Without unused nodes, rows keep the configurations they have.
    """
    lowest = lowest_prices(q)
    priced = 0
    for i in range(len(rows)):
        p = rows[i]
        if m.head[p] == NONE and stays_cheapest(c, q, lowest, p, 0.0):
            continue
        priced += 1
        price_row(c, q, p, 0.0, r)
        _exchange(c, m, v, q, lowest, p, cheapest(c, p, r), r)
    return priced


@compiled
def _exchange(
    c: Columns, m: Masses, v: Array, q: Array, lowest: Array, p: int, best: float, r: PricingScratch
) -> None:
    """One pairwise step of a priced row, whose cheapest configuration costs `best`."""
    rf = c.rf[p]
    if m.head[p] == NONE:
        if cost_of(r, c.home[p], rf) - best <= 1e-15:
            return
        if not _new_node(m, p, c.home[p], 1.0, rf):
            return
    worst, highest, same = NONE, -np.inf, NONE
    node = m.head[p]
    while node != NONE:
        cost = cost_of(r, m.at[node], rf)
        if cost > highest:
            worst, highest = node, cost
        if cost - best <= 0.0:
            same = node
        node = m.next[node]
    if highest - best <= 1e-15:
        return
    if same == NONE:
        if not _new_node(m, p, r.best, 0.0, rf):
            return
        same = m.head[p]
    bend = 2.0 * _curvature(c, p, m.at[worst], m.at[same])
    gain, mass = highest - best, m.mass[worst]
    if bend > 0.0 and gain / bend < mass:
        mass = gain / bend
    _shift(c, v, q, lowest, p, m.at[worst], m.at[same], mass)
    m.mass[same] += mass
    m.mass[worst] -= mass


@compiled
def make_whole(c: Columns, m: Masses, v: Array, rows: Array, r: PricingScratch) -> None:
    """Put each of `rows`, in order, wholly where F rises least; updates the deviations v, (B, K).

    For rows with one replica. Rows that are whole at home stay there.
    """
    brokers, dims = v.shape
    q = np.empty((dims, brokers))
    for i in range(len(rows)):
        p = rows[i]
        node = m.head[p]
        if node == NONE:
            continue
        while node != NONE:
            _add(c, v, p, m.at[node], -m.mass[node])
            m.mass[node] = 0.0
            node = m.next[node]
        for b in range(brokers):
            for d in range(dims):
                own = c.lead[p, d] * c.scale[b, d]
                q[d, b] = c.weight[d] * (2.0 * v[b, d] + own) * c.scale[b, d]
        price_row(c, q, p, 0.0, r)
        cheapest(c, p, r)
        while m.next[m.head[p]] != NONE:
            _drop_node(m, p, m.head[p])
        m.at[m.head[p], 0] = r.best[0]
        m.mass[m.head[p]] = 1.0
        _add(c, v, p, m.at[m.head[p]], 1.0)


@compiled
def _forget_if_whole(c: Columns, m: Masses, p: int) -> None:
    """Remove the only node of a row if it is home again."""
    node, rf = m.head[p], c.rf[p]
    if c.forced[p] or m.at[node, 0] != c.home[p, 0]:
        return
    for k in range(1, rf):
        if _slot(m.at[node], rf, c.home[p, k]) == NONE:
            return
    _drop_node(m, p, node)


@compiled
def drop_empty(c: Columns, m: Masses, rows: Array) -> None:
    """Remove configurations of `rows` with a mass of 1e-12 or less, but for a row's last one.

    A row that is whole at home again loses its only node, unless it must change.
    """
    for i in range(len(rows)):
        p = rows[i]
        node = m.head[p]
        while node != NONE:
            following = m.next[node]
            only = m.head[p] == node and following == NONE
            if m.mass[node] <= 1e-12 and not only:
                _drop_node(m, p, node)
            node = following
        if m.head[p] != NONE and m.next[m.head[p]] == NONE:
            m.mass[m.head[p]] = 1.0
            _forget_if_whole(c, m, p)


@compiled
def price_all(
    c: Columns, m: Masses, q: Array, rows: Array, near: float, r: PricingScratch
) -> tuple[int, int]:
    """Look for configurations that rows could be split over, at prices q, (K, B).

    A configuration cheaper than all that a row knows gets a node without mass, also if
    it costs up to `near` more than home, in units of F, for a row that has no nodes yet.
    Returns the numbers of configurations added and of rows priced; none is added without
    unused nodes.
    """
    lowest = lowest_prices(q)
    made, priced = 0, 0
    for i in range(len(rows)):
        p = rows[i]
        rf = c.rf[p]
        if m.head[p] == NONE and stays_cheapest(c, q, lowest, p, near):
            continue
        priced += 1
        price_row(c, q, p, 0.0, r)
        best = cheapest(c, p, r)
        known = np.inf
        node = m.head[p]
        while node != NONE:
            known = min(known, cost_of(r, m.at[node], rf))
            node = m.next[node]
        if m.head[p] == NONE:
            stay = cost_of(r, c.home[p], rf)
            if best >= stay - 1e-15:
                price_row(c, q, p, near, r)
                if cheapest(c, p, r) >= stay - 1e-15:
                    continue
            if not _new_node(m, p, c.home[p], 1.0, rf):
                continue
            made += _new_node(m, p, r.best, 0.0, rf)
        elif best < known - 1e-12:
            made += _new_node(m, p, r.best, 0.0, rf)
    return made, priced


@compiled
def dual_value(c: Columns, pi: Array, r: PricingScratch) -> float:
    """Compute the bound that prices pi, (B, K), prove, before the refund is subtracted.

    `pi` is of deviation, and 0 on brokers that are not balanced. In units of F, lowered by
    `ROUNDING` of the magnitudes that were summed. NaN if a row has no allowed place.
    """
    brokers, dims = pi.shape
    q = np.empty((dims, brokers))
    highest = np.zeros(dims)
    total, lost, size = 0.0, 0.0, 0.0
    for b in range(brokers):
        for d in range(dims):
            q[d, b] = pi[b, d] * c.scale[b, d]
            highest[d] = max(highest[d], abs(q[d, b]))
            if c.holding[b]:
                square = pi[b, d] * pi[b, d] / (4.0 * c.weight[d])
                total, lost = _added(total, lost, -square - pi[b, d])
                size += square + abs(pi[b, d])
    lowest = lowest_prices(q)
    for p in range(len(c.home)):
        if c.free[p] and not stays_cheapest(c, q, lowest, p, 0.0):
            price_row(c, q, p, 0.0, r)
            total, lost = _added(total, lost, cheapest(c, p, r))
            size += c.rf[p] * c.price[p] + c.leader_price
        else:
            total, lost = _added(total, lost, stay_cost(c, q, p))
        for d in range(dims):
            size += (c.lead[p, d] + (c.rf[p] - 1) * c.follow[p, d]) * highest[d]
    return total + lost - ROUNDING * size


@compiled
def _added(total: float, lost: float, x: float) -> tuple[float, float]:
    """A sum and its rounding error, with x added (Neumaier, 1974)."""
    new = total + x
    if abs(total) >= abs(x):
        return new, lost + ((total - new) + x)
    return new, lost + ((x - new) + total)

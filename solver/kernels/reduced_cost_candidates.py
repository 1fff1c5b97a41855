"""Changes worth trying: those of small reduced cost.

The reduced cost of a change is the cost, at the dual prices, of the row's cheapest
configuration that includes it, minus that of its cheapest configuration overall. A
change with a large reduced cost is hardly ever part of a good plan.
"""

from typing import Final, NamedTuple

import numpy as np

from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.move_deltas import may_lead, may_take
from solver.kernels.pricing import (
    PricingScratch,
    at_home,
    cheapest,
    lowest_prices,
    price_row,
    stays_cheapest,
)
from solver.kernels.problem_arrays import Columns

HOLD: Final = 1
"""Bit of a broker that may hold a replica."""
LEAD: Final = 2
"""Bit of a broker that may lead."""


@by_reference
class Candidates(NamedTuple):
    """Changes to be tried: m rows, and the brokers that each may use."""

    row: Array
    """(m,) positions of the rows."""
    may: Array
    """(m, B) uint8: `HOLD`, `LEAD` or both."""


def new_candidates(row: Array, may: Array) -> Candidates:
    """Build candidates from `row`, (m,) rows, and `may`, (m, B) uint8 bits of each broker."""
    return linked(Candidates(row=row, may=may))


@compiled
def find_candidates(
    c: Columns,
    q: Array,
    rows: Array,
    within: float,
    lead_within: float,
    r: PricingScratch,
    row: Array,
    may: Array,
) -> int:
    """Fill `row` and `may` with changes whose reduced cost is within the limits.

    `q` is (K, B), prices per unit of load; `rows` lists rows to consider, which must be free
    to change. `within` limits new replicas and `lead_within` leader changes, in units of F;
    with one replica only `within` counts. Brokers where a replica may stay are always
    included. `may` is (m, B) uint8. Returns the number of rows found, at most `len(row)`;
    the places behind them are undefined.
    """
    brokers = q.shape[1]
    lowest = lowest_prices(q)
    found = 0
    for i in range(len(rows)):
        p = rows[i]
        if stays_cheapest(c, q, lowest, p, within + lead_within):
            continue
        price_row(c, q, p, 0.0, r)
        least = cheapest(c, p, r)
        bits = may[found]
        bits[:] = 0
        if c.rf[p] == 1:
            choices = 0
            for b in range(brokers):
                if r.lead[b] - least <= within:
                    bits[b] = HOLD | LEAD
                    choices += b != c.home[p, 0]
        else:
            choices = _set_candidates(c, p, within, lead_within, r, bits)
        if choices == 0:
            continue
        for k in range(c.rf[p]):
            if c.stays[p, k]:
                b = c.home[p, k]
                bits[b] |= HOLD
                if k == 0 and r.lead[b] < np.inf:
                    bits[b] |= LEAD
        row[found] = p
        found += 1
        if found == len(row):
            break
    return found


@compiled
def least_reduced_costs(c: Columns, q: Array, rows: Array, r: PricingScratch) -> Array:
    """Return (m,) the least reduced cost of any change of `rows`, (m,), in units of F.

    0 for a row whose cheapest configuration is a change, infinite for one without any. `q` is
    (K, B), prices per unit of load; the rows must be free to change.
    """
    found = np.full(len(rows), np.inf)
    for i in range(len(rows)):
        p = rows[i]
        price_row(c, q, p, 0.0, r)
        least = cheapest(c, p, r)
        for b in range(q.shape[1]):
            if c.rf[p] == 1:
                held, led = np.inf, r.lead[b] - least
            else:
                held, led = _exchange_costs(c, c.group[p], c.rf[p], b, r.best[0], r)
            if b != c.home[p, 0]:
                found[i] = min(found[i], led)
            if not at_home(c, p, b):
                found[i] = min(found[i], held)
    return found


@compiled
def _set_candidates(
    c: Columns, p: int, within: float, lead_within: float, r: PricingScratch, bits: Array
) -> int:
    """Mark single exchanges with the cheapest configuration; count those that differ from home."""
    rf, g = c.rf[p], c.group[p]
    leader = r.best[0]
    choices = 0
    for b in range(len(r.follow)):
        held, led = _exchange_costs(c, g, rf, b, leader, r)
        if led <= lead_within:
            bits[b] |= HOLD | LEAD
        elif held <= within:
            bits[b] |= HOLD
        if bits[b]:
            leads = bits[b] & LEAD and b != c.home[p, 0]
            choices += 1 if leads or not at_home(c, p, b) else 0
    return choices


@compiled
def _exchange_costs(
    c: Columns, g: int, rf: int, b: int, leader: int, r: PricingScratch
) -> tuple[float, float]:
    """Reduced cost of broker b as a follower, and as the leader."""
    if r.follow[b] == np.inf:
        return np.inf, np.inf
    in_rack, inside = 0, False
    for k in range(rf):
        in_rack += c.rack[r.best[k]] == c.rack[b]
        inside |= r.best[k] == b
    if inside:
        if b == leader:
            return 0.0, 0.0
        return 0.0, r.lead[b] - r.follow[b] + r.follow[leader] - r.lead[leader]
    full = in_rack >= c.most[g, c.rack[b]]
    held, led = np.inf, np.inf
    for k in range(rf):
        out = r.best[k]
        if full and c.rack[out] != c.rack[b]:
            continue
        if k > 0:
            held = min(held, r.follow[b] - r.follow[out])
            led = min(led, r.lead[b] + r.follow[leader] - r.lead[leader] - r.follow[out])
        else:
            led = min(led, r.lead[b] - r.lead[leader])
            for j in range(1, rf):
                heir = r.best[j]
                held = min(held, r.follow[b] + r.lead[heir] - r.follow[heir] - r.lead[leader])
    return held, led


@compiled
def large_rows(c: Columns, rows: Array, size: float, row: Array, may: Array) -> int:
    """Fill `row` and `may` with rows whose load is at least `size` means in a dimension.

    `row` is (m,) and `may` (m, B): every broker that pins, states and returns allow. Prices
    split large partitions, so reduced costs say little about where they belong. Returns
    the number of rows found, at most `len(row)`.
    """
    found = 0
    for i in range(len(rows)):
        p = rows[i]
        largest = 0.0
        for d in range(c.lead.shape[1]):
            largest = max(largest, c.lead[p, d])
        if largest < size:
            continue
        for b in range(len(c.scale)):
            may[found, b] = 0
            if may_take(c, p, b):
                may[found, b] = HOLD | (LEAD if may_lead(c, p, b) else 0)
        row[found] = p
        found += 1
        if found == len(row):
            break
    return found

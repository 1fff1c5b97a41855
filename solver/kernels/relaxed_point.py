"""Rows with one replica on brokers, some of them decided, and a point of the relaxation.

minimise over masses m: sum_pb m_pb c_pb + sum_bd w_d v_bd^2

where the masses of a row sum to one. Split rows are mixed over their brokers by conjugate
gradients; a place that becomes empty leaves the mix, and the directions restart (Polyak, 1969).
"""

from typing import NamedTuple

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import by_reference, compiled, linked

UNSPLIT = 1e-12
"""Mass that counts as none."""


@by_reference
class Relaxed(NamedTuple):
    """R rows on B brokers, K balanced dimensions, and the point reached."""

    cost: Floats
    """(R, B) cost of each row on each broker; infinite where it is ruled out."""
    load: Floats
    """(R, K) load as a share of the mean."""
    scale: Floats
    """(B, K) deviation per unit of load."""
    fixed: Floats
    """(B, K) deviation from all other rows."""
    weight: Floats
    """(K,) weight in F."""
    decided: Ints
    """(R,) the only broker that a row may be on; -1 where it may be on several."""
    mass: Floats
    """(R, B) share of each row on each broker."""
    v: Floats
    """(B, K) deviations."""
    q: Floats
    """(B, K) prices per unit of load at these deviations."""
    prices: Floats
    """(B, K) best prices of deviation found."""
    active: Ints
    """(R,) rows that are cheaper on a broker that holds none of them."""
    size: Floats
    """(R,) length of each load vector; 1 where it is 0."""


def new_relaxed(
    cost: Floats, load: Floats, scale: Floats, fixed: Floats, weight: Floats
) -> Relaxed:
    """Create a relaxation with nothing decided and no mass placed.

    `cost` is (R, B), `load` (R, K), `scale` and `fixed` (B, K), `weight` (K,), as in the
    fields of `Relaxed`. K is at least 1.
    """
    size = np.sqrt(sum(w * x * x for w, x in zip(weight, load.T, strict=True)))
    record = Relaxed(
        cost=cost,
        load=load,
        scale=scale,
        fixed=fixed,
        weight=weight,
        decided=np.full(len(cost), -1),
        mass=np.zeros(cost.shape),
        v=fixed.copy(),
        q=np.zeros(fixed.shape),
        prices=np.zeros(fixed.shape),
        active=np.zeros(len(cost), np.int64),
        size=np.where(size > 0.0, size, 1.0),
    )
    return linked(record)


@compiled
def may(x: Relaxed, p: int, b: int) -> bool:
    """Return whether row p may be on broker b: neither ruled out nor decided otherwise."""
    return x.cost[p, b] < np.inf and (x.decided[p] < 0 or x.decided[p] == b)


@compiled
def price_of(x: Relaxed, p: int, b: int) -> float:
    """Compute the cost of row p on broker b, its load priced at `x.q`, in units of F."""
    found = x.cost[p, b]
    for d in range(len(x.weight)):
        found += x.q[b, d] * x.load[p, d]
    return found


@compiled
def quote(x: Relaxed, b: int) -> None:
    """Set `q` of broker b to the marginal cost per unit of load at its deviations."""
    for d in range(len(x.weight)):
        x.q[b, d] = 2.0 * x.weight[d] * x.v[b, d] * x.scale[b, d]


@compiled
def _drop_whole(x: Relaxed, row: Ints, broker: Ints, many: int) -> int:
    """Remove empty places, and rows that are whole, from the list; return its new length.

    `row` and `broker` list the places of split rows, row after row.
    """
    kept, first = 0, 0
    while first < many:
        p, last, start = row[first], first, kept
        while last < many and row[last] == p:
            if x.mass[p, broker[last]] > 0.0:
                row[kept], broker[kept] = p, broker[last]
                kept += 1
            last += 1
        if kept - start < 2:
            kept = start
        first = last
    return kept


@compiled
def _project(x: Relaxed, row: Ints, broker: Ints, many: int, slope: Floats) -> float:
    """Fill slope, (many,): how F falls if mass moves there from the row's other places.

    In units of load, so that all rows have about the same curvature. Returns its square.
    """
    total, first = 0.0, 0
    while first < many:
        p, last, mean = row[first], first, 0.0
        while last < many and row[last] == p:
            slope[last] = -price_of(x, p, broker[last])
            mean += slope[last]
            last += 1
        mean /= last - first
        size = x.size[p]
        for i in range(first, last):
            slope[i] = (slope[i] - mean) / size
            total += slope[i] * slope[i]
        first = last
    return total


@compiled
def _along(x: Relaxed, row: Ints, broker: Ints, many: int, direction: Floats, v: Floats) -> float:
    """Fill v, (B, K), with the deviations along a direction; return half the curvature of F."""
    v[:, :] = 0.0
    for i in range(many):
        p, b = row[i], broker[i]
        m = direction[i] / x.size[p]
        for d in range(len(x.weight)):
            v[b, d] += m * x.load[p, d] * x.scale[b, d]
    bend = 0.0
    for b in range(len(v)):
        for d in range(len(x.weight)):
            bend += x.weight[d] * v[b, d] * v[b, d]
    return bend


@compiled
def _step(
    x: Relaxed, row: Ints, broker: Ints, many: int, direction: Floats, far: float, v: Floats
) -> bool:
    """Move along a direction until F is least or a place is empty; return whether one became so."""
    most = np.inf
    for i in range(many):
        if direction[i] < 0.0:
            m = x.mass[row[i], broker[i]] * x.size[row[i]]
            most = min(most, -m / direction[i])
    stopped = most <= far
    far = min(most, far)
    for i in range(many):
        p, b = row[i], broker[i]
        x.mass[p, b] += far * direction[i] / x.size[p]
        if x.mass[p, b] < UNSPLIT:
            x.mass[p, b] = 0.0
            stopped = True
    for b in range(len(v)):
        for d in range(len(x.weight)):
            x.v[b, d] += far * v[b, d]
        quote(x, b)
    return stopped


@compiled
def mix(x: Relaxed, small: float, steps: int) -> int:
    """Move split rows to where F is least, on the same brokers.

    Ends after `steps` steps, or where one gains less than `small`, in units of F. `x.v` and
    `x.q` must be those of the masses (`relaxed_value`), and are updated. Returns the
    approximate number of operations.
    """
    row, broker = np.nonzero(x.mass > 0.0)
    many, before, effort = _drop_whole(x, row, broker, len(row)), 0.0, x.cost.size
    slope, direction, v = np.empty(many), np.zeros(many), np.empty(x.fixed.shape)
    for _ in range(steps):
        if many == 0:
            break
        square = _project(x, row, broker, many, slope)
        effort += 6 * many * len(x.weight)
        ratio = square / before if before > 0.0 else 0.0
        along = 0.0
        for i in range(many):
            direction[i] = slope[i] + ratio * direction[i]
            along += direction[i] * slope[i]
        before = square
        bend = _along(x, row, broker, many, direction, v)
        far = along / (2.0 * bend) if bend > 0.0 else np.inf
        if along <= 0.0 or along * min(far, 1.0) < small:
            break
        if _step(x, row, broker, many, direction, far, v):
            many, before = _drop_whole(x, row, broker, many), 0.0
    return effort

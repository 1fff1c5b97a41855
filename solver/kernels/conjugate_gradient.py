"""Optimal mixing of rows over the brokers they are split over, by conjugate gradients.

A place that becomes empty leaves the mix, and the directions restart (Polyak, 1969).
"""

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled
from solver.kernels.relaxed_point import Relaxed, price_of, quote

UNSPLIT = 1e-12
"""Mass that counts as none."""


@compiled
def _list_split(x: Relaxed) -> tuple[Ints, Ints]:
    """Places of split rows: (M,) rows one after the other, and (M,) brokers."""
    room = 0
    for p in range(len(x.cost)):
        for b in range(len(x.fixed)):
            room += x.mass[p, b] > 0.0
    row, broker, many = np.empty(room, np.int64), np.empty(room, np.int64), 0
    for p in range(len(x.cost)):
        for b in range(len(x.fixed)):
            if x.mass[p, b] > 0.0:
                row[many], broker[many] = p, b
                many += 1
    many = _drop_whole(x, row, broker, many)
    return row[:many].copy(), broker[:many].copy()


@compiled
def _drop_whole(x: Relaxed, row: Ints, broker: Ints, many: int) -> int:
    """Remove empty places, and rows that are whole, from the list; return its new length."""
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

    Ends after `steps` steps, or where one gains less than `small`. Returns the
    approximate number of operations.
    """
    row, broker = _list_split(x)
    many, before, effort = len(row), 0.0, x.cost.size
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

"""The master problem of the bundle method: what rows should pay, given known sets.

maximise over mu: sum_p mu_p + sum_b min_j (V_bj - sum_j mu) - |mu - centre|^2 / 2 t

over the sets j known of each broker b: the proximal bundle method (Lemarechal, 1975;
Kiwiel, 1990), with one model per broker. Solved in the dual, where each broker mixes
its sets: weight moves from its most expensive set to its cheapest, by an exact step.
"""

from typing import NamedTuple

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.kernels.broker_subproblems import Subproblems
from solver.kernels.compiled import by_reference, compiled, linked

SWEEPS = 300
"""Most rounds over all brokers in one solution."""

MOST_EFFORT = 200_000_000
"""Operations after which no further round begins."""


@by_reference
class BundleMaster(NamedTuple):
    """Up to C sets of each of B brokers, of up to L rows each."""

    row: Ints
    """(B, C, L) int32 rows of each set."""
    length: Ints
    """(B, C) rows in each set."""
    value: Floats
    """(B, C) cost of the changes plus squares of the deviations."""
    weight: Floats
    """(B, C) weight of each set in the broker's mix."""
    cost: Floats
    """(B, C) value minus what the rows pay."""
    idle: Ints
    """(B, C) rounds without weight."""
    used: Ints
    """(B,) number of sets known."""


def new_master(brokers: int, sets: int, length: int) -> BundleMaster:
    """Create an empty master problem of the bundle method.

    Has space for `sets` sets of rows per broker, each of up to `length` rows.
    """
    shape = (brokers, sets)
    record = BundleMaster(
        row=np.zeros((*shape, length), np.int32),
        length=np.zeros(shape, np.int64),
        value=np.zeros(shape),
        weight=np.zeros(shape),
        cost=np.zeros(shape),
        idle=np.zeros(shape, np.int64),
        used=np.zeros(brokers, np.int64),
    )
    return linked(record)


@compiled
def add_sets(m: BundleMaster, p: Subproblems, held: Bools) -> None:
    """Add the set of choices that each broker holds, `held`, (I,).

    Sets of more than L rows are not added. In a full list, a set replaces the one that
    has been without weight for longest.
    """
    for b in range(len(m.used)):
        length = 0
        for i in range(p.start[b], p.start[b + 1]):
            length += held[i]
        if length > m.row.shape[2]:
            continue
        j = _free_place(m, b)
        _fill(m, p, held, b, j)


@compiled
def _free_place(m: BundleMaster, b: int) -> int:
    """A free place; otherwise that of the set idle for longest."""
    j = m.used[b]
    if j < m.value.shape[1]:
        m.used[b] += 1
        m.weight[b, j] = 1.0 if j == 0 else 0.0
        m.idle[b, j] = 0
        return int(j)
    j = 0
    for k in range(m.used[b]):
        if m.idle[b, k] > m.idle[b, j]:
            j = k
    if m.weight[b, j] > 0.0:
        best = 0 if j > 0 else 1
        for k in range(m.used[b]):
            if k != j and m.weight[b, k] > m.weight[b, best]:
                best = k
        m.weight[b, best] += m.weight[b, j]
        m.weight[b, j] = 0.0
    m.idle[b, j] = 0
    return j


@compiled
def _fill(m: BundleMaster, p: Subproblems, held: Bools, b: int, j: int) -> None:
    value, length = 0.0, 0
    v = p.fixed[b].copy()
    for i in range(p.start[b], p.start[b + 1]):
        if held[i]:
            m.row[b, j, length] = p.row[i]
            length += 1
            value += p.cost[i]
            for d in range(len(v)):
                v[d] += p.load[i, d]
    for d in range(len(v)):
        value += p.weight[d] * v[d] * v[d]
    m.value[b, j], m.length[b, j] = value, length


@compiled
def _price(m: BundleMaster, mu: Floats, b: int) -> int:
    """Compute the cost of each set of a broker; return the operations."""
    effort = 0
    for j in range(m.used[b]):
        cost = m.value[b, j]
        for i in range(m.length[b, j]):
            cost -= mu[m.row[b, j, i]]
        m.cost[b, j] = cost
        effort += m.length[b, j]
    return effort


@compiled
def _mix(m: BundleMaster, b: int, t: float, mu: Floats, mark: Ints) -> float:
    """Shift weight between two sets of a priced broker; return by how much the mix was
    too expensive.

    `mark` is (n,) zeros, left as zeros.
    """
    low, high, over = 0, -1, 0.0
    for j in range(m.used[b]):
        if m.cost[b, j] < m.cost[b, low]:
            low = j
    for j in range(m.used[b]):
        if m.weight[b, j] > 0.0:
            over += m.weight[b, j] * (m.cost[b, j] - m.cost[b, low])
            if high < 0 or m.cost[b, j] > m.cost[b, high]:
                high = j
    if low == high or m.cost[b, high] <= m.cost[b, low]:
        return over
    differ = 0
    for j in (low, high):
        for i in range(m.length[b, j]):
            mark[m.row[b, j, i]] += 1 if j == low else -1
    for j in (low, high):
        for i in range(m.length[b, j]):
            differ += mark[m.row[b, j, i]] != 0
    step = m.weight[b, high]
    if differ > 0:
        step = min(step, (m.cost[b, high] - m.cost[b, low]) / (t * differ))
    m.weight[b, high] -= step
    m.weight[b, low] += step
    for j in (low, high):
        for i in range(m.length[b, j]):
            p = m.row[b, j, i]
            mu[p] -= t * step * mark[p]
            mark[p] = 0
    return over


@compiled
def solve_master(
    m: BundleMaster, centre: Floats, t: float, mu: Floats, small: float
) -> tuple[float, int]:
    """Fill `mu`, (R,), with the best multipliers near `centre`, (R,).

    Every broker needs a known set. `t` is the weight of the proximal term: the larger, the
    farther `mu` may go. Ends when the brokers' mixes are too expensive by at most `small` in
    total, in units of F. Returns the model's value at `mu`, an upper model of the bound, and
    the approximate number of operations.
    """
    for p in range(len(mu)):
        mu[p] = centre[p] + t
    for b in range(len(m.used)):
        for j in range(m.used[b]):
            if m.weight[b, j] > 0.0:
                for i in range(m.length[b, j]):
                    mu[m.row[b, j, i]] -= t * m.weight[b, j]
    mark = np.zeros(len(mu), np.int64)
    effort = 0
    for _ in range(SWEEPS):
        over = 0.0
        for b in range(len(m.used)):
            effort += _price(m, mu, b)
            over += _mix(m, b, t, mu, mark)
        if over <= small or effort >= MOST_EFFORT:
            break
    total = 0.0
    for p in range(len(mu)):
        total += mu[p]
    for b in range(len(m.used)):
        effort += _price(m, mu, b)
        low = np.inf
        for j in range(m.used[b]):
            low = min(low, m.cost[b, j])
            m.idle[b, j] = 0 if m.weight[b, j] > 0.0 else m.idle[b, j] + 1
        total += low
    return total, effort

"""What each broker would hold if rows paid for it: one small subproblem per broker.

A broker b may hold any of its choices i, each at the cost c_i minus what the row pays:

minimise over sets S: sum_S (c_i - mu_i) + sum_d w_d (v_d + sum_S a_id)^2

With any eta, and reduced costs r_i = c_i - mu_i + eta . a_i, the value of S is exactly
a base plus |r_i| of each choice that S decides against the sign of r_i, a flip, plus
sum_d w_d z_d^2 of the residual z = v(S) - eta / 2 w. The higher the base, the fewer
flips can pay off (Geoffrion, 1974).
"""

from typing import NamedTuple

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.kernels.compiled import by_reference, compiled
from solver.kernels.copying import copy_to
from solver.kernels.single_broker_bnb import (
    LEAST_GAIN,
    BrokerTree,
    branch,
    descend,
    lift,
    pair_up,
    scale_grid,
    squares,
    sum_rests,
)

PAIRED = 96
"""Flips of least cost that are also tried in pairs."""

FINER = 0.04
"""Factor on a grid's largest square of prices where nothing higher is found."""

FINEST = 1e-6
"""Share of the first grid's at which the search ends."""

MOST_ROUNDS = 30
"""Most grids in the search for a broker's prices."""


@by_reference
class Subproblems(NamedTuple):
    """The choices of B brokers, broker after broker; K balanced dimensions."""

    start: Ints
    """(B + 1,) first choice of each broker."""
    row: Ints
    """(I,) int32 row of each choice."""
    cost: Floats
    """(I,) cost of the change; 0 at home."""
    load: Floats
    """(I, K) deviation that the row adds."""
    fixed: Floats
    """(B, K) deviation from what is decided."""
    weight: Floats
    """(K,) weight in F."""


@compiled
def solve_brokers(
    p: Subproblems,
    first: int,
    end: int,
    mu: Floats,
    eta: Floats,
    held: Bools,
    within: float,
    nodes: int,
    t: BrokerTree,
) -> tuple[float, float, int]:
    """Solve the subproblems of brokers `first` to `end` - 1 at multipliers mu, (n,).

    `mu` is what each row pays, in units of F. `eta` is (B, K), any prices of deviation; a
    broker's are moved in place to where its base is higher. `held` is (I,): a set of each
    broker to start from, replaced by the best one found. Each broker's value is exact to
    `within`, in units of F, unless `nodes` branchings are too few. Returns the sum of the
    proved values, the sum of the values found less it, and the approximate number of
    operations. `t` is overwritten: concurrent calls need their own.
    """
    total, open_, effort = 0.0, 0.0, 0
    for b in range(first, end):
        base = _reduce(p, mu, eta, b, t)
        best, done = _improve(p, eta, b, held, t)
        effort += done + _centre(p, eta, b, t, best)
        higher = _reduce(p, mu, eta, b, t)
        best += base - higher
        least, best, done = _prove(p, eta, b, held, best, within, nodes, t)
        total += higher + least
        open_ += best - least
        effort += done
    return total, open_, effort


@compiled
def _reduce(p: Subproblems, mu: Floats, eta: Floats, b: int, t: BrokerTree) -> float:
    """Compute reduced costs of a broker's choices; return the base, a bound of any set's cost."""
    base = 0.0
    for d in range(len(p.weight)):
        x = eta[b, d]
        base += x * p.fixed[b, d] - x * x / (4.0 * p.weight[d])
    first = p.start[b]
    for i in range(first, p.start[b + 1]):
        r = p.cost[i] - mu[p.row[i]]
        for d in range(len(p.weight)):
            r += eta[b, d] * p.load[i, d]
        t.reduced[i - first] = r
        base += min(0.0, r)
    return base


@compiled
def _residual(p: Subproblems, eta: Floats, b: int, t: BrokerTree) -> Floats:
    """Residual, (K,), of the set that the signs of the reduced costs choose."""
    first, z = p.start[b], np.empty(len(p.weight))
    for d in range(len(z)):
        z[d] = p.fixed[b, d] - eta[b, d] / (2.0 * p.weight[d])
    for i in range(p.start[b + 1] - first):
        if t.reduced[i] < 0.0:
            for d in range(len(z)):
                z[d] += p.load[first + i, d]
    return z


@compiled
def _improve(p: Subproblems, eta: Floats, b: int, held: Bools, t: BrokerTree) -> tuple[float, int]:
    """Find a good set for a broker; return its value over the base, and the operations."""
    z = _residual(p, eta, b, t)
    best = _start(p, b, held, t, z)
    many = _gather(p, b, t, best, by_size=False)
    best, singles = descend(p.weight, t, many, z, best)
    many = _gather(p, b, t, best, by_size=False)
    best, pairs = pair_up(p.weight, t, min(many, PAIRED), z, best)
    _write(p, b, held, t)
    return best, singles + pairs


@compiled
def _prove(
    p: Subproblems,
    eta: Floats,
    b: int,
    held: Bools,
    best: float,
    within: float,
    nodes: int,
    t: BrokerTree,
) -> tuple[float, float, int]:
    """Values over the base, proved and found, and the number of operations.

    `best` is the value of the set in `held`, which is replaced by a better one.
    """
    root = _residual(p, eta, b, t)
    _read(p, b, held, t)
    many = _gather(p, b, t, best, by_size=True)
    scale_grid(p.weight, best, t)
    sum_rests(t, many)
    least, best, done = branch(p.weight, t, many, root, best, within, nodes)
    _write(p, b, held, t)
    grid = len(t.square) * len(root)
    count = p.start[b + 1] - p.start[b]
    return least, best, grid * (many + 2 * done) + 4 * len(root) * count


@compiled
def _sign(t: BrokerTree, i: int) -> float:
    """1 where flip i adds the load of choice i, -1 where it takes it away."""
    return -1.0 if t.reduced[i] < 0.0 else 1.0


@compiled
def _read(p: Subproblems, b: int, held: Bools, t: BrokerTree) -> None:
    """Set the flips that make the given set from that of the signs."""
    first = p.start[b]
    for i in range(p.start[b + 1] - first):
        t.flipped[i] = held[first + i] != (t.reduced[i] < 0.0)


@compiled
def _write(p: Subproblems, b: int, held: Bools, t: BrokerTree) -> None:
    first = p.start[b]
    for i in range(p.start[b + 1] - first):
        held[first + i] = (t.reduced[i] < 0.0) != t.flipped[i]


@compiled
def _start(p: Subproblems, b: int, held: Bools, t: BrokerTree, z: Floats) -> float:
    """Start at the given set or at that of the signs; return its value over the base."""
    first, count = p.start[b], p.start[b + 1] - p.start[b]
    plain, value = squares(p.weight, z), 0.0
    warm = z.copy()
    _read(p, b, held, t)
    for i in range(count):
        if t.flipped[i]:
            value += abs(t.reduced[i])
            for d in range(len(z)):
                warm[d] += _sign(t, i) * p.load[first + i, d]
    value += squares(p.weight, warm)
    if value < plain:
        copy_to(z, warm)
        return value
    t.flipped[:count] = False
    return plain


@compiled
def _gather(p: Subproblems, b: int, t: BrokerTree, value: float, by_size: bool) -> int:
    """List flips that a set better than `value` may make, and those made now."""
    first, count, dims = p.start[b], p.start[b + 1] - p.start[b], len(p.weight)
    key, found = np.empty(count), np.empty(count, np.int64)
    many = 0
    for i in range(count):
        if abs(t.reduced[i]) < value or t.flipped[i]:
            key[many] = abs(t.reduced[i])
            if by_size:
                key[many] = -squares(p.weight, p.load[first + i])
            elif t.flipped[i]:
                key[many] = -1.0
            found[many] = i
            many += 1
    order = np.argsort(key[:many], kind="mergesort")
    for k in range(many):
        i = found[order[k]]
        t.choice[k] = i
        t.flip[k] = abs(t.reduced[i])
        for d in range(dims):
            t.shift[k, d] = _sign(t, i) * p.load[first + i, d]
    return many


@compiled
def _centre(p: Subproblems, eta: Floats, b: int, t: BrokerTree, value: float) -> int:
    """Move a broker's eta to where its base is highest; return the operations.

    A pattern search over the grid, refined where it finds nothing higher. `value` is
    that of the best set known.
    """
    dims, grid = len(p.weight), len(t.square)
    many = _gather(p, b, t, value, by_size=False)
    root, here, price = _residual(p, eta, b, t), np.zeros(dims), np.empty(dims)
    best, scale, rounds = 0.0, value, 0
    while scale > FINEST * value and rounds < MOST_ROUNDS:
        rounds += 1
        scale_grid(p.weight, scale, t)
        at = -1
        for g in range(grid):
            for d in range(dims):
                price[d] = here[d] + t.price[g, d]
            found = lift(p.weight, t, many, root, price)
            if found > best + LEAST_GAIN:
                at, best = g, found
        if at < 0:
            scale *= FINER
            continue
        for d in range(dims):
            here[d] += t.price[at, d]
    for d in range(dims):
        eta[b, d] += here[d]
    return rounds * grid * dims * many

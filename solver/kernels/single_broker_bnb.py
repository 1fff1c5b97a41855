"""The cheapest set of flips of one broker's choices, by branch and bound.

A set of flips costs their sum plus sum_d w_d z_d^2 of the residual z that they leave.
Best first, the largest flip is decided first; for any prices e of the residual

cost + e . z - sum_d e_d^2 / 4 w_d + sum of min(0, flip + e . shift) still undecided

is a bound of a node. It is evaluated at a fixed grid of prices, whose sums over
undecided flips are computed once (Land and Doig, 1960).
"""

from typing import NamedTuple

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.kernels.compiled import by_reference, compiled, linked
from solver.kernels.copying import copy_to

DIVE_EVERY = 64
"""Nodes between two dives to a complete set."""

STEPS = 200
"""Most steps of a descent; each lowers the value."""

LEAST_GAIN = 1e-13
ROUNDING = 1e-15


@by_reference
class BrokerTree(NamedTuple):
    """Working memory for one broker's search: I choices, N nodes, G prices of the grid."""

    reduced: Floats
    """(I,) reduced costs."""
    choice: Ints
    """(I,) choices that may be flipped, in the order of branching."""
    flip: Floats
    """(I,) cost of each flip."""
    shift: Floats
    """(I, K) its effect on the residual."""
    flipped: Bools
    """(I,) flips of the best set."""
    direction: Floats
    """(G, K) shape of the grid."""
    price: Floats
    """(G, K) prices of the grid."""
    square: Floats
    """(G,) sum of price^2 / 4 w."""
    rest: Floats
    """(I + 1, G) by how much undecided flips can still lower a node's bound."""
    key: Floats
    """(N,) bounds of open nodes, a heap."""
    open_: Ints
    """(N,) the nodes."""
    depth: Ints
    """(N,) flips decided."""
    cost: Floats
    """(N,) cost of the flips made."""
    z: Floats
    """(N, K) residual of each node."""
    parent: Ints
    """(N,) parent of each node."""
    made: Bools
    """(N,) whether the last flip decided was made."""


def new_tree(start: Ints, direction: Floats, nodes: int) -> BrokerTree:
    """Allocate memory for the largest broker, and for `nodes` nodes to be branched on.

    `start` is (B + 1,): first choice of each broker. `direction` is (G, K): the grid's prices
    as shares of the largest one, which `scale_grid` turns into prices.
    """
    most = int(np.diff(start).max(initial=1))
    count, dims = direction.shape
    room = 2 * nodes + 64 * most + 4
    record = BrokerTree(
        reduced=np.zeros(most),
        choice=np.zeros(most, np.int64),
        flip=np.zeros(most),
        shift=np.zeros((most, dims)),
        flipped=np.zeros(most, np.bool_),
        direction=direction,
        price=np.zeros((count, dims)),
        square=np.zeros(count),
        rest=np.zeros((most + 1, count)),
        key=np.zeros(room),
        open_=np.zeros(room, np.int64),
        depth=np.zeros(room, np.int64),
        cost=np.zeros(room),
        z=np.zeros((room, dims)),
        parent=np.zeros(room, np.int64),
        made=np.zeros(room, np.bool_),
    )
    return linked(record)


@compiled
def squares(weight: Floats, z: Floats) -> float:
    """Compute the cost of a residual, (K,): its weighted squares, in units of F."""
    total = 0.0
    for d in range(len(z)):
        total += weight[d] * z[d] * z[d]
    return total


@compiled
def _change(weight: Floats, t: BrokerTree, k: int, z: Floats) -> float:
    """Change of the value when listed flip k is made or undone at residual z."""
    sign = -1.0 if t.flipped[t.choice[k]] else 1.0
    change = sign * t.flip[k]
    for d in range(len(z)):
        a = sign * t.shift[k, d]
        change += weight[d] * a * (2.0 * z[d] + a)
    return change


@compiled
def _toggle(t: BrokerTree, k: int, z: Floats) -> None:
    i = t.choice[k]
    sign = -1.0 if t.flipped[i] else 1.0
    for d in range(len(z)):
        z[d] += sign * t.shift[k, d]
    t.flipped[i] = not t.flipped[i]


@compiled
def descend(weight: Floats, t: BrokerTree, many: int, z: Floats, value: float) -> tuple[float, int]:
    """Make or undo single flips, the best first, while they lower the value.

    `many` is the number of flips listed, z, (K,), the residual and `value` the value of the
    set in `t.flipped`; z and `t.flipped` are changed in place.
    Returns the value reached, and the approximate number of operations.
    """
    effort = 0
    for _ in range(STEPS):
        chosen, gain = -1, -LEAST_GAIN
        for k in range(many):
            change = _change(weight, t, k, z)
            if change < gain:
                chosen, gain = k, change
        effort += 3 * len(z) * many
        if chosen < 0:
            break
        _toggle(t, chosen, z)
        value += gain
    return value, effort


@compiled
def pair_up(weight: Floats, t: BrokerTree, many: int, z: Floats, value: float) -> tuple[float, int]:
    """Make or undo up to two flips at a time while they lower the value.

    Only among the first `many` listed. z, (K,), is the residual and `value` the value of the
    set in `t.flipped`; z and `t.flipped` are changed in place.
    Returns the value reached, and the approximate number of operations.
    """
    effort = 0
    for _ in range(STEPS):
        one, two, gain = -1, -1, -LEAST_GAIN
        for k in range(many):
            change = _change(weight, t, k, z)
            if change < gain:
                one, two, gain = k, -1, change
            _toggle(t, k, z)
            for j in range(k):
                both = change + _change(weight, t, j, z)
                if both < gain:
                    one, two, gain = k, j, both
            _toggle(t, k, z)
        effort += 2 * many * many * len(z)
        if one < 0:
            break
        _toggle(t, one, z)
        if two >= 0:
            _toggle(t, two, z)
        value += gain
    return value, effort


@compiled
def scale_grid(weight: Floats, value: float, t: BrokerTree) -> None:
    """Scale the grid's prices up to those of a residual that costs `value`, in units of F.

    Sets `t.price`, (G, K), from `t.direction`, and `t.square`, (G,) sums of price^2 / 4 w.
    """
    for g in range(len(t.square)):
        t.square[g] = 0.0
        for d in range(len(weight)):
            t.price[g, d] = t.direction[g, d] * 2.0 * np.sqrt(weight[d] * value)
            t.square[g] += t.price[g, d] * t.price[g, d] / (4.0 * weight[d])


@compiled
def sum_rests(t: BrokerTree, many: int) -> None:
    """Fill `t.rest`: by how much the flips from the k-th on can lower each price's bound.

    In units of F; `many` is the number of flips considered.
    """
    for g in range(len(t.square)):
        t.rest[many, g] = 0.0
    for k in range(many - 1, -1, -1):
        for g in range(len(t.square)):
            reduced = t.flip[k]
            for d in range(t.shift.shape[1]):
                reduced += t.price[g, d] * t.shift[k, d]
            t.rest[k, g] = t.rest[k + 1, g] + min(0.0, reduced)


@compiled
def lift(weight: Floats, t: BrokerTree, many: int, root: Floats, price: Floats) -> float:
    """Compute by how much the base rises when a broker's eta rises by `price`, (K,).

    In units of F. `root` is (K,), the residual at the present eta, and `many` the number of
    flips considered.
    """
    found = 0.0
    for d in range(len(root)):
        found += price[d] * root[d] - price[d] * price[d] / (4.0 * weight[d])
    for k in range(many):
        reduced = t.flip[k]
        for d in range(len(root)):
            reduced += price[d] * t.shift[k, d]
        found += min(0.0, reduced)
    return found


@compiled
def _bound(t: BrokerTree, k: int, z: Floats, cost: float) -> float:
    """Least value of any set after k decisions, given residual z and their cost."""
    best = 0.0
    for g in range(len(t.square)):
        value = t.rest[k, g] - t.square[g]
        for d in range(len(z)):
            value += t.price[g, d] * z[d]
        best = max(best, value)
    return cost + best


@compiled
def _push(t: BrokerTree, size: int, key: float, node: int) -> None:
    i = size
    while i > 0 and t.key[(i - 1) // 2] > key:
        t.key[i], t.open_[i] = t.key[(i - 1) // 2], t.open_[(i - 1) // 2]
        i = (i - 1) // 2
    t.key[i], t.open_[i] = key, node


@compiled
def _pop(t: BrokerTree, size: int) -> int:
    """Remove the node of least bound from a heap of this size, and return it."""
    found = t.open_[0]
    key, node = t.key[size - 1], t.open_[size - 1]
    i = 0
    while 2 * i + 1 < size - 1:
        j = 2 * i + 1
        if j + 1 < size - 1 and t.key[j + 1] < t.key[j]:
            j += 1
        if t.key[j] >= key:
            break
        t.key[i], t.open_[i] = t.key[j], t.open_[j]
        i = j
    t.key[i], t.open_[i] = key, node
    return int(found)


@compiled
def branch(
    weight: Floats, t: BrokerTree, many: int, root: Floats, best: float, within: float, nodes: int
) -> tuple[float, float, int]:
    """Decide flip after flip, best first, until the gap is at most `within`.

    Call `scale_grid` and `sum_rests` first. `root` is (K,), the residual without flips, and
    `best` the value of the set in `t.flipped`, which is replaced by a better one. At most
    `nodes` nodes are branched on, fewer if the memory is full. Returns a lower bound of every
    set's value, the best value found, both in units of F over the base, and the number of
    nodes branched on.
    """
    t.depth[0], t.cost[0], t.parent[0] = 0, 0.0, -1
    copy_to(t.z[0], root)
    made, size, done, winner, least = 1, min(many, 1), 0, -1, best
    _push(t, 0, _bound(t, 0, root, 0.0), 0)
    while size > 0 and t.key[0] < best - within and done < nodes:
        if made + 2 > len(t.made):
            break
        node = _pop(t, size)
        size -= 1
        done += 1
        if done & (done - 1) == 0 or done % DIVE_EVERY == 0:
            best, winner, made = _dive(weight, t, many, node, best, winner, made)
        for flip in range(2):
            value, bound = _child(weight, t, many, node, flip, made)
            better = value < best - ROUNDING
            open_ = bound < best - within and t.depth[made] < many
            if better:
                best, winner = value, made
            if open_:
                _push(t, size, bound, made)
                size += 1
            else:
                least = min(least, bound)
            made += 1 if open_ or better else 0
    if size > 0:
        least = min(least, t.key[0])
    _take_over(t, many, winner)
    return min(least, best), best, done


@compiled
def _child(
    weight: Floats, t: BrokerTree, many: int, node: int, flip: int, at: int
) -> tuple[float, float]:
    """Write a child of a node at a place; return its set's value and its bound."""
    k = t.depth[node]
    for d in range(len(weight)):
        t.z[at, d] = t.z[node, d] + flip * t.shift[k, d]
    t.cost[at] = t.cost[node] + flip * t.flip[k]
    t.depth[at], t.parent[at], t.made[at] = k + 1, node, flip == 1
    value = t.cost[at] + squares(weight, t.z[at])
    if k + 1 == many:
        return value, value
    return value, _bound(t, k + 1, t.z[at], t.cost[at])


@compiled
def _dive(
    weight: Floats, t: BrokerTree, many: int, node: int, best: float, winner: int, made: int
) -> tuple[float, int, int]:
    """Decide by the bound from a node on; keep the path if it leads to a better set."""
    dims = t.z.shape[1]
    z, other = t.z[node].copy(), np.empty(dims)
    cost, last, found = t.cost[node], node, made
    reached = -1
    for k in range(t.depth[node], many):
        for d in range(dims):
            other[d] = z[d] + t.shift[k, d]
        stay = _bound(t, k + 1, z, cost)
        go = _bound(t, k + 1, other, cost + t.flip[k])
        if min(stay, go) >= best or found + 3 >= len(t.made):
            break
        if go < stay:
            cost += t.flip[k]
            copy_to(z, other)
        t.parent[found], t.depth[found], t.made[found] = last, k + 1, go < stay
        t.cost[found] = cost
        copy_to(t.z[found], z)
        last = found
        found += 1
        value = cost + squares(weight, z)
        if value < best - ROUNDING:
            best, reached = value, last
    if reached < 0:
        return best, winner, made
    return best, reached, reached + 1


@compiled
def _take_over(t: BrokerTree, many: int, node: int) -> None:
    """Make the flips that lead to a node, none for -1."""
    if node < 0:
        return
    for k in range(many):
        t.flipped[t.choice[k]] = False
    while t.parent[node] >= 0:
        t.flipped[t.choice[t.depth[node] - 1]] = t.made[node]
        node = t.parent[node]

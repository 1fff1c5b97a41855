"""The exchange of up to four rows' configurations that lowers F most.

At dual prices pi, F of a choice is the bound D(pi), plus each row's reduced cost, plus |z|^2 of
the residual z = v - pi / 2. A change of one row adds a vector to z. Four changes are two pairs
whose vectors nearly cancel z: both are found among listed pairs of changes, stored in a tree of
boxes that halves them along their widest dimension (a k-d tree; Bentley, 1975). Two boxes
cannot hold such pairs where the sum of their vectors stays too far from -z.
"""

from typing import NamedTuple

import numpy as np

from solver.kernels.compiled import Array, by_reference, compiled, linked

LEAF = 8
"""Most pairs in a box that is not halved."""

STACK = 256
"""Pairs of boxes that wait at most: three for each halving, of which 2^60 boxes take 60."""

BOXES = 10
VALUES = 6
"""Operations counted for two boxes, and for two pairs."""


@by_reference
class PairTree(NamedTuple):
    """P pairs of changes in N boxes; box n is halved into boxes 2 n + 1 and 2 n + 2."""

    one: Array
    """(P,) first change of each pair."""
    other: Array
    """(P,) second change."""
    shift: Array
    """(P, J) what both add to the residual."""
    rise: Array
    """(P,) what both add to the reduced costs."""
    first: Array
    """(N,) first pair in each box."""
    end: Array
    """(N,) end of the pairs in it."""
    low: Array
    """(N, J) least shift in it."""
    high: Array
    """(N, J) largest shift."""
    least: Array
    """(N,) least rise."""


@compiled
def list_pairs(row: Array, rise: Array, limit: float, one: Array, other: Array) -> int:
    """List pairs of changes that together rise by at most `limit`; return their number.

    `row` and `rise` are (C,) of changes in ascending order of rise, in units of F; the two
    changes of a pair belong to different rows. Fills `one` and `other`, and stops at one
    pair more than they have room for.
    """
    found = 0
    for i in range(len(row)):
        for k in range(i):
            if rise[i] + rise[k] > limit:
                break
            if row[i] != row[k]:
                if found == len(one):
                    return found + 1
                one[found], other[found] = i, k
                found += 1
    return found


def new_pair_tree(one: Array, other: Array, rise: Array, shift: Array) -> PairTree:
    """Create the tree of pairs `one` and `other`, (P,) each, of C changes; P is at least 1.

    `rise` is (C,) and `shift` (C, J), of single changes.
    """
    pairs, dims, levels = len(one), shift.shape[1], 0
    while pairs >> levels > LEAF:
        levels += 1
    boxes = 2 ** (levels + 1) - 1
    both, order = shift[one] + shift[other], np.arange(pairs)
    first, end = np.zeros(boxes, np.int64), np.zeros(boxes, np.int64)
    low, high = np.zeros((boxes, dims)), np.zeros((boxes, dims))
    end[0] = pairs
    _halve(both, order, first, end, low, high)
    one, other = one[order], other[order]
    total = rise[one] + rise[other]
    tree = PairTree(
        one=one,
        other=other,
        shift=both[order],
        rise=total,
        first=first,
        end=end,
        low=low,
        high=high,
        least=np.array([total[f:e].min() for f, e in zip(first, end, strict=True)]),
    )
    return linked(tree)


@compiled
def _halve(shift: Array, order: Array, first: Array, end: Array, low: Array, high: Array) -> None:
    """Sort pairs into boxes, and find the extent of each box."""
    dims, value = shift.shape[1], np.empty(len(order))
    for n in range(len(first)):
        for j in range(dims):
            low[n, j] = high[n, j] = shift[order[first[n]], j]
        for i in range(first[n] + 1, end[n]):
            p = order[i]
            for j in range(dims):
                low[n, j] = min(low[n, j], shift[p, j])
                high[n, j] = max(high[n, j], shift[p, j])
        if 2 * n + 2 < len(first):
            widest = 0
            for j in range(dims):
                if high[n, j] - low[n, j] > high[n, widest] - low[n, widest]:
                    widest = j
            for i in range(first[n], end[n]):
                value[order[i]] = shift[order[i], widest]
            middle = (first[n] + end[n]) // 2
            _partition(value, order, first[n], end[n], middle)
            first[2 * n + 1], end[2 * n + 1] = first[n], middle
            first[2 * n + 2], end[2 * n + 2] = middle, end[n]


@compiled
def _partition(value: Array, order: Array, first: int, end: int, middle: int) -> None:
    """Reorder a range so that lower values come before `middle`: quickselect (Hoare, 1961)."""
    while end - first > 1:
        pivot = value[order[(first + end) // 2]]
        i, j = first, end - 1
        while i <= j:
            while value[order[i]] < pivot:
                i += 1
            while value[order[j]] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            end = j + 1
        elif middle >= i:
            first = i
        else:
            return


@compiled
def _floor(low: Array, high: Array, rise: float, z: Array, a: int, b: int, best: float) -> float:
    """Least value of a pair in box a with one in box b; any number from `best` on if above."""
    total = rise
    for j in range(len(z)):
        least, most = z[j] + low[a, j] + low[b, j], z[j] + high[a, j] + high[b, j]
        if least > 0.0:
            total += least * least
        elif most < 0.0:
            total += most * most
        if total >= best:
            break
    return total


@compiled
def _may_end(low: Array, high: Array, z: Array, between: Array, a: int, b: int) -> bool:
    """Whether a pair in box a with one in box b may end between bounds."""
    for j in range(len(z)):
        if z[j] + low[a, j] + low[b, j] > between[1, j]:
            return False
        if z[j] + high[a, j] + high[b, j] < between[0, j]:
            return False
    return True


@compiled
def _value(shift: Array, rise: float, z: Array, p: int, q: int, best: float) -> float:
    """Rise and square of the residual with two pairs; any number from `best` on if above."""
    total = rise
    for j in range(len(z)):
        if total >= best:
            break
        left = z[j] + shift[p, j] + shift[q, j]
        total += left * left
    return total


@compiled
def _apart(t: PairTree, row: Array, p: int, q: int) -> bool:
    """Whether two pairs have no row in common; changes of no row have a negative one."""
    for x in (row[t.one[p]], row[t.other[p]]):
        if x >= 0 and (x == row[t.one[q]] or x == row[t.other[q]]):
            return False
    return True


@compiled
def best_exchange(
    t: PairTree, row: Array, z: Array, between: Array, best: float, most: int
) -> tuple[int, int, float, int]:
    """Find the two pairs with the least value under `best`: rise plus |z + shifts|^2.

    `row` is (C,) the rows of the changes, negative for changes of nothing; two pairs have no
    row in common. z, (J,), is the residual, which must end inside `between`, (2, J). Depth
    first, by boxes; ends after about `most` operations. Returns the pairs, -1 without any,
    their value in units of F, and the number of operations.
    """
    room = STACK
    left, right, floor = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    one, other, effort, size = -1, -1, 0, 1
    left[0], right[0], floor[0] = 0, 0, -np.inf
    leaves = len(t.first) // 2
    # Each access to an array of a record counts a reference.
    first, end, low, high, least = t.first, t.end, t.low, t.high, t.least
    shift, rise = t.shift, t.rise
    while size > 0 and effort < most:
        size -= 1
        a, b = left[size], right[size]
        if floor[size] >= best:
            continue
        if a >= leaves:
            for p in range(first[a], end[a]):
                last = p if a == b else end[b]
                for q in range(first[b], last):
                    value = _value(shift, rise[p] + rise[q], z, p, q, best)
                    # Bounds come last, since few pairs get this far.
                    if (
                        value < best
                        and _apart(t, row, p, q)
                        and _may_end(shift, shift, z, between, p, q)
                    ):
                        one, other, best = p, q, value
                effort += VALUES * (last - first[b])
            continue
        bottom = size
        for x in (2 * a + 1, 2 * a + 2):
            for y in (2 * b + 1, 2 * b + 2):
                if a == b and y < x:
                    continue
                effort += BOXES
                value = _floor(low, high, least[x] + least[y], z, x, y, best)
                if value < best and _may_end(low, high, z, between, x, y):
                    # The most promising boxes are on top, and searched first.
                    k = size
                    while k > bottom and floor[k - 1] < value:
                        left[k], right[k] = left[k - 1], right[k - 1]
                        floor[k] = floor[k - 1]
                        k -= 1
                    left[k], right[k], floor[k] = x, y, value
                    size += 1
    return one, other, best, effort

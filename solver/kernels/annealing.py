"""Simulated annealing over the candidates that lie on a few brokers.

Steps are moves of a replica, exchanges of two replicas (or chains, where the second
goes on to a third broker) and changes of leader. The best state seen is restored at
the end, so that a run never makes a placement worse. Metropolis et al., 1953;
Kirkpatrick et al., 1983; small neighbourhoods one after another: Shaw, 1998.
"""

from typing import Any, NamedTuple

import numpy as np

from solver.kernels.candidates import HOLD, LEAD, Candidates
from solver.kernels.columns import Columns
from solver.kernels.compiled import Array, compiled, linked, reference_to
from solver.kernels.moves import (
    State,
    affordable,
    fits,
    hand_over,
    holds,
    lead_delta,
    move,
    move_delta,
    racks_hold,
)
from solver.kernels.smoothing import logarithm

NOISE = 4096

MANY = 1_000
"""Items of one subset up to which each gets the full effort."""


class Room(NamedTuple):
    """Working memory of one run."""

    sub: Array
    """(B,) position of a broker in the subset, -1 outside."""
    item_row: Array
    """Candidate row of each item: a replica that may change."""
    item_slot: Array
    at: Array
    """Position of each item in its broker's list."""
    lists: Array
    """(brokers in a subset, items) items on each broker."""
    length: Array
    """(brokers in a subset,)"""
    item_of: Array
    """(m, M) item of each slot, -1 for none."""
    log: Array
    """(steps, 4) what was done since the best state: kind, row, slot, broker."""
    noise: Array
    """(NOISE,) quantiles of the exponential distribution."""


RoomStruct, RoomReference = reference_to(Room)


@compiled
def _link_room(parts: Any) -> Any:
    return RoomReference(*parts)


@compiled
def exponential_quantiles(count: int) -> Array:
    """-ln u at the middles of `count` equal parts of (0, 1)."""
    found = np.empty(count)
    for i in range(count):
        found[i] = logarithm(count / (i + 0.5))
    return found


def new_room(c: Columns, x: Candidates, brokers: int, steps: int) -> Room:
    """Room for subsets of up to `brokers` brokers and runs of up to `steps` steps."""
    most = c.home.shape[1]
    items = max(1, len(x.row) * most)
    return linked(
        _link_room,
        Room(
            sub=np.full(len(c.scale), -1, np.int64),
            item_row=np.empty(items, np.int64),
            item_slot=np.empty(items, np.int64),
            at=np.empty(items, np.int64),
            lists=np.empty((brokers, items), np.int64),
            length=np.zeros(brokers, np.int64),
            item_of=np.full((max(1, len(x.row)), most), -1, np.int64),
            log=np.empty((2 * steps + 4, 4), np.int64),
            noise=exponential_quantiles(NOISE),
        ),
    )


@compiled
def _random(state: Array) -> int:
    """xorshift64*: Vigna, 2016; the upper 31 bits."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    drawn: Any = np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33))
    return drawn


@compiled
def _below(state: Array, n: int) -> int:
    return (_random(state) * n) >> 31


@compiled
def _gather(
    c: Columns, s: State, x: Candidates, subset: Array, turn: int, w: Room
) -> int:
    """List the replicas on the subset that may go elsewhere in it.

    Only of rows whose replica number `turn` lies there: each row then belongs to one of
    several disjoint subsets.
    """
    for z in range(len(subset)):
        w.sub[subset[z]] = z
        w.length[z] = 0
    items = 0
    for i in range(len(x.row)):
        p = x.row[i]
        mine = w.sub[s.at[p, turn % c.rf[p]]] >= 0
        for k in range(c.rf[p]):
            w.item_of[i, k] = -1
            if not mine:
                continue
            z = w.sub[s.at[p, k]]
            if z < 0:
                continue
            useful = False
            for y in range(len(subset)):
                useful |= y != z and x.may[i, subset[y]] != 0
            if useful:
                w.item_row[items], w.item_slot[items] = i, k
                w.item_of[i, k] = items
                _put(w, items, z)
                items += 1
    return items


@compiled
def _put(w: Room, item: int, z: int) -> None:
    w.lists[z, w.length[z]] = item
    w.at[item] = w.length[z]
    w.length[z] += 1


@compiled
def _take(w: Room, item: int, z: int) -> None:
    last = w.lists[z, w.length[z] - 1]
    w.lists[z, w.at[item]] = last
    w.at[last] = w.at[item]
    w.length[z] -= 1


@compiled
def _open_to(c: Columns, s: State, x: Candidates, i: int, k: int, b: int) -> bool:
    """Whether candidate row i may bring its slot k to broker b."""
    need = HOLD if k > 0 else LEAD
    p = x.row[i]
    return x.may[i, b] & need != 0 and not holds(s, p, c.rf[p], b)


@compiled
def anneal(
    c: Columns,
    s: State,
    x: Candidates,
    subset: Array,
    turn: int,
    effort: int,
    most: int,
    hot: float,
    cold: float,
    random: Array,
    w: Room,
) -> tuple[float, int]:
    """Anneal on one subset of brokers, `effort` steps an item but at most `most`.

    Where there are over `MANY` items each gets a tenth of that: most are far from a
    change, and another subset gains more.

    The temperature falls from `hot` to `cold`, in units of F.

    Returns
    -------
    By how much F fell, as a negative number, and the steps made.
    """
    items = _gather(c, s, x, subset, turn, w)
    steps = min(most, effort * items // (10 if items > MANY else 1))
    now, best, logged = 0.0, 0.0, 0
    t = hot
    every = max(1, steps // 64)
    cooling = cold / hot
    for _ in range(6):
        # Square roots are exact to the last bit everywhere; powers are not.
        cooling = np.sqrt(cooling)
    for step in range(steps):
        if step % every == every - 1:
            t *= cooling
        limit = t * w.noise[_random(random) & (NOISE - 1)]
        item = _below(random, items)
        i, k = w.item_row[item], w.item_slot[item]
        p = x.row[i]
        if c.rf[p] > 1 and _random(random) & 3 == 0:
            change, done = _try_leader(c, s, x, i, k, limit, random, w, logged)
        else:
            change, done = _try_move(c, s, x, subset, item, limit, random, w, logged)
        if done:
            now += change
            logged += done
            if now < best - 1e-13:
                best, logged = now, 0
    _restore(c, s, w, logged)
    for z in range(len(subset)):
        w.sub[subset[z]] = -1
    return best, steps


@compiled
def _restore(c: Columns, s: State, w: Room, logged: int) -> None:
    for z in range(logged - 1, -1, -1):
        if w.log[z, 0] == 0:
            move(c, s, w.log[z, 1], w.log[z, 2], w.log[z, 3])
        else:
            hand_over(c, s, w.log[z, 1], w.log[z, 2])


@compiled
def _write(w: Room, at: int, kind: int, p: int, k: int, b: int) -> None:
    w.log[at, 0], w.log[at, 1], w.log[at, 2], w.log[at, 3] = kind, p, k, b


@compiled
def _try_leader(
    c: Columns,
    s: State,
    x: Candidates,
    i: int,
    k: int,
    limit: float,
    random: Array,
    w: Room,
    logged: int,
) -> tuple[float, int]:
    p = x.row[i]
    if k == 0:
        k = 1 + _below(random, c.rf[p] - 1)
    old, new = s.at[p, 0], s.at[p, k]
    if w.item_of[i, 0] < 0 or w.item_of[i, k] < 0 or not x.may[i, new] & LEAD:
        return 0.0, 0
    change = lead_delta(c, s, p, k)
    if change > limit:
        return 0.0, 0
    hand_over(c, s, p, k)
    if not (fits(c, s, old) and fits(c, s, new) and affordable(c, s, p, old, new)):
        hand_over(c, s, p, k)
        return 0.0, 0
    _swap_items(w, i, k, w.sub[old], w.sub[new])
    _write(w, logged, 1, p, k, 0)
    return change, 1


@compiled
def _swap_items(w: Room, i: int, k: int, old: int, new: int) -> None:
    """Slots 0 and k of a row changed brokers: so do their items."""
    first, second = w.item_of[i, 0], w.item_of[i, k]
    w.lists[old, w.at[first]] = second
    w.lists[new, w.at[second]] = first
    w.at[first], w.at[second] = w.at[second], w.at[first]


@compiled
def _try_move(
    c: Columns,
    s: State,
    x: Candidates,
    subset: Array,
    item: int,
    limit: float,
    random: Array,
    w: Room,
    logged: int,
) -> tuple[float, int]:
    i, k = w.item_row[item], w.item_slot[item]
    p = x.row[i]
    source = s.at[p, k]
    z = _below(random, len(subset))
    target = subset[z]
    if target == source or not _open_to(c, s, x, i, k, target):
        return 0.0, 0
    change = move_delta(c, s, p, k, target)
    chain = w.length[z] > 0 and _below(random, 10) < 6
    if not chain and change > limit:
        return 0.0, 0
    move(c, s, p, k, target)
    if not racks_hold(c, s, p):
        move(c, s, p, k, source)
        return 0.0, 0
    if not chain:
        if fits(c, s, target) and affordable(c, s, p, source, target):
            _take(w, item, w.sub[source])
            _put(w, item, z)
            _write(w, logged, 0, p, k, source)
            return change, 1
        move(c, s, p, k, source)
        return 0.0, 0
    other = w.lists[z, _below(random, w.length[z])]
    i2, k2 = w.item_row[other], w.item_slot[other]
    q = x.row[i2]
    y = w.sub[source]
    if q == p or not _open_to(c, s, x, i2, k2, source):
        y = _below(random, len(subset))
        if q == p or subset[y] == target or not _open_to(c, s, x, i2, k2, subset[y]):
            move(c, s, p, k, source)
            return 0.0, 0
    last = subset[y]
    change += move_delta(c, s, q, k2, last)
    if change <= limit:
        move(c, s, q, k2, last)
        if (
            racks_hold(c, s, q)
            and fits(c, s, target)
            and fits(c, s, last)
            and affordable(c, s, p, source, target)
            and affordable(c, s, q, target, last)
        ):
            _take(w, item, w.sub[source])
            _put(w, item, z)
            _take(w, other, z)
            _put(w, other, y)
            _write(w, logged, 0, p, k, source)
            _write(w, logged + 1, 0, q, k2, target)
            return change, 2
        move(c, s, q, k2, target)
    move(c, s, p, k, source)
    return 0.0, 0

"""Simulated annealing over the candidates that lie on a few brokers.

Steps are moves of a replica, exchanges of two replicas (or chains, where the second
moves on to a third broker) and leader changes. The best state seen is restored at the
end, so a run never makes a placement worse. A row with one replica that has moved is
offered its home more often than any other broker. Metropolis et al., 1953; Kirkpatrick et
al., 1983; large neighbourhood search: Shaw, 1998.
"""

from typing import NamedTuple

import numpy as np

from solver.kernels.arithmetic import NOISE, below, draw, exponential_quantiles
from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.move_deltas import (
    State,
    change_leader,
    fits,
    holds,
    interaction_delta,
    lead_delta,
    move,
    move_delta,
    racks_hold,
    reassign,
    within_budgets,
)
from solver.kernels.problem_arrays import Columns
from solver.kernels.reduced_cost_candidates import HOLD, LEAD, Candidates

MANY = 1_000
"""Items of one subset up to which each gets the full effort."""


@by_reference
class AnnealingScratch(NamedTuple):
    """Working memory of one run over m candidate rows and a subset of the B brokers."""

    sub: Array
    """(B,) position of a broker in the subset, -1 outside."""
    item_row: Array
    """Candidate row of each item: a replica that may change."""
    item_slot: Array
    """Slot of each item in its row."""
    at: Array
    """Position of each item in its broker's list."""
    lists: Array
    """(brokers in a subset, items) items on each broker."""
    length: Array
    """(brokers in a subset,) items on each broker."""
    item_of: Array
    """(m, M) item of each slot, -1 for none."""
    open_to: Array
    """(m, brokers in a subset) int32 positions in the subset that a row may use."""
    opens: Array
    """(m,) number of entries of `open_to`."""
    best: Array
    """(m, M) brokers of the rows changed since, in the best state."""
    changed: Array
    """(m,) these rows, in order of their first change."""
    epoch: Array
    """(m,) number of the best state that `best` belongs to."""
    now: Array
    """Number of the present best state, and length of `changed`; padded to a cache line."""
    noise: Array
    """(NOISE,) quantiles of the exponential distribution."""
    subset: Array
    """(brokers in a subset,) the brokers."""
    random: Array
    """State of the random numbers, uint64; padded to a cache line."""


def new_annealing_scratch(c: Columns, x: Candidates, brokers: int) -> AnnealingScratch:
    """Allocate working memory for annealing subsets of up to `brokers` brokers.

    Sized for the rows of `x` and brokers of `c`; each concurrent annealing needs its own.
    """
    most, rows = c.home.shape[1], max(1, len(x.row))
    items = rows * most
    record = AnnealingScratch(
        sub=np.full(len(c.scale), -1, np.int64),
        item_row=np.empty(items, np.int64),
        item_slot=np.empty(items, np.int64),
        at=np.empty(items, np.int64),
        lists=np.empty((brokers, items), np.int32),
        length=np.zeros(brokers, np.int64),
        item_of=np.full((rows, most), -1, np.int64),
        open_to=np.empty((rows, brokers), np.int32),
        opens=np.zeros(rows, np.int64),
        best=np.empty((rows, most), np.int64),
        changed=np.empty(rows, np.int64),
        epoch=np.zeros(rows, np.int64),
        now=np.zeros(16, np.int64),
        noise=exponential_quantiles(),
        subset=np.zeros(brokers, np.int64),
        random=np.zeros(16, np.uint64),
    )
    return linked(record)


@compiled
def _gather(
    c: Columns, s: State, x: Candidates, mine: Array, subset: Array, w: AnnealingScratch
) -> int:
    """List the replicas on the subset that may go elsewhere in it."""
    for z in range(len(subset)):
        w.sub[subset[z]] = z
        w.subset[z] = subset[z]
        w.length[z] = 0
    items = 0
    for r in range(len(mine)):
        i = mine[r]
        p = x.row[i]
        opens = 0
        for y in range(len(subset)):
            if x.may[i, subset[y]] != 0:
                w.open_to[i, opens] = y
                opens += 1
        w.opens[i] = opens
        w.epoch[i] = -1
        for k in range(c.rf[p]):
            w.item_of[i, k] = -1
            z = w.sub[s.at[p, k]]
            if z < 0 or opens == 0 or (opens == 1 and w.open_to[i, 0] == z):
                continue
            w.item_row[items], w.item_slot[items] = i, k
            w.item_of[i, k] = items
            _put(w, items, z)
            items += 1
    return items


@compiled
def _put(w: AnnealingScratch, item: int, z: int) -> None:
    w.lists[z, w.length[z]] = item
    w.at[item] = w.length[z]
    w.length[z] += 1


@compiled
def _take(w: AnnealingScratch, item: int, z: int) -> None:
    last = w.lists[z, w.length[z] - 1]
    w.lists[z, w.at[item]] = last
    w.at[last] = w.at[item]
    w.length[z] -= 1


@compiled
def _open_to(c: Columns, s: State, x: Candidates, i: int, k: int, b: int) -> bool:
    """Whether candidate row i may move its slot k to broker b."""
    need = HOLD if k > 0 else LEAD
    p = x.row[i]
    return x.may[i, b] & need != 0 and not holds(s, p, c.rf[p], b)


@compiled
def anneal(
    c: Columns,
    s: State,
    x: Candidates,
    mine: Array,
    subset: Array,
    effort: int,
    most: int,
    hot: float,
    cold: float,
    seed: int,
    w: AnnealingScratch,
) -> tuple[float, int]:
    """Anneal on one subset of brokers, `effort` steps per item but at most `most`.

    An item is a replica on `subset`, (z,) brokers, that may go elsewhere in it. `mine` are
    positions in `x` of the candidates that may change, which no concurrent subset shares.
    With over `MANY` items each gets a tenth of the effort: most are far from a change. The
    temperature falls from `hot` to `cold`, in units of F. `seed`, uint64 and not 0, starts
    the random numbers. Leaves the best state seen in `s`; returns its change of F, at most 0,
    and the number of steps, 0 without items.
    """
    items = _gather(c, s, x, mine, subset, w)
    steps = min(most, effort * items // (10 if items > MANY else 1))
    now, best = 0.0, 0.0
    w.now[0], w.now[1] = 0, 0
    w.random[0] = seed
    t = hot
    every = max(1, steps // 64)
    cooling = cold / hot
    for _ in range(6):
        # Square roots are exact to the last bit everywhere; powers are not.
        cooling = np.sqrt(cooling)
    for step in range(steps):
        if step % every == every - 1:
            t *= cooling
        limit = t * w.noise[draw(w.random) & (NOISE - 1)]
        item = below(w.random, items)
        if c.rf[x.row[w.item_row[item]]] > 1 and draw(w.random) & 3 == 0:
            now += _try_leader(c, s, x, item, limit, w)
        else:
            now += _try_move(c, s, x, item, limit, w)
        if now < best - 1e-13:
            best = now
            w.now[0] += 1
            w.now[1] = 0
    for z in range(w.now[1]):
        i = w.changed[z]
        reassign(c, s, x.row[i], w.best[i])
    for z in range(len(subset)):
        w.sub[subset[z]] = -1
    return best, steps


@compiled
def _keep(c: Columns, s: State, x: Candidates, i: int, w: AnnealingScratch) -> None:
    """Record where a row that is about to change lies in the best state."""
    if w.epoch[i] != w.now[0]:
        w.epoch[i] = w.now[0]
        w.changed[w.now[1]] = i
        w.now[1] += 1
        for k in range(c.rf[x.row[i]]):
            w.best[i, k] = s.at[x.row[i], k]


@compiled
def _try_leader(
    c: Columns, s: State, x: Candidates, item: int, limit: float, w: AnnealingScratch
) -> float:
    """Change the leader if that costs up to `limit`; return the change of F."""
    i, k = w.item_row[item], w.item_slot[item]
    p = x.row[i]
    if k == 0:
        k = 1 + below(w.random, c.rf[p] - 1)
    old, new = s.at[p, 0], s.at[p, k]
    if w.item_of[i, 0] < 0 or w.item_of[i, k] < 0 or not x.may[i, new] & LEAD:
        return 0.0
    change = lead_delta(c, s, p, k)
    if change > limit:
        return 0.0
    _keep(c, s, x, i, w)
    change_leader(c, s, p, k)
    if not (fits(c, s, old) and fits(c, s, new) and within_budgets(c, s, p, old, new)):
        change_leader(c, s, p, k)
        return 0.0
    _swap_items(w, i, k, w.sub[old], w.sub[new])
    return change


@compiled
def _swap_items(w: AnnealingScratch, i: int, k: int, old: int, new: int) -> None:
    """Swap the items of slots 0 and k of a row, whose brokers were swapped."""
    first, second = w.item_of[i, 0], w.item_of[i, k]
    w.lists[old, w.at[first]] = second
    w.lists[new, w.at[second]] = first
    w.at[first], w.at[second] = w.at[second], w.at[first]


@compiled
def _try_move(
    c: Columns, s: State, x: Candidates, item: int, limit: float, w: AnnealingScratch
) -> float:
    """Move a replica, or exchange two, if that costs up to `limit`; return the change of F."""
    i, k = w.item_row[item], w.item_slot[item]
    p = x.row[i]
    source = s.at[p, k]
    z, chained = _home_in_reach(c, s, p, w), 5
    if z < 0:
        z, chained = w.open_to[i, below(w.random, w.opens[i])], 6
    target = w.subset[z]
    if not _open_to(c, s, x, i, k, target):
        return 0.0
    change = move_delta(c, s, p, k, target)
    if w.length[z] > 0 and below(w.random, 10) < chained:
        other = w.lists[z, below(w.random, w.length[z])]
        return _try_chain(c, s, x, item, other, change, limit, w)
    if change > limit:
        return 0.0
    _keep(c, s, x, i, w)
    move(c, s, p, k, target)
    if racks_hold(c, s, p) and fits(c, s, target) and within_budgets(c, s, p, source, target):
        _take(w, item, w.sub[source])
        _put(w, item, z)
        return change
    move(c, s, p, k, source)
    return 0.0


@compiled
def _home_in_reach(c: Columns, s: State, p: int, w: AnnealingScratch) -> int:
    """Position in the subset of the home of row p, once in eight draws; -1 otherwise.

    Also -1 for a row that is at home or has several replicas, and for a home outside. Without
    such draws a needless move is rarely taken back: home is one of many brokers.
    """
    if c.rf[p] > 1 or s.at[p, 0] == c.home[p, 0] or draw(w.random) & 7:
        return -1
    return w.sub[c.home[p, 0]]


@compiled
def _try_chain(
    c: Columns,
    s: State,
    x: Candidates,
    item: int,
    other: int,
    change: float,
    limit: float,
    w: AnnealingScratch,
) -> float:
    """Move an item to the broker of another one, which moves on.

    The other goes to where the first came from, if it may, otherwise to any broker open
    to it. `change` is that of F by the first of the two moves.
    """
    i, k = w.item_row[item], w.item_slot[item]
    i2, k2 = w.item_row[other], w.item_slot[other]
    p, q = x.row[i], x.row[i2]
    if p == q:
        return 0.0
    source, target = s.at[p, k], s.at[q, k2]
    last = source
    if not _open_to(c, s, x, i2, k2, source):
        last = w.subset[w.open_to[i2, below(w.random, w.opens[i2])]]
        if not _open_to(c, s, x, i2, k2, last):
            return 0.0
    change += move_delta(c, s, q, k2, last)
    change += interaction_delta(c, s, p, k, q, k2, last == source)
    if change > limit:
        return 0.0
    _keep(c, s, x, i, w)
    _keep(c, s, x, i2, w)
    move(c, s, p, k, target)
    move(c, s, q, k2, last)
    if (
        racks_hold(c, s, p)
        and racks_hold(c, s, q)
        and fits(c, s, target)
        and fits(c, s, last)
        and within_budgets(c, s, p, source, target)
        and within_budgets(c, s, q, target, last)
    ):
        z = w.sub[target]
        _take(w, item, w.sub[source])
        _put(w, item, z)
        _take(w, other, z)
        _put(w, other, w.sub[last])
        return change
    move(c, s, q, k2, target)
    move(c, s, p, k, source)
    return 0.0

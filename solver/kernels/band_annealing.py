"""Simulated annealing towards the tolerance band: cost of moves plus price of the excess.

A step puts a replica of one row on a candidate broker, passes its leadership on, takes
a changed row home, or does both at once with two rows (Metropolis et al., 1953). Every
step keeps all rules.
"""

from typing import NamedTuple

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.arithmetic import NOISE, below, exponential_quantiles
from solver.kernels.band import placement_price
from solver.kernels.compiled import by_reference, compiled, linked
from solver.kernels.copying import copy_rows_to
from solver.kernels.move_deltas import (
    State,
    change_leader,
    fits,
    holds,
    is_changed,
    may_lead,
    may_take,
    move,
    racks_hold,
    within_budgets,
)
from solver.kernels.pricing import at_home
from solver.kernels.problem_arrays import Columns


@by_reference
class BandScratch(NamedTuple):
    """Working memory of one annealing run over n rows, B brokers and K dimensions."""

    cost: Floats
    """(B,) cost of each broker's deviations."""
    most: Floats
    """(K,) price of one mean load outside the band."""
    imbalance_price: Floats
    """(K,) price of a squared deviation, 0 where only the band counts."""
    tolerance: Floats
    """(K,) half the width of the band."""
    changed: Ints
    """(n,) rows that are not at home; the first `length[0]` are valid."""
    place: Ints
    """(n,) position in `changed`, -1 outside."""
    length: Ints
    """(1,) number of changed rows."""
    log: Ints
    """(steps, 3) of one try: row, slot and the broker it came from, -1 where the slot
    got the leadership."""
    size: Ints
    """(1,) entries of `log`."""
    random: Ints
    """(1,) uint64 state of the generator."""
    row: Ints
    """(m,) rows of the pairs that a step may combine, in ascending order."""
    broker: Ints
    """(m,) brokers of the pairs."""
    start: Ints
    """(n + 1,) first pair of each row."""
    heat: Floats
    """(stages,) temperatures for equal parts of the steps."""
    noise: Floats
    """(NOISE,) quantiles of the exponential distribution."""
    best: Ints
    """(n, M) the cheapest placement seen, leader first."""


def new_band_scratch(
    c: Columns,
    at: Ints,
    pairs: tuple[Ints, Ints],
    deviation_prices: tuple[Floats, Floats],
    tolerance: Floats,
    heat: Floats,
    seed: int,
) -> BandScratch:
    """Allocate working memory for a run from `at`, (n, M) brokers, leader first.

    `pairs` are (m,) rows, ascending, and (m,) brokers that a step may combine.
    `deviation_prices` are (K,) prices of one mean load outside the band, and (K,) prices of a
    squared deviation, in units of F. `tolerance` is (K,), half the width of each band; `heat`
    (stages,) temperatures in units of F; `seed`, not negative, starts the random numbers.
    Call `evaluate_start` before the first step.
    """
    n = len(c.rf)
    record = BandScratch(
        cost=np.zeros(len(c.scale)),
        most=deviation_prices[0],
        imbalance_price=deviation_prices[1],
        tolerance=tolerance,
        changed=np.zeros(n, np.int64),
        place=np.full(n, -1, np.int64),
        length=np.zeros(1, np.int64),
        log=np.zeros((8 * c.home.shape[1], 3), np.int64),
        size=np.zeros(1, np.int64),
        random=np.array([(2 * seed + 0x9E3779B97F4A7C15) % 2**64], np.uint64),
        row=pairs[0],
        broker=pairs[1],
        start=np.searchsorted(pairs[0], np.arange(n + 1)),
        heat=heat,
        noise=exponential_quantiles(),
        best=at.copy(),
    )
    return linked(record)


@compiled
def anneal_band(
    c: Columns,
    s: State,
    w: BandScratch,
    part: tuple[int, int, int],
    least_gain: float,
    value: float,
    least: float,
) -> tuple[float, float]:
    """Anneal, keeping the cheapest placement seen in `w.best`.

    `part` holds the first step, the one before which to pause, and the total. A new best must
    be cheaper by more than `least_gain`. `value` and `least` are the costs of the state and of
    `w.best`: both from `evaluate_start` at first, then as the previous part returned them. All
    are in units of F. Changes `s`; there must be at least one pair.
    """
    first, end, steps = part
    for step in range(first, end):
        delta, gained = _try(c, s, w)
        hot = w.heat[step * len(w.heat) // steps]
        if gained and delta <= hot * w.noise[below(w.random, NOISE)]:
            _commit(c, s, w)
            value += delta
            if value < least - least_gain:
                least = value
                copy_rows_to(w.best, s.at)
        else:
            _undo(c, s, w)
    return value, least


@compiled
def evaluate_start(c: Columns, s: State, w: BandScratch) -> float:
    """Compute the costs of all brokers and rows of a state; return their sum, in units of F.

    Sets `w.cost` and the list of changed rows, which `anneal_band` needs.
    """
    value = 0.0
    for b in range(len(w.cost)):
        w.cost[b] = _imbalance(c, s, w, b)
        value += w.cost[b]
    w.length[0] = 0
    for p in range(len(c.rf)):
        w.place[p] = -1
        value += placement_price(c, p, s.at, p)
        _update_changed(c, s, w, p)
    return value


@compiled
def _imbalance(c: Columns, s: State, w: BandScratch, b: int) -> float:
    cost = 0.0
    for d in range(len(w.most)):
        if c.scale[b, d] > 0.0:
            v = abs(s.v[b, d])
            cost += w.most[d] * max(0.0, v - w.tolerance[d]) + w.imbalance_price[d] * v * v
    return cost


@compiled
def _update_changed(c: Columns, s: State, w: BandScratch, p: int) -> None:
    """Update the list of changed rows for one row."""
    changed = is_changed(c, s, p)
    if changed == (w.place[p] >= 0):
        return
    if changed:
        w.place[p] = w.length[0]
        w.changed[w.length[0]] = p
        w.length[0] += 1
        return
    last = w.changed[w.length[0] - 1]
    w.changed[w.place[p]] = last
    w.place[last] = w.place[p]
    w.place[p] = -1
    w.length[0] -= 1


@compiled
def _try(c: Columns, s: State, w: BandScratch) -> tuple[float, bool]:
    """Take one or two random steps; return the change of cost, and whether it is allowed."""
    w.size[0] = 0
    done, delta, first = True, 0.0, -1
    for _ in range(1 + below(w.random, 2)):
        kind = below(w.random, 4) if w.length[0] > 0 else 0
        if kind < 2:
            at = below(w.random, len(w.row))
            p, b = w.row[at], w.broker[at]
        else:
            p = w.changed[below(w.random, w.length[0])]
            b = _random_broker(c, w, p)
        if p == first:
            break
        first = p
        before = placement_price(c, p, s.at, p)
        done = _go_home(c, s, w, p) if kind == 2 else _put(c, s, w, p, b)
        if not done:
            break
        delta += placement_price(c, p, s.at, p) - before
    return _evaluate_try(c, s, w, delta, done)


@compiled
def _random_broker(c: Columns, w: BandScratch, p: int) -> int:
    """One of the brokers that a row may use, including those of its home."""
    listed = w.start[p + 1] - w.start[p]
    at = below(w.random, listed + c.rf[p])
    found: int = w.broker[w.start[p] + at] if at < listed else c.home[p, at - listed]
    return found


@compiled
def _evaluate_try(
    c: Columns, s: State, w: BandScratch, delta: float, done: bool
) -> tuple[float, bool]:
    """The whole change of cost after the steps logged; whether all are allowed."""
    if not done:
        return 0.0, False
    for i in range(w.size[0]):
        p, k, came = w.log[i, 0], w.log[i, 1], w.log[i, 2]
        # Only brokers that gain load can break a limit.
        gains = s.at[p, k] if came >= 0 else s.at[p, 0]
        if not racks_hold(c, s, p) or not fits(c, s, gains):
            return 0.0, False
        if not within_budgets(c, s, p, max(came, 0), gains):
            return 0.0, False
    return delta + _deviations_change(c, s, w), True


@compiled
def _deviations_change(c: Columns, s: State, w: BandScratch) -> float:
    """Change of the deviations' cost on all brokers of the rows logged."""
    change = 0.0
    for i in range(w.size[0]):
        p, came = w.log[i, 0], w.log[i, 2]
        if came >= 0 and _first(s, w, c, i, came, True):
            change += _imbalance(c, s, w, came) - w.cost[came]
        for j in range(c.rf[p]):
            b = s.at[p, j]
            if _first(s, w, c, i, b, False):
                change += _imbalance(c, s, w, b) - w.cost[b]
    return change


@compiled
def _first(s: State, w: BandScratch, c: Columns, i: int, b: int, came: bool) -> bool:
    """Whether broker b is not among those of earlier log entries."""
    for h in range(i):
        if w.log[h, 2] == b or holds(s, w.log[h, 0], c.rf[w.log[h, 0]], b):
            return False
    return came or w.log[i, 2] != b


@compiled
def _put(c: Columns, s: State, w: BandScratch, p: int, b: int) -> bool:
    """Move a replica of a row to a broker, or the leadership if it has one."""
    rf = c.rf[p]
    for k in range(rf):
        if s.at[p, k] == b:
            if k == 0 or not may_lead(c, p, b):
                return False
            _swap(c, s, w, p, k)
            return True
    slot = below(w.random, rf)
    if rf > 1 and c.mode[c.group[p]] != 0:
        for k in range(rf):
            if c.rack[s.at[p, k]] == c.rack[b]:
                slot = k
    if not may_take(c, p, b) or (slot == 0 and not may_lead(c, p, b)):
        return False
    _go(c, s, w, p, slot, b)
    return True


@compiled
def _go_home(c: Columns, s: State, w: BandScratch, p: int) -> bool:
    """Move a whole row home, if it may stay there."""
    rf = c.rf[p]
    if c.forced[p]:
        return False
    for k in range(rf):
        if at_home(c, p, s.at[p, k]):
            continue
        for j in range(rf):
            if not holds(s, p, rf, c.home[p, j]):
                _go(c, s, w, p, k, c.home[p, j])
                break
    for k in range(1, rf):
        if s.at[p, k] == c.home[p, 0]:
            _swap(c, s, w, p, k)
            break
    return True


@compiled
def _go(c: Columns, s: State, w: BandScratch, p: int, k: int, b: int) -> None:
    at = w.size[0]
    w.log[at, 0], w.log[at, 1], w.log[at, 2] = p, k, s.at[p, k]
    w.size[0] += 1
    move(c, s, p, k, b)


@compiled
def _swap(c: Columns, s: State, w: BandScratch, p: int, k: int) -> None:
    at = w.size[0]
    w.log[at, 0], w.log[at, 1], w.log[at, 2] = p, k, -1
    w.size[0] += 1
    change_leader(c, s, p, k)


@compiled
def _undo(c: Columns, s: State, w: BandScratch) -> None:
    for i in range(w.size[0] - 1, -1, -1):
        p, k, came = w.log[i, 0], w.log[i, 1], w.log[i, 2]
        if came < 0:
            change_leader(c, s, p, k)
        else:
            move(c, s, p, k, came)


@compiled
def _commit(c: Columns, s: State, w: BandScratch) -> None:
    """Make the steps logged permanent."""
    for i in range(w.size[0]):
        p, came = w.log[i, 0], w.log[i, 2]
        if came >= 0:
            w.cost[came] = _imbalance(c, s, w, came)
        for j in range(c.rf[p]):
            w.cost[s.at[p, j]] = _imbalance(c, s, w, s.at[p, j])
        _update_changed(c, s, w, p)

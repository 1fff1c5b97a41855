"""Single changes that repair: replicas that share racks, brokers over their limits.

A broker's excess is its load over each limit as a share of the limit, summed over the
limited dimensions and the number of replicas.
"""

from typing import Final, NamedTuple

import numpy as np

from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.copying import copy_to
from solver.kernels.move_deltas import (
    State,
    holds,
    may_lead,
    may_move,
    may_take,
    move,
    move_delta,
    reassign,
)
from solver.kernels.problem_arrays import Columns
from solver.kernels.rounding import allowed_now

OVER: Final = 1e-9
"""Share of a limit by which a load may exceed it through rounding."""

GAIN: Final = 1e-9
"""Reductions of the excess below this do not count."""


@by_reference
class Limits(NamedTuple):
    """Limits of B brokers in C dimensions, and the best change found so far."""

    cap: Array
    """(B, C) limits of the limited dimensions, infinite for none."""
    replicas: Array
    """(B,) most replicas, infinite for none."""
    change: Array
    """(2,) change of the excess by the best change; highest deviation of its new broker."""
    at: Array
    """(M,) the configuration of that change, leader first."""
    tried: Array
    """(1,) configurations and pairs tried so far."""


def new_limits(cap: Array, replicas: Array, most: int) -> Limits:
    """Create limits with nothing found yet.

    `cap` is (B, C) loads, `replicas` (B,) counts, and `most` the largest replication
    factor.
    """
    record = Limits(
        cap=cap,
        replicas=replicas,
        change=np.zeros(2),
        at=np.zeros(most, np.int64),
        tried=np.zeros(1, np.int64),
    )
    return linked(record)


@compiled
def excess_of(s: State, m: Limits, b: int) -> float:
    """Compute by how much broker b exceeds its limits, as a sum of shares of them.

    Loads over a limit by a share of at most `OVER` count as within it.
    """
    total = 0.0
    for d in range(s.used.shape[1]):
        if s.used[b, d] > m.cap[b, d] * (1 + OVER):
            total += s.used[b, d] / m.cap[b, d] - 1.0
    if s.held[b] > m.replicas[b]:
        total += s.held[b] / m.replicas[b] - 1.0
    return total


@compiled
def relieve(c: Columns, s: State, m: Limits, b: int, rows: Array) -> int:
    """Find the change of one row on broker b that lowers the excess most.

    `rows` are those with a replica on b. Of equal changes, the one with the least loaded
    brokers is taken; changes that break racks, limits or budgets are not considered. Returns
    the row, -1 for none; `m.at` and `m.change` hold its configuration and what that changes.
    The state is left as it was.
    """
    m.change[0], m.change[1] = -GAIN, np.inf
    found = -1
    for i in range(len(rows)):
        p = rows[i]
        if not c.free[p] or not c.led[p]:
            continue
        if _without(c, s, m, b, p) < m.change[0] - GAIN:
            change, height = m.change[0], m.change[1]
            _best_of_row(c, s, m, p, b)
            if m.change[0] != change or m.change[1] != height:
                found = p
    return found


@compiled
def _without(c: Columns, s: State, m: Limits, b: int, p: int) -> float:
    """Change of the excess of broker b if it lost row p: a bound for any change of p."""
    leads = s.at[p, 0] == b
    change = -excess_of(s, m, b)
    for d in range(s.used.shape[1]):
        load = s.used[b, d] - (c.limit_lead[p, d] if leads else c.limit_follow[p, d])
        if load > m.cap[b, d] * (1 + OVER):
            change += load / m.cap[b, d] - 1.0
    if s.held[b] - 1 > m.replicas[b]:
        change += (s.held[b] - 1) / m.replicas[b] - 1.0
    return change


@compiled
def _best_of_row(c: Columns, s: State, m: Limits, p: int, b: int) -> None:
    """Try to pass on row p's leadership, and to move its replica off broker b."""
    rf = c.rf[p]
    slot = _slot(s, p, b)
    to = s.at[p].copy()
    if slot == 0:
        for k in range(1, rf):
            if may_lead(c, p, s.at[p, k]):
                _lead_by(s, p, k, -1, to)
                _consider(c, s, m, p, to)
    for j in range(len(s.held)):
        if holds(s, p, rf, j) or not may_take(c, p, j):
            continue
        if slot > 0:
            copy_to(to, s.at[p])
            to[slot] = j
            _consider(c, s, m, p, to)
            continue
        for k in range(rf):
            # The one in slot k leads from now on; slot 0 is broker j.
            if may_lead(c, p, j if k == 0 else s.at[p, k]):
                _lead_by(s, p, k, j, to)
                _consider(c, s, m, p, to)


@compiled
def _slot(s: State, p: int, b: int) -> int:
    slot = 0
    while s.at[p, slot] != b:
        slot += 1
    return slot


@compiled
def _lead_by(s: State, p: int, k: int, j: int, to: Array) -> None:
    """Row p led by its slot k, with broker j instead of the leader, if any."""
    copy_to(to, s.at[p])
    if j >= 0:
        to[0] = j
    to[0], to[k] = to[k], to[0]


@compiled
def _consider(c: Columns, s: State, m: Limits, p: int, to: Array) -> None:
    """Keep a configuration of row p if it is allowed and the best so far."""
    m.tried[0] += 1
    back, rf = s.at[p].copy(), c.rf[p]
    before = _touched(s, m, back, to, rf)
    reassign(c, s, p, to)
    change = _touched(s, m, back, to, rf) - before
    height = -np.inf
    for k in range(rf):
        for d in range(s.v.shape[1]):
            height = max(height, s.v[to[k], d])
    best = m.change[0]
    better = change < best - GAIN or (change < best + GAIN and height < m.change[1])
    if better and change < -GAIN and allowed_now(c, s, p):
        m.change[0], m.change[1] = change, height
        copy_to(m.at, to)
    reassign(c, s, p, back)


@compiled
def _touched(s: State, m: Limits, one: Array, other: Array, rf: int) -> float:
    """Excess of the brokers in two configurations of a row."""
    total = 0.0
    for k in range(rf):
        total += excess_of(s, m, other[k])
        inside = False
        for i in range(rf):
            inside |= other[i] == one[k]
        if not inside:
            total += excess_of(s, m, one[k])
    return total


@compiled
def exchange(
    c: Columns, s: State, m: Limits, b: int, rows: Array, others: Array, tries: int
) -> int:
    """Find the two replicas whose exchange lowers the excess of broker b most.

    Each takes the other's broker and keeps its slot, so slot 0 still leads. `rows` are those
    with a replica on b, `others` is (x, 2): rows and slots of replicas to exchange with, and
    `tries` limits the pairs. Returns the pair, index in `rows` x len(others) + index in
    `others`; -1 for none. The state is left as it was.
    """
    m.change[0] = -GAIN
    found, looked = -1, 0
    for i in range(len(rows)):
        p = rows[i]
        if not c.free[p] or not c.led[p]:
            continue
        slot = _slot(s, p, b)
        for x in range(len(others)):
            q, other = others[x, 0], others[x, 1]
            looked += 1
            if looked > tries:
                break
            if not _exchangeable(c, s, m, b, p, slot, q, other):
                continue
            change = _pair_change(c, s, m, p, slot, q, other)
            if change < m.change[0] - GAIN:
                m.change[0] = change
                found = i * len(others) + x
    m.tried[0] += looked
    return found


@compiled
def _exchangeable(
    c: Columns, s: State, m: Limits, b: int, p: int, slot: int, q: int, other: int
) -> bool:
    """Whether rows may be exchanged, and broker b sheds load it has too much of."""
    if not may_move(c, s, p, slot, s.at[q, other]) or not may_move(c, s, q, other, b):
        return False
    for d in range(s.used.shape[1]):
        mine = c.limit_lead[p, d] if slot == 0 else c.limit_follow[p, d]
        its = c.limit_lead[q, d] if other == 0 else c.limit_follow[q, d]
        if s.used[b, d] > m.cap[b, d] * (1 + OVER) and mine > its:
            return True
    return False


@compiled
def _pair_change(c: Columns, s: State, m: Limits, p: int, slot: int, q: int, other: int) -> float:
    """Change of the excess by an exchange; 0 where it is not allowed."""
    b, t = s.at[p, slot], s.at[q, other]
    change = -excess_of(s, m, b) - excess_of(s, m, t)
    swap(c, s, p, slot, q, other)
    change += excess_of(s, m, b) + excess_of(s, m, t)
    if change < m.change[0] - GAIN:
        if not allowed_now(c, s, p) or not allowed_now(c, s, q):
            change = 0.0
    swap(c, s, p, slot, q, other)
    return change


@compiled
def swap(c: Columns, s: State, p: int, slot: int, q: int, other: int) -> None:
    """Exchange the brokers of two replicas: slot `slot` of row p, and `other` of row q.

    Rules are not checked; neither broker may hold a replica of both rows.
    """
    b, t = s.at[p, slot], s.at[q, other]
    move(c, s, p, slot, t)
    move(c, s, q, other, b)


@compiled
def spread(c: Columns, s: State, p: int) -> bool:
    """Move one replica of row p to the least loaded broker of another rack.

    `c.displaced` must be set for row p: otherwise its home counts as repaired. Takes the move that
    racks, limits and budgets allow and that raises the cost of deviations least; costs of
    moves are ignored, so that a repair is the same whatever moves cost. Returns False, with
    nothing changed, where no single replica can repair the racks.
    """
    least, slot, to = np.inf, -1, -1
    for k in range(c.rf[p]):
        back = s.at[p, k]
        loads = c.lead if k == 0 else c.follow
        for j in range(len(s.held)):
            if not may_move(c, s, p, k, j):
                continue
            rise = 0.0
            for d in range(s.v.shape[1]):
                x, y = -loads[p, d] * c.scale[back, d], loads[p, d] * c.scale[j, d]
                rise += c.weight[d] * x * (2 * s.v[back, d] + x)
                rise += c.weight[d] * y * (2 * s.v[j, d] + y)
            if rise < least:
                move(c, s, p, k, j)
                if allowed_now(c, s, p):
                    least, slot, to = rise, k, j
                move(c, s, p, k, back)
    if slot < 0:
        return False
    move(c, s, p, slot, to)
    return True


@compiled
def single_move_pays(c: Columns, s: State, gain: float) -> bool:
    """Return whether some allowed move of one replica lowers F by more than `gain`.

    Leader changes alone are not considered. The state is left as it was.
    """
    for p in range(len(s.at)):
        if not c.free[p] or not c.led[p]:
            continue
        for k in range(c.rf[p]):
            back = s.at[p, k]
            for j in range(len(s.held)):
                if not may_move(c, s, p, k, j) or move_delta(c, s, p, k, j) >= -gain:
                    continue
                move(c, s, p, k, j)
                pays = allowed_now(c, s, p)
                move(c, s, p, k, back)
                if pays:
                    return True
    return False

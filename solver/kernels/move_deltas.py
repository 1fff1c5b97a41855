"""A placement under change: the delta of F of one step, and the step itself."""

from typing import Any, NamedTuple, cast

import numpy as np

from solver.kernels.compiled import Array, by_reference, compiled, linked, record_of
from solver.kernels.pricing import at_home, change_cost
from solver.kernels.problem_arrays import Columns


@by_reference
class State(NamedTuple):
    """A placement, and the sums that follow from it; changed in place."""

    at: Array
    """(n, M) brokers of each row, leader first; -1 fills."""
    v: Array
    """(B, K) deviations."""
    used: Array
    """(B, C) loads of the limited dimensions."""
    held: Array
    """(B,) replicas."""
    spent: Array
    """(4,) new replicas, bytes, leader changes and changed partitions so far."""
    topic_moves: Array
    """(T,) new replicas of each topic."""
    topic_changed: Array
    """(T,) changed partitions of each topic."""
    into: Array
    """(B,) new replicas of each broker."""
    out: Array
    """(B,) replicas of the snapshot that left."""
    topics: Array
    """(2, T, B) replicas and leaders of each topic; (2, 0, B) where not balanced."""


def copied(state: State) -> State:
    """Return a copy of a state that shares no array with it."""
    return linked(State(*(part.copy() for part in cast("Any", record_of(state)))))


def adopt(state: State, other: State, rows: Array, brokers: Array) -> None:
    """Copy what `other`, which began as a copy of `state`, has changed.

    Only the given rows and brokers, both by position, are copied. Totals that all brokers
    share, of topics and budgets, are left as they are.
    """
    state.at[rows] = other.at[rows]
    for name in ("v", "used", "held", "into", "out"):
        getattr(state, name)[brokers] = getattr(other, name)[brokers]


def new_state(c: Columns, at: Array) -> State:
    """Build the state of a placement: its loads, counts, deviations and used budgets.

    `at` is (n, M) brokers, leader first, -1 as filler, and is copied. Rows that may not change
    count in loads, but not in the used budgets.
    """
    brokers, topics = len(c.scale), c.topic_weight.shape[1]
    most_topics = int(c.topic.max(initial=-1)) + 1
    record = State(
        at=at.copy(),
        v=np.where(c.holding[:, None], -1.0, 0.0) + np.zeros(c.scale.shape),
        used=np.zeros(c.limit.shape),
        held=np.zeros(brokers, np.int64),
        spent=np.zeros(4, np.int64),
        topic_moves=np.zeros(most_topics, np.int64),
        topic_changed=np.zeros(most_topics, np.int64),
        into=np.zeros(brokers, np.int64),
        out=np.zeros(brokers, np.int64),
        topics=np.zeros((2, topics, brokers), np.int64),
    )
    state = linked(record)
    _sum_up(c, state)
    return state


@compiled
def _sum_up(c: Columns, s: State) -> None:
    for p in range(len(s.at)):
        for k in range(c.rf[p]):
            _carry(c, s, p, k, s.at[p, k], 1)
        if c.free[p]:
            _count(c, s, p, 1)


@compiled
def _carry(c: Columns, s: State, p: int, k: int, b: int, sign: int) -> None:
    """Add the replica in slot k of row p to a broker's sums, or subtract it."""
    loads = c.lead if k == 0 else c.follow
    for d in range(s.v.shape[1]):
        s.v[b, d] += sign * loads[p, d] * c.scale[b, d]
    taken = c.limit_lead if k == 0 else c.limit_follow
    for d in range(s.used.shape[1]):
        s.used[b, d] += sign * taken[p, d]
    s.held[b] += sign
    if s.topics.shape[1]:
        s.topics[0, c.topic[p], b] += sign
        if k == 0 and c.led[p]:
            s.topics[1, c.topic[p], b] += sign


@compiled
def _count(c: Columns, s: State, p: int, sign: int) -> None:
    """Add what row p changes to the counters of the budgets, or subtract it."""
    for k in range(c.rf[p]):
        s.out[c.home[p, k]] += sign
        _count_replica(c, s, p, s.at[p, k], sign)
    if s.at[p, 0] != c.home[p, 0]:
        s.spent[2] += sign
    _count_changed(c, s, p, sign)


@compiled
def _count_replica(c: Columns, s: State, p: int, b: int, sign: int) -> None:
    """Count a replica of row p on broker b: as new there, or as not having left."""
    if at_home(c, p, b):
        s.out[b] -= sign
        return
    s.spent[0] += sign
    s.spent[1] += sign * c.bytes_[p]
    s.topic_moves[c.topic[p]] += sign
    s.into[b] += sign


@compiled
def _count_changed(c: Columns, s: State, p: int, sign: int) -> None:
    """Count row p as changed, or no longer, if it has a new replica or leader."""
    if is_changed(c, s, p):
        s.spent[3] += sign
        s.topic_changed[c.topic[p]] += sign


@compiled
def is_changed(c: Columns, s: State, p: int) -> bool:
    """Return whether row p has a new replica or another leader in this state."""
    return s.at[p, 0] != c.home[p, 0] or has_moved(c, s, p)


@compiled
def has_moved(c: Columns, s: State, p: int) -> bool:
    """Return whether row p has a replica on a broker without one in the snapshot."""
    for k in range(c.rf[p]):
        if not at_home(c, p, s.at[p, k]):
            return True
    return False


@compiled
def reassign(c: Columns, s: State, p: int, to: Array) -> None:
    """Move all replicas of row p to `to`, (M,) brokers, leader first; updates all sums.

    Rules are not checked; row p must be free to change.
    """
    _count(c, s, p, -1)
    for k in range(c.rf[p]):
        _carry(c, s, p, k, s.at[p, k], -1)
    for k in range(c.rf[p]):
        s.at[p, k] = to[k]
        _carry(c, s, p, k, to[k], 1)
    _count(c, s, p, 1)


@compiled
def holds(s: State, p: int, rf: int, b: int) -> bool:
    """Return whether broker b holds one of the `rf` replicas of row p in this state."""
    for k in range(rf):
        if s.at[p, k] == b:
            return True
    return False


@compiled
def may_take(c: Columns, p: int, b: int) -> bool:
    """Return whether a replica of row p may be on broker b after the plan.

    On a broker of its home, whether it may stay there. Considers broker states, pins,
    explicit placements and barred returns, but neither limits nor how replicas share racks.
    """
    for k in range(c.rf[p]):
        if c.home[p, k] == b:
            return bool(c.stays[p, k])
    if not c.allow[c.group[p], b]:
        return False
    for i in range(c.barred_start[p], c.barred_start[p + 1]):
        if c.barred[i] == b:
            return False
    return True


@compiled
def may_lead(c: Columns, p: int, b: int) -> bool:
    """Return whether broker b may lead row p, provided that it may hold a replica of it."""
    if c.home[p, 0] == b and c.leads_on[p]:
        return True
    for i in range(c.barred_leader_start[p], c.barred_leader_start[p + 1]):
        if c.barred_leader[i] == b:
            return False
    return bool(c.may_lead[c.group[p], b])


@compiled
def may_move(c: Columns, s: State, p: int, k: int, b: int) -> bool:
    """Return whether the replica in slot k of row p may move to broker b.

    By `may_take`, and for slot 0 by `may_lead`; False if b already holds a replica of p.
    """
    if holds(s, p, c.rf[p], b) or not may_take(c, p, b):
        return False
    return k > 0 or may_lead(c, p, b)


@compiled
def _topic_delta(c: Columns, s: State, t: int, which: int, i: int, j: int) -> float:
    """Compute the change of topic t's cost when one of its replicas moves from i to j.

    In units of F. `which` is 0 for replicas and 1 for leaders.
    """
    w, level = c.topic_weight[which, t], c.topic_level[which, t]
    if w == 0.0:
        return 0.0
    change = 0.0
    if c.holding[i]:
        x = s.topics[which, t, i]
        before, after = x - level, x - 1.0 - level
        change += after * after - before * before
    if c.holding[j]:
        x = s.topics[which, t, j]
        before, after = x - level, x + 1.0 - level
        change += after * after - before * before
    return w * change / (level * level)


@compiled
def _shift_delta(c: Columns, s: State, d: int, load: float, i: int, j: int) -> float:
    """Change of the squares of dimension d when a load moves from broker i to broker j."""
    x, y = -load * c.scale[i, d], load * c.scale[j, d]
    return c.weight[d] * (x * (2 * s.v[i, d] + x) + y * (2 * s.v[j, d] + y))


@compiled
def _leader_changes(c: Columns, p: int, i: int, j: int) -> int:
    """By how much the number of leader changes grows if j leads row p instead of i."""
    h = c.home[p, 0]
    return (1 if j != h else 0) - (1 if i != h else 0)


@compiled
def move_delta(c: Columns, s: State, p: int, k: int, j: int) -> float:
    """Compute the change of F when the replica in slot k of row p moves to broker j.

    Slot 0 leads. Rules are not checked; j must not hold a replica of the row.
    """
    i = s.at[p, k]
    loads = c.lead if k == 0 else c.follow
    change = 0.0
    for d in range(s.v.shape[1]):
        change += _shift_delta(c, s, d, loads[p, d], i, j)
    if not at_home(c, p, j):
        change += c.price[p]
    if not at_home(c, p, i):
        change -= c.price[p]
    if k == 0:
        change += c.leader_price * _leader_changes(c, p, i, j)
    if s.topics.shape[1]:
        change += _topic_delta(c, s, c.topic[p], 0, i, j)
        if k == 0:
            change += _topic_delta(c, s, c.topic[p], 1, i, j)
    return change


@compiled
def interaction_delta(c: Columns, s: State, p: int, k: int, q: int, k2: int, back: bool) -> float:
    """Compute by how much two moves together change F beyond the sum of both.

    The replica in slot k of row p goes to the broker of slot k2 of row q, whose replica goes
    elsewhere. `back`: it goes to the broker that the first one leaves. p and q differ.
    """
    i, j = s.at[p, k], s.at[q, k2]
    one = c.lead if k == 0 else c.follow
    two = c.lead if k2 == 0 else c.follow
    change = 0.0
    for d in range(s.v.shape[1]):
        squares = c.scale[j, d] * c.scale[j, d]
        if back:
            squares += c.scale[i, d] * c.scale[i, d]
        change -= 2.0 * c.weight[d] * one[p, d] * two[q, d] * squares
    if s.topics.shape[1] and c.topic[p] == c.topic[q]:
        t = c.topic[p]
        times = c.holding[j] + (1 if back and c.holding[i] else 0)
        for which in range(2 if k == 0 and k2 == 0 else 1):
            level = c.topic_level[which, t]
            change -= 2.0 * c.topic_weight[which, t] * times / (level * level)
    return change


@compiled
def move(c: Columns, s: State, p: int, k: int, j: int) -> None:
    """Move the replica in slot k of row p to broker j, and update all sums of the state.

    Rules are not checked; row p must be free to change, and j must not hold a replica of it.
    """
    i = s.at[p, k]
    _count_changed(c, s, p, -1)
    _carry(c, s, p, k, i, -1)
    _carry(c, s, p, k, j, 1)
    s.at[p, k] = j
    _count_replica(c, s, p, j, 1)
    _count_replica(c, s, p, i, -1)
    if k == 0:
        s.spent[2] += _leader_changes(c, p, i, j)
    _count_changed(c, s, p, 1)


@compiled
def lead_delta(c: Columns, s: State, p: int, k: int) -> float:
    """Compute the change of F when slot k of row p leads instead of slot 0.

    k is at least 1. Rules are not checked.
    """
    i, j = s.at[p, 0], s.at[p, k]
    change = 0.0
    for d in range(s.v.shape[1]):
        change += _shift_delta(c, s, d, c.lead[p, d] - c.follow[p, d], i, j)
    change += c.leader_price * _leader_changes(c, p, i, j)
    if s.topics.shape[1]:
        change += _topic_delta(c, s, c.topic[p], 1, i, j)
    return change


@compiled
def change_leader(c: Columns, s: State, p: int, k: int) -> None:
    """Let slot k of row p lead by swapping slots 0 and k, and update all sums of the state.

    Rules are not checked; row p must be free to change.
    """
    i, j = s.at[p, 0], s.at[p, k]
    _count_changed(c, s, p, -1)
    _carry(c, s, p, 0, i, -1)
    _carry(c, s, p, k, j, -1)
    s.at[p, 0], s.at[p, k] = j, i
    _carry(c, s, p, 0, j, 1)
    _carry(c, s, p, k, i, 1)
    s.spent[2] += _leader_changes(c, p, i, j)
    _count_changed(c, s, p, 1)


@compiled
def fits(c: Columns, s: State, b: int) -> bool:
    """Return whether broker b is within its capacity limits and its limit of replicas."""
    for d in range(s.used.shape[1]):
        if s.used[b, d] > c.limit[b, d]:
            return False
    return bool(s.held[b] <= c.most_replicas[b])


@compiled
def within_budgets(c: Columns, s: State, p: int, i: int, j: int) -> bool:
    """Return whether all budgets hold in this state, after row p has moved from i to j.

    Of the budgets per topic and per broker, only those of p's topic, of replicas into broker
    j and out of broker i are checked.
    """
    for x in range(4):
        if s.spent[x] > c.budgets[x]:
            return False
    return bool(
        s.topic_moves[c.topic[p]] <= c.budgets[4]
        and s.into[j] <= c.budgets[5]
        and s.out[i] <= c.budgets[6]
        and s.topic_changed[c.topic[p]] <= c.budgets[7]
    )


@compiled
def racks_hold(c: Columns, s: State, p: int) -> bool:
    """Return whether row p complies with its rack rule or placement in this state.

    A row without a new replica complies with a rack rule unless it is displaced; an explicit
    placement must always match.
    """
    g = c.group[p]
    mode = c.mode[g]
    if mode == 0:
        return True
    rf = c.rf[p]
    if mode != 3 and not c.displaced[p] and not has_moved(c, s, p):
        return True
    if mode == 1:
        racks = 0
        for k in range(rf):
            new = 1
            for j in range(k):
                if c.rack[s.at[p, j]] == c.rack[s.at[p, k]]:
                    new = 0
            racks += new
        return bool(racks >= c.distinct[g])
    most = 0
    least = rf + 1
    for q in range(c.usable.shape[1]):
        here = 0
        free = c.usable[g, q]
        for k in range(rf):
            b = s.at[p, k]
            here += c.rack[b] == q
            free -= c.rack[b] == q and c.allow[g, b]
        if mode == 3 and here != c.required[g, q]:
            return False
        most = max(most, here)
        # A rack whose eligible brokers all hold a replica has no room for more.
        if free > 0:
            least = min(least, here)
    return mode == 3 or most - least <= 1


@compiled
def objective(c: Columns, s: State) -> float:
    """Compute F of a state from its sums, without the refund of forced moves.

    The imbalance of brokers, the cost of changes and the imbalance of topics.
    """
    total = 0.0
    for b in range(len(s.v)):
        if c.holding[b]:
            for d in range(s.v.shape[1]):
                total += c.weight[d] * s.v[b, d] * s.v[b, d]
    for p in range(len(s.at)):
        if c.free[p]:
            total += change_cost(c, p, s.at[p])
    for which in range(2):
        for t in range(s.topics.shape[1]):
            w, level = c.topic_weight[which, t], c.topic_level[which, t]
            if w > 0.0:
                for b in range(len(s.v)):
                    if c.holding[b]:
                        x = s.topics[which, t, b] - level
                        total += w * x * x / (level * level)
    return total

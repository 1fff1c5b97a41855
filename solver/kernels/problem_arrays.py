"""A problem as the flat arrays that compiled loops take."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from model.snapshot.snapshot import Count
from solver.kernels.compiled import Array, by_reference, changed, linked
from solver.problem.co_location import RackMode
from solver.problem.placement import Placement, topic_totals
from solver.problem.problem import CAPACITY_SLACK, Problem

NO_BUDGET: Final = np.iinfo(np.int64).max
"""Stands for a budget without a limit."""


@by_reference
class Columns(NamedTuple):
    """Arrays over n rows, B brokers, K balanced and C limited dimensions, M replicas at most.

    Loads are shares of a broker's mean: the deviation of broker b is `sum of loads x
    scale[b] - 1`. G groups of rows share rules; there are Q racks and T topics.
    """

    home: Array
    """(n, M) the snapshot's replicas, leader first, then ascending; -1 fills."""
    rf: Array
    """(n,) replicas of each row."""
    lead: Array
    """(n, K) load on the leader's broker."""
    follow: Array
    """(n, K) load on each follower's broker."""
    scale: Array
    """(B, K) deviation per unit of load; 0 for brokers that are not balanced."""
    weight: Array
    """(K,) weight in F."""
    price: Array
    """(n,) cost of a replica on a broker that had none."""
    leader_price: float
    """Cost of a leader change."""
    free: Array
    """(n,) rows that may change at all."""
    led: Array
    """(n,) rows with a leader; in the others all replicas follow, and none moves."""
    stays: Array
    """(n, M) the replica in `home` may stay."""
    forced: Array
    """(n,) rows that may not stay as they are."""
    displaced: Array
    """(n,) rows whose replicas may not all stay: the rack rule binds them."""
    group: Array
    """(n,) group of each row: same pins, racks and replication factor."""
    allow: Array
    """(G, B) brokers that may get a replica."""
    may_lead: Array
    """(G, B) brokers that may become leader."""
    leads_on: Array
    """(n,) the present leader may keep the leadership if it stays."""
    mode: Array
    """(G,) a `RackMode` each."""
    distinct: Array
    """(G,) racks that a moved row must occupy, where the mode is `SPREAD`."""
    required: Array
    """(G, Q) replicas required per rack, where the mode is `EXACT`."""
    most: Array
    """(G, Q) most replicas a rack may hold: the part of the rack rules that the
    relaxation keeps."""
    rack: Array
    """(B,) rack of each broker."""
    usable: Array
    """(G, Q) number of brokers in each rack that may get a replica."""
    barred_start: Array
    """(n + 1,) where each row's part of `barred` begins."""
    barred: Array
    """Brokers that a row may not return to, row after row."""
    barred_leader_start: Array
    """(n + 1,) where each row's part of `barred_leader` begins."""
    barred_leader: Array
    """Brokers that may not lead a row again, row after row."""
    limit_lead: Array
    """(n, C) a leader's load in each limited dimension, in its own unit."""
    limit_follow: Array
    """(n, C) a follower's load in each limited dimension."""
    limit: Array
    """(B, C) highest load."""
    most_replicas: Array
    """(B,) highest number of replicas."""
    budgets: Array
    """(8,) new replicas, bytes, leader changes, partitions; new replicas per topic,
    into and out of a broker; partitions per topic."""
    bytes_: Array
    """(n,) bytes copied by one new replica."""
    topic: Array
    """(n,) topic of each row."""
    topic_weight: Array
    """(2, T) cost of one squared relative deviation of a topic's replicas and leaders;
    (2, 0) where topics are not balanced."""
    topic_level: Array
    """(2, T) mean replicas and leaders of a topic per holding broker."""
    holding: Array
    """(B,) brokers that may keep load."""


_BY_ROW: Final = (
    *("home", "rf", "lead", "follow", "price", "free", "led", "stays", "forced", "displaced"),
    *("group", "leads_on", "limit_lead", "limit_follow", "bytes_", "topic"),
)
"""Columns with an entry for each row."""


def find_columns(problem: Problem) -> Columns:
    """Convert a problem to the arrays for compiled loops; rows keep their order.

    K counts only dimensions of positive weight, and so may be smaller than the problem's.
    """
    may, spreading = problem.may, problem.may.spreading
    order = _order(problem.replicas, problem.leader)
    home = np.take_along_axis(problem.replicas, order, axis=1).astype(np.int64)
    stays = ~np.take_along_axis(problem.may.must_go, order, axis=1)
    unit = _units(problem)
    led = problem.leader >= 0
    lead = np.where(led[:, None], problem.lead, problem.follow)
    kept = np.flatnonzero(problem.weight > 0)
    column, unit = problem.column[kept], unit[kept]
    limited = np.flatnonzero(np.isfinite(problem.allowed).any(axis=0))
    barred_start, barred = _row_after_row(problem, may.barred)
    barred_leader_start, barred_leader = _row_after_row(problem, may.barred_leader)
    usable = _usable(problem)
    topic_weight, topic_level = _topics(problem)
    record = Columns(
        home=home,
        rf=problem.rf.astype(np.int64),
        lead=lead[:, column] * unit,
        follow=problem.follow[:, column] * unit,
        scale=problem.slope[:, kept] / unit,
        weight=problem.weight[kept],
        price=problem.costs.replica,
        leader_price=problem.costs.leader,
        free=may.fixed_reason == 0,
        led=led,
        stays=stays,
        forced=(may.forced > 0) & (may.fixed_reason == 0),
        displaced=may.displaced,
        group=spreading.group.astype(np.int64),
        allow=spreading.allow & may.alive,
        may_lead=spreading.lead & may.alive,
        leads_on=stays[:, 0] & spreading.lead[spreading.group, home[:, 0]] & ~may.demoted,
        mode=spreading.mode,
        distinct=spreading.distinct,
        required=spreading.required,
        most=_most_in_rack(problem, usable),
        rack=spreading.rack.astype(np.int64),
        usable=usable,
        barred_start=barred_start,
        barred=barred,
        barred_leader_start=barred_leader_start,
        barred_leader=barred_leader,
        limit_lead=np.ascontiguousarray(lead[:, limited]),
        limit_follow=np.ascontiguousarray(problem.follow[:, limited]),
        limit=problem.allowed[:, limited] * (1 + CAPACITY_SLACK / 2),
        most_replicas=problem.allowed_replicas,
        budgets=_budgets(problem),
        bytes_=problem.copied_bytes,
        topic=problem.snapshot.partitions.topic.astype(np.int64),
        topic_weight=topic_weight,
        topic_level=topic_level,
        holding=may.holding,
    )
    return linked(record)


def columns_of(c: Columns, rows: Array) -> Columns:
    """Return the columns of (m,) rows alone, in this order; what is not by row stays."""
    parts = {name: getattr(c, name)[rows] for name in _BY_ROW}
    for start, flat in (("barred_start", "barred"), ("barred_leader_start", "barred_leader")):
        first = getattr(c, start)
        counts = first[rows + 1] - first[rows]
        own = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.arange(own[-1]) + np.repeat(first[rows] - own[:-1], counts)
        parts |= {start: own, flat: getattr(c, flat)[at]}
    return changed(c, **parts)


def unit_prices(c: Columns, pi: Array) -> Array:
    """Convert (B, K) prices of deviation to (K, B) prices per unit of load."""
    return np.ascontiguousarray((pi * c.scale).T)


def prices_in_file(problem: Problem, pi: Array) -> Array:
    """Return (B, counted) prices as a plan file has them, from (B, K) prices of deviation.

    `counted` is the number of the problem's balanced columns. Prices are 0 for those of
    weight 0, which `Columns` omits; none is rounded.
    """
    found: Array = np.zeros(problem.slope.shape)
    found[:, problem.weight > 0] = pi
    return found


def sum_loads_at(c: Columns, rows: Array, at: Array) -> Array:
    """Add up the loads, (B, K) as shares of the mean, of rows on the brokers `at`.

    `rows` is (m,) and `at` (m, M) or (m, 1), leader first; -1 fills. Brokers that are not
    balanced get 0.
    """
    found: Array = np.zeros(c.scale.shape)
    for k in range(at.shape[1]):
        here = at[:, k] >= 0
        load = (c.lead if k == 0 else c.follow)[rows[here]]
        for d in range(found.shape[1]):
            found[:, d] += np.bincount(at[here, k], load[:, d], len(found))
    return found * c.scale


def _units(problem: Problem) -> Array:
    """(K,) shares of the mean per unit of load, on a broker of mean slope."""
    held = problem.slope[problem.may.holding]
    unit: Array = held.sum(axis=0) / max(1, len(held))
    return np.where(unit > 0, unit, 1.0)


def leader_first(c: Columns, replicas: Array, leader: Array) -> Array:
    """Return (n, M) brokers of a placement, leader first; home for rows that may not move.

    `replicas` is (n, M) in any order and `leader` is (n,), both broker positions, -1 as filler
    and for none. Followers are in ascending order; fillers are last.
    """
    at = np.take_along_axis(replicas, _order(replicas, leader), axis=1)
    return np.where(c.free[:, None], at, c.home).astype(np.int64)


def placement_of(problem: Problem, at: Array) -> Placement:
    """Convert (n, M) positions of brokers, leader first and -1 as filler, to a placement.

    Fillers are -1. Rows that may not change are as in the snapshot.
    """
    free = problem.may.fixed_reason == 0
    return Placement(
        replicas=np.where(free[:, None], at, problem.replicas).astype(np.int64),
        leader=np.where(free, at[:, 0], problem.leader).astype(np.int64),
    )


def _order(replicas: Array, leader: Array) -> Array:
    """(n, M) positions of the replicas, the leader's first, the others by broker, then fillers."""
    rank = np.where(replicas == leader[:, None], -1, replicas)
    # The filler -1 must not be taken for the leader of a row without one.
    rank = np.where(replicas >= 0, rank, np.iinfo(np.int64).max)
    return np.argsort(rank, axis=1, kind="stable")


def _most_in_rack(problem: Problem, usable: Array) -> Array:
    spreading = problem.may.spreading
    most = np.full(spreading.required.shape, np.iinfo(np.int32).max, np.int64)
    rf = np.zeros(len(spreading.mode), np.int64)
    rf[spreading.group] = problem.rf
    for g, mode in enumerate(spreading.mode.tolist()):
        if mode == RackMode.EXACT:
            most[g] = spreading.required[g]
        elif mode == RackMode.EVEN:
            most[g] = [_most_if_even(usable[g], q, rf[g]) for q in range(len(most[g]))]
        elif mode == RackMode.SPREAD:
            most[g] = rf[g] - spreading.distinct[g] + 1
    return most


def _most_if_even(usable: Array, rack: int, rf: int) -> int:
    """Most replicas of rf that one rack can hold if no other rack with a free broker
    holds two fewer."""
    others = np.delete(usable, rack)
    fits = [m for m in range(1, rf + 1) if m + np.minimum(others, m - 1).sum() <= rf]
    return max(fits, default=0)


def _usable(problem: Problem) -> Array:
    """(G, Q) number of brokers in each rack that may get a replica."""
    spreading = problem.may.spreading
    usable = np.zeros(spreading.required.shape, np.int64)
    for b in np.flatnonzero(problem.may.alive).tolist():
        usable[:, spreading.rack[b]] += spreading.allow[:, b]
    return usable


def _row_after_row(problem: Problem, barred: Mapping[int, tuple[int, ...]]) -> tuple[Array, Array]:
    """Brokers by row as columns: (n + 1,) where each row's part begins, and the brokers."""
    counts = np.zeros(len(problem.leader) + 1, np.int64)
    for row, brokers in barred.items():
        counts[row + 1] = len(brokers)
    flat = [b for _, brokers in sorted(barred.items()) for b in brokers]
    return np.cumsum(counts, dtype=np.int64), np.array(flat, np.int64)


def _budgets(problem: Problem) -> Array:
    budgets = problem.goals.budgets
    limits = (
        budgets.replica_moves,
        budgets.bytes,
        budgets.leader_changes,
        budgets.partitions,
        budgets.replica_moves_per_topic,
        budgets.replica_moves_in_per_broker,
        budgets.replica_moves_out_per_broker,
        budgets.partitions_per_topic,
    )
    return np.array([NO_BUDGET if v is None else v for v in limits], np.int64)


def _topics(problem: Problem) -> tuple[Array, Array]:
    """(2, T) weight, and mean count per broker, of each topic's replicas and leaders."""
    topics = len(problem.snapshot.header.topics) if problem.topic_share else 0
    weights, level = np.zeros((2, topics)), np.ones((2, topics))
    brokers = max(1, int(problem.may.holding.sum()))
    for measure, weight in problem.topic_share:
        total = topic_totals(problem, measure)
        which = 0 if measure == Count.TOPIC_REPLICAS else 1
        weights[which] += weight * total / max(1.0, float(total.sum()))
        level[which] = np.maximum(total, 1.0) / brokers
    return weights, level

"""What the compiled loops need of a problem, as flat arrays."""

from typing import Any, Final, NamedTuple, cast

import numpy as np

from solver.kernels.compiled import Array, compiled, linked, reference_to
from solver.problem.co_location import RackMode
from solver.problem.placement import topic_totals
from solver.problem.problem import CAPACITY_SLACK, Problem

NO_BUDGET: Final = np.iinfo(np.int64).max


class Columns(NamedTuple):
    """n rows, B brokers, K counted and C limited dimensions, M most replicas.

    Loads are in levels: the deviation of broker b is
    `sum of loads x scale[b] - 1`.
    """

    home: Array
    """(n, M) the snapshot's replicas, leader first, then ascending; -1 fills."""
    rf: Array
    """(n,)"""
    lead: Array
    """(n, K)"""
    follow: Array
    """(n, K)"""
    scale: Array
    """(B, K) 0 for brokers that are not levelled."""
    weight: Array
    """(K,)"""
    price: Array
    """(n,) of a replica on a broker that had none."""
    leader_price: float
    free: Array
    """(n,) may change at all."""
    led: Array
    """(n,) has a leader; of the others all replicas follow, and none moves."""
    stays: Array
    """(n, M) the replica in `home` may stay."""
    forced: Array
    """(n,) may not stay as it is."""
    group: Array
    """(n,) rows that the same pins and racks bind."""
    allow: Array
    """(G, B) may get a replica."""
    may_lead: Array
    """(G, B) may get the leadership."""
    leads_on: Array
    """(n,) the leader in `home` may lead on, on whatever broker it stays."""
    mode: Array
    """(G,) `RackMode`"""
    distinct: Array
    """(G,)"""
    wanted: Array
    """(G, Q)"""
    most: Array
    """(G, Q) replicas that a rack may hold at most: what the relaxation keeps of the
    racks' rules."""
    rack: Array
    """(B,)"""
    usable: Array
    """(G, Q) brokers of each rack that may get a replica."""
    barred_start: Array
    """(n + 1,)"""
    barred: Array
    """Brokers that a row may not go back to."""
    limit_lead: Array
    """(n, C) what a leader takes of each limited dimension."""
    limit_follow: Array
    """(n, C)"""
    limit: Array
    """(B, C)"""
    most_replicas: Array
    """(B,)"""
    budgets: Array
    """(8,) new replicas, bytes, leader changes, partitions; new replicas of a topic,
    into and out of a broker; partitions of a topic."""
    bytes_: Array
    """(n,) copied by one new replica."""
    topic: Array
    """(n,)"""
    topic_weight: Array
    """(2, T) cost of one squared relative deviation of a topic's replicas, leaders;
    (2, 0) where topics are not levelled."""
    topic_level: Array
    """(2, T) replicas, leaders of a topic per holding broker."""
    holding: Array
    """(B,)"""


ColumnsStruct, ColumnsReference = reference_to(Columns)


@compiled
def _link_columns(parts: Any) -> Any:
    return ColumnsReference(*parts)


def find_columns(problem: Problem) -> Columns:
    """Columns of a problem, rows in its order."""
    may, spreading = problem.may, problem.may.spreading
    home, stays = _leader_first(problem)
    unit = _units(problem)
    led = problem.leader >= 0
    lead = problem.lead
    if not led.all():
        lead = np.where(led[:, None], lead, problem.follow)
    kept = np.flatnonzero(problem.weight > 0)
    column, unit = problem.column[kept], unit[kept]
    limited = np.flatnonzero(np.isfinite(problem.allowed).any(axis=0))
    barred_start, barred = _barred(problem)
    return linked(
        _link_columns,
        Columns(
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
            group=spreading.group.astype(np.int64),
            allow=spreading.allow & may.alive,
            may_lead=spreading.lead & may.alive,
            leads_on=stays[:, 0] & spreading.lead[spreading.group, home[:, 0]],
            mode=spreading.mode,
            distinct=spreading.distinct,
            wanted=spreading.wanted,
            most=_most_in_rack(problem),
            rack=spreading.rack.astype(np.int64),
            usable=_takers(problem),
            barred_start=barred_start,
            barred=barred,
            limit_lead=np.ascontiguousarray(lead[:, limited]),
            limit_follow=np.ascontiguousarray(problem.follow[:, limited]),
            limit=problem.allowed[:, limited] * (1 + CAPACITY_SLACK / 2),
            most_replicas=problem.allowed_replicas,
            budgets=_budgets(problem),
            bytes_=problem.copied_bytes,
            topic=problem.snapshot.partitions.topic.astype(np.int64),
            topic_weight=_topic_weights(problem),
            topic_level=_topic_levels(problem),
            holding=may.holding,
        ),
    )


def relinked(c: Columns, **changes: Array) -> Columns:
    """The same columns with some others instead."""
    record = cast("Any", c).record
    changed: Columns = record._replace(**changes)
    return linked(_link_columns, changed)


def _units(problem: Problem) -> Array:
    """(K,) levels per unit of load on a broker of mean slope."""
    held = problem.slope[problem.may.holding]
    unit: Array = held.sum(axis=0) / max(1, len(held))
    return np.where(unit > 0, unit, 1.0)


def _leader_first(problem: Problem) -> tuple[Array, Array]:
    """(n, M) brokers, leader first, others ascending, and which of them may stay."""
    replicas, leader = problem.replicas, problem.leader[:, None]
    rank = np.where(replicas == leader, -1, replicas)
    # The filler -1 must not be taken for the leader of a row without one.
    rank = np.where(replicas >= 0, rank, np.iinfo(np.int64).max)
    order = np.argsort(rank, axis=1, kind="stable")
    home = np.take_along_axis(replicas, order, axis=1).astype(np.int64)
    go = np.take_along_axis(problem.may.must_go, order, axis=1)
    return np.ascontiguousarray(home), np.ascontiguousarray(~go)


def leader_first(c: Columns, replicas: Array, leader: Array) -> Array:
    """(n, M) brokers of a placement, leader first; home where nothing may move.

    replicas: (n, M) in any order; leader: (n,).
    """
    rank = np.where(replicas >= 0, replicas, np.iinfo(np.int64).max)
    rank = np.where(replicas == leader[:, None], -1, rank)
    order = np.argsort(rank, axis=1, kind="stable")
    at = np.take_along_axis(replicas, order, axis=1)
    return np.where(c.free[:, None], at, c.home).astype(np.int64)


def _most_in_rack(problem: Problem) -> Array:
    spreading = problem.may.spreading
    most = np.full(spreading.wanted.shape, np.iinfo(np.int32).max, np.int64)
    rf = np.zeros(len(spreading.mode), np.int64)
    rf[spreading.group] = problem.rf
    takers = _takers(problem)
    for g, mode in enumerate(spreading.mode.tolist()):
        if mode == RackMode.EXACT:
            most[g] = spreading.wanted[g]
        elif mode == RackMode.EVEN:
            most[g] = [_most_if_even(takers[g], q, rf[g]) for q in range(len(most[g]))]
        elif mode == RackMode.SPREAD:
            most[g] = rf[g] - spreading.distinct[g] + 1
    return most


def _most_if_even(takers: Array, rack: int, rf: int) -> int:
    """The most that one rack can hold of rf: each other one then has one less, or its
    takers hold one each."""
    others = np.delete(takers, rack)
    fits = [m for m in range(1, rf + 1) if m + np.minimum(others, m - 1).sum() <= rf]
    return max(fits)


def _takers(problem: Problem) -> Array:
    """(G, Q) brokers of each rack that may get a replica."""
    spreading = problem.may.spreading
    takers = np.zeros(spreading.wanted.shape, np.int64)
    for b in np.flatnonzero(problem.may.alive).tolist():
        takers[:, spreading.rack[b]] += spreading.allow[:, b]
    return takers


def _barred(problem: Problem) -> tuple[Array, Array]:
    barred = problem.may.barred
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


def _topic_levels(problem: Problem) -> Array:
    topics = len(problem.snapshot.header.topics) if problem.topic_share else 0
    level = np.ones((2, topics))
    brokers = max(1, int(problem.may.holding.sum()))
    for measure, _ in problem.topic_share:
        total = topic_totals(problem, measure)
        level[_which(measure)] = np.maximum(total, 1.0) / brokers
    return level


def _topic_weights(problem: Problem) -> Array:
    topics = len(problem.snapshot.header.topics) if problem.topic_share else 0
    weights = np.zeros((2, topics))
    for measure, weight in problem.topic_share:
        total = topic_totals(problem, measure)
        weights[_which(measure)] += weight * total / max(1.0, float(total.sum()))
    return weights


def _which(measure: str) -> int:
    return 0 if measure == "topic_replicas" else 1

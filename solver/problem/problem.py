"""The compiled problem: a snapshot and goals as numpy columns.

The solver implements all of F's arithmetic and all rules a second time; the tests
compare it with the independent half in `model`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.goals.goals import Goal, Goals, ObjectiveKind
from model.ids import BrokerId
from model.snapshot.snapshot import Bools, Count, Floats, Ints, Resource, Snapshot, StorageKind
from solver.problem.change_costs import ChangeCosts, find_change_costs
from solver.problem.eligibility import Eligibility, find_eligibility
from solver.problem.leader_minimums import LeaderMinimum
from solver.problem.load_columns import (
    TOPIC_MEASURES,
    LoadColumn,
    column_weight,
    find_load_columns,
    replica_loads,
)

CAPACITY_SLACK = 5e-10
"""Share by which a load may exceed its limit: half of what the evaluator tolerates, so
that rounding to integers never invalidates a plan."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Columns over n rows (partitions), B brokers, D load columns, K of them balanced.

    Rows are in the snapshot's order and brokers in order of id. Except in `brokers`,
    every broker is given by position. M is the largest replication factor.
    """

    snapshot: Snapshot
    goals: Goals
    brokers: tuple[BrokerId, ...]
    """(B,) ids; all other figures refer to brokers by position in this tuple."""
    dimensions: tuple[LoadColumn, ...]
    """(D,) measure and time slot of each load column."""
    replicas: Ints
    """(n, M) brokers of each row in the snapshot, in replica-list order; -1 fills shorter rows."""
    leader: Ints
    """(n,) leading broker in the snapshot; -1 for none."""
    lead: Floats
    """(n, D) load of a row on its leader's broker, in the column's unit."""
    follow: Floats
    """(n, D) load of a row on each follower's broker, in the column's unit."""
    counted: tuple[Goal, ...]
    """(K,) the goal behind each balanced column: measured, and above its floor."""
    column: Ints
    """(K,) position of each balanced column among the D."""
    weight: Floats
    """(K,) weight in F."""
    slope: Floats
    """(B, K) deviation per unit of load: 1 / (capacity x mean utilisation); 0 for
    brokers that are not balanced."""
    mean_load: Floats
    """(K,) mean load per holding broker."""
    topic_goals: tuple[Goal, ...]
    """Goals balanced topic by topic whose mean count reaches their floor."""
    limit: Floats
    """(B, D) limit x capacity; infinite where nothing is limited."""
    allowed: Floats
    """(B, D) highest load allowed: the limit, or the present load of a broker over it."""
    allowed_replicas: Ints
    """(B,) highest number of replicas allowed."""
    may: Eligibility
    """Which rows may move, and to which brokers."""
    costs: ChangeCosts
    """Costs of changes, in units of F."""
    loads_before: Floats
    """(B, D) loads in the snapshot."""
    most_excess: float = math.inf
    """Highest allowed sum of weight x deviation beyond the tolerance; infinite where a plan need
    not come closer to it."""
    minimums: tuple[LeaderMinimum, ...] = ()
    """Minimum leaders per broker, for the exact model and the reasons of moves: the other
    searches know anchored rows instead (`solver.leaders`)."""
    start: tuple[Ints, Ints] | None = None
    """Replicas, (n, M), and leaders, (n,), to search from where the snapshot's own
    placement is not allowed; None where none is known."""

    @property
    def band(self) -> bool:
        """Whether the objective is `band` (a tolerance band) and not `variance`."""
        return self.goals.objective is ObjectiveKind.BAND

    @property
    def topic_share(self) -> tuple[tuple[Count, float], ...]:
        """Counts balanced topic by topic, with their positive weights; none for
        `band`."""
        if self.band:
            return ()
        found = [(Count(g.resource), g.weight) for g in self.topic_goals]
        return tuple((measure, weight) for measure, weight in found if weight > 0)

    @property
    def rf(self) -> Ints:
        """(n,) replicas of each row."""
        counts: Ints = np.diff(self.snapshot.partitions.replica_start)
        return counts

    @property
    def keys(self) -> tuple[str, ...]:
        """(K,) names of the balanced columns, as plans have them."""
        return tuple(self.dimensions[c].key for c in self.column.tolist())

    @cached_property
    def tolerance(self) -> Floats:
        """(K,) half the width of each tolerance band, as a share of the mean."""
        return np.array([g.tolerance for g in self.counted], np.float64)

    @cached_property
    def shared(self) -> Bools:
        """(n,) rows on shared storage."""
        shared = [t.storage is StorageKind.SHARED for t in self.snapshot.header.topics]
        return np.array(shared, np.bool_)[self.snapshot.partitions.topic]

    @cached_property
    def copied_bytes(self) -> Ints:
        """(n,) bytes that one new replica copies; 0 on shared storage.

        Where the size is unknown, one byte more than the budget of bytes; 0 without a budget.
        """
        local, most = self.snapshot.partitions.local_bytes, self.goals.budgets.bytes
        size = np.where(local < 0, 0 if most is None else most + 1, local)
        return np.where(self.shared, 0, size).astype(np.int64)

    @cached_property
    def deviations_before(self) -> Floats:
        """(B, K) utilisation / mean - 1 in the snapshot; 0 where not balanced."""
        relative: Floats = self.loads_before[:, self.column] * self.slope - 1.0
        relative[~self.may.holding] = 0.0
        return relative

    @property
    def holds_all(self) -> bool:
        """Whether all replicas and leaders are on balanced brokers, and can go to those only."""
        here, may = self.replicas >= 0, self.may
        elsewhere = (~may.holding[self.replicas] & here).any() or (may.alive & ~may.holding).any()
        return not (elsewhere or (self.leader < 0).any())

    def replica_loads(self, k: int) -> Floats:
        """Return the loads above 0 of all replicas in a balanced dimension, smallest first."""
        column = self.column[k]
        followers = np.repeat(self.follow[:, column], np.maximum(self.rf - 1, 0))
        loads = np.concatenate((self.lead[:, column], followers))
        return np.asarray(np.sort(loads[loads > 0.0]))

    def loads_of_rows(self, rows: Ints) -> Floats:
        """Return the (B, D) load in the snapshot of some rows, given by position.

        Each column is in its own unit.
        """
        return sum_loads(
            self.replicas[rows],
            self.leader[rows],
            self.lead[rows],
            self.follow[rows],
            len(self.brokers),
        )

    @property
    def fill(self) -> Floats:
        """(B,) sum of each balanced load's weight x its multiple of the mean.

        Brokers that are not balanced count as at the mean. Numbers of replicas where no load
        is balanced.
        """
        if len(self.column):
            filled: Floats = ((self.deviations_before + 1.0) * self.weight).sum(axis=1)
            return filled
        held = self.replicas[self.replicas >= 0]
        return np.bincount(held, minlength=len(self.brokers)).astype(np.float64)

    @cached_property
    def home(self) -> Bools:
        """(n, B) whether a broker holds the row in the snapshot; for exact-model sizes only."""
        return membership(self.replicas, len(self.brokers))

    @cached_property
    def hold(self) -> Bools:
        """(n, B) whether a broker may hold the row after the plan; for exact-model sizes only."""
        rows = [self.may.may_hold(i, r) for i, r in enumerate(self.replicas)]
        return np.array(rows, np.bool_).reshape(self.home.shape)

    @cached_property
    def may_lead(self) -> Bools:
        """(n, B) whether a broker may lead the row, if it holds it; for exact-model sizes only."""
        rows = [self.may.may_lead(i, r, int(self.leader[i])) for i, r in enumerate(self.replicas)]
        return np.array(rows, np.bool_).reshape(self.home.shape)


def compile_problem(snapshot: Snapshot, goals: Goals) -> Problem:
    """Compile a snapshot and goals into columns over rows and brokers.

    Unknown loads count as 0. Goals that are not measured, or whose mean load per holding broker is
    below their floor, are not balanced. Equal inputs give equal columns.
    """
    dimensions = find_load_columns(snapshot, goals)
    replicas, leader = _placement(snapshot)
    lead, follow = replica_loads(snapshot, dimensions)
    brokers = snapshot.header.brokers
    before = sum_loads(replicas, leader, lead, follow, len(brokers))
    may = find_eligibility(snapshot, goals, replicas, leader)
    total = before.sum(axis=0)
    counted = _counted(goals, dimensions, total, int(may.holding.sum()))
    column = np.array([d for _, d in counted], np.int64)
    topics = _topic_goals(goals, replicas, leader, int(may.holding.sum()))
    limit = _limits(snapshot, goals, dimensions, may.holding)
    held = np.bincount(replicas[replicas >= 0], minlength=len(brokers))
    return Problem(
        snapshot=snapshot,
        goals=goals,
        brokers=tuple(b.id for b in brokers),
        dimensions=dimensions,
        replicas=replicas,
        leader=leader,
        lead=lead,
        follow=follow,
        counted=tuple(goal for goal, _ in counted),
        column=column,
        weight=np.array([column_weight(g, snapshot) for g, _ in counted], np.float64),
        slope=_slopes(snapshot, dimensions, column, total, may.holding),
        mean_load=total[column] / max(1, int(may.holding.sum())),
        topic_goals=topics,
        limit=limit,
        allowed=np.where(np.isfinite(limit), np.maximum(limit, before), np.inf),
        allowed_replicas=np.maximum(goals.replicas_per_broker, held).astype(np.int64),
        may=may,
        costs=find_change_costs(snapshot, goals, (*(g for g, _ in counted), *topics), may),
        loads_before=before,
    )


def sum_loads(replicas: Ints, leader: Ints, lead: Floats, follow: Floats, brokers: int) -> Floats:
    """Add up loads, (B, D), of rows on `replicas`, (n, M), led by `leader`, (n,).

    Both are broker positions, with -1 as filler and for no leader; `brokers` is B. `lead` and
    `follow` are (n, D) loads on the leader's and on each follower's broker; without a leader all
    replicas follow.
    """
    loads = np.zeros((brokers, lead.shape[1]))
    for k in range(replicas.shape[1]):
        at = replicas[:, k]
        here = np.flatnonzero(at >= 0)
        leads = (at[here] == leader[here])[:, None]
        for d in range(lead.shape[1]):
            load = np.where(leads[:, 0], lead[here, d], follow[here, d])
            loads[:, d] += np.bincount(at[here], load, minlength=brokers)
    return loads


def membership(replicas: Ints, brokers: int) -> Bools:
    """Return the (n, B) membership of (n, M) broker positions, in which -1 is a filler."""
    on = np.zeros((len(replicas), brokers), np.bool_)
    rows, at = np.nonzero(replicas >= 0)
    on[rows, replicas[rows, at]] = True
    return on


def _placement(snapshot: Snapshot) -> tuple[Ints, Ints]:
    columns = snapshot.partitions
    ids = np.array([b.id for b in snapshot.header.brokers], np.int64)
    rf = np.diff(columns.replica_start)
    n, most = len(rf), int(rf.max(initial=1))
    replicas = np.full((n, most), -1, np.int64)
    row = np.repeat(np.arange(n), rf)
    at = np.arange(len(row)) - np.repeat(columns.replica_start[:-1], rf)
    replicas[row, at] = snapshot.replica_position
    leader = snapshot.positions_of(columns.leader)
    known = np.isin(columns.leader, ids)
    return replicas, np.where(known, leader, -1).astype(np.int64)


def _counted(
    goals: Goals, dimensions: tuple[LoadColumn, ...], totals: Floats, holding: int
) -> list[tuple[Goal, int]]:
    """Goals with their column's position, where measured and above the floor."""
    return [
        (goal, d)
        for goal in goals.balance
        for d, dimension in enumerate(dimensions)
        if holding
        and dimension.measure is goal.resource
        and totals[d] / holding >= goal.floor
        and totals[d] > 0
    ]


def _topic_goals(goals: Goals, replicas: Ints, leader: Ints, holding: int) -> tuple[Goal, ...]:
    """Goals balanced topic by topic whose mean count reaches their floor."""
    total = {
        Count.TOPIC_REPLICAS: int((replicas >= 0).sum()),
        Count.TOPIC_LEADERS: int((leader >= 0).sum()),
    }
    return tuple(
        g
        for g in goals.balance
        if g.resource in TOPIC_MEASURES
        and holding
        and total[Count(g.resource)]
        and total[Count(g.resource)] / holding >= g.floor
    )


def _slopes(
    snapshot: Snapshot,
    dimensions: tuple[LoadColumn, ...],
    column: Ints,
    total: Floats,
    holding: Bools,
) -> Floats:
    brokers = snapshot.header.brokers
    slope = np.zeros((len(brokers), len(column)))
    for k, d in enumerate(column.tolist()):
        measure = dimensions[d].measure
        capacity = np.ones(len(brokers))
        if isinstance(measure, Resource):
            known = [b.capacity.get(measure, np.nan) for b in brokers]
            if not np.isnan(np.array(known)[holding]).any():
                capacity = np.array(known)
        mean = total[d] / capacity[holding].sum()
        slope[holding, k] = 1.0 / (capacity[holding] * mean)
    return slope


def _limits(
    snapshot: Snapshot, goals: Goals, dimensions: tuple[LoadColumn, ...], holding: Bools
) -> Floats:
    """(B, D) limit x capacity of the brokers that may hold load; infinite elsewhere."""
    limits = np.full((len(snapshot.header.brokers), len(dimensions)), np.inf)
    for d, dimension in enumerate(dimensions):
        resource = dimension.measure
        if not isinstance(resource, Resource):
            continue
        for b, broker in enumerate(snapshot.header.brokers):
            if holding[b] and resource in broker.capacity:
                limits[b, d] = goals.limit_of(resource) * broker.capacity[resource]
    return limits

"""The compiled problem: a snapshot and goals as numpy columns.

All of F's arithmetic and all rules are worked out here once more; the plain half in
`model` is the truth that the tests compare with.
"""

from dataclasses import dataclass

import numpy as np

from model.goals import Goal, Goals
from model.ids import BrokerId
from model.snapshot import Bools, Floats, Ints, Resource, Snapshot
from solver.eligible import Eligibility, find_eligible
from solver.prices import Prices, find_prices

CAPACITY_SLACK = 5e-10
"""A limit counts as kept up to this share over it: half of what the plain check
forgives, so that rounding to integers never breaks a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Columns over n rows (partitions), B brokers, R resources, K counted goals.

    Rows are in the snapshot's order, brokers by id, resources as in the header,
    counted goals as in the goals. Brokers are meant by their position.
    """

    snapshot: Snapshot
    goals: Goals
    brokers: tuple[BrokerId, ...]
    """(B,) ids; every other figure refers to brokers by position in here."""
    racks: Ints
    """(B,) number of the rack; -1 throughout where any broker names none."""
    racks_wanted: Ints
    """(n,) racks that a row whose replicas move must lie in; 0 where racks do not
    bind."""
    home: Bools
    """(n, B) where replicas lie in the snapshot."""
    leader: Ints
    """(n,) who leads in the snapshot; -1 for none."""
    lead: Floats
    """(n, R) what a row loads its leader's broker with: bytes/s or bytes."""
    follow: Floats
    """(n, R) what a row loads each follower's broker with."""
    counted: tuple[Goal, ...]
    """(K,) goals that are measured and over their floor."""
    column: Ints
    """(K,) each counted goal's column among the resources."""
    weight: Floats
    """(K,)"""
    slope: Floats
    """(B, K) deviation per unit of load: 1 / (capacity x level); 0 for brokers that
    are not levelled."""
    level: Floats
    """(K,) mean load per holding broker."""
    allowed: Floats
    """(B, R) highest load; infinite where nothing limits."""
    allowed_replicas: Ints
    """(B,)"""
    may: Eligibility
    prices: Prices
    loads_before: Floats
    """(B, R)"""

    @property
    def rf(self) -> Ints:
        """(n,) replicas of each row."""
        return np.diff(self.snapshot.partitions.replica_start)


def compile_problem(snapshot: Snapshot, goals: Goals) -> Problem:
    """Compile a snapshot and goals into columns."""
    header = snapshot.header
    home, leader = _placement(snapshot)
    lead, follow = _replica_loads(snapshot)
    before = sum_loads(home, leader, lead, follow)
    may = find_eligible(snapshot, goals, home, leader)
    counted = _counted(snapshot, goals, before.sum(axis=0), int(may.holding.sum()))
    column = np.array([header.resources.index(g.resource) for g in counted], np.int64)
    total = before.sum(axis=0)[column]
    return Problem(
        snapshot=snapshot,
        goals=goals,
        brokers=tuple(b.id for b in header.brokers),
        racks=(racks := _racks(snapshot)),
        racks_wanted=_racks_wanted(racks, home, may.alive),
        home=home,
        leader=leader,
        lead=lead,
        follow=follow,
        counted=counted,
        column=column,
        weight=np.array([g.weight for g in counted], np.float64),
        slope=_slopes(snapshot, counted, total, may.holding),
        level=total / max(1, int(may.holding.sum())),
        allowed=_allowed(snapshot, goals, before, may.holding),
        allowed_replicas=np.maximum(goals.replicas_per_broker, home.sum(axis=0)),
        may=may,
        prices=find_prices(snapshot, goals, counted, home, may),
        loads_before=before,
    )


def sum_loads(on: Bools, leader: Ints, lead: Floats, follow: Floats) -> Floats:
    """Load per broker, (B, R), of rows on `on` (n, B) led by `leader` (n,)."""
    loads: Floats = on.T.astype(np.float64) @ follow
    led = np.flatnonzero(leader >= 0)
    led = led[on[led, leader[led]]]
    np.add.at(loads, leader[led], (lead - follow)[led])
    return loads


def _placement(snapshot: Snapshot) -> tuple[Bools, Ints]:
    columns = snapshot.partitions
    ids = np.array([b.id for b in snapshot.header.brokers], np.int64)
    home = np.zeros((len(snapshot), len(ids)), np.bool_)
    row = np.repeat(np.arange(len(snapshot)), np.diff(columns.replica_start))
    home[row, np.searchsorted(ids, columns.replica_broker)] = True
    leader = np.searchsorted(ids, columns.leader)
    known = np.isin(columns.leader, ids)
    return home, np.where(known, leader, -1).astype(np.int64)


def _replica_loads(snapshot: Snapshot) -> tuple[Floats, Floats]:
    """The leader serves consumers, and what it takes in to each follower."""
    resources = snapshot.header.resources
    lead = np.nan_to_num(snapshot.partitions.loads, nan=0.0)
    follow = lead.copy()
    if Resource.NET_OUT in resources:
        out = resources.index(Resource.NET_OUT)
        follow[:, out] = 0.0
        if Resource.NET_IN in resources:
            followers = np.diff(snapshot.partitions.replica_start) - 1
            lead[:, out] += followers * lead[:, resources.index(Resource.NET_IN)]
    return lead, follow


def _racks(snapshot: Snapshot) -> Ints:
    names = [b.rack for b in snapshot.header.brokers]
    if None in names:
        return np.full(len(names), -1, np.int64)
    order = sorted({str(name) for name in names})
    return np.array([order.index(str(name)) for name in names], np.int64)


def _racks_wanted(racks: Ints, home: Bools, alive: Bools) -> Ints:
    """As many racks as there are replicas, or racks with an alive broker."""
    usable = set(racks[alive].tolist()) - {-1}
    wanted: Ints = np.minimum(home.sum(axis=1), len(usable)).astype(np.int64)
    return wanted


def _counted(
    snapshot: Snapshot, goals: Goals, totals: Floats, holding: int
) -> tuple[Goal, ...]:
    """Goals whose resource is known and whose mean load reaches its floor."""
    resources = snapshot.header.resources
    return tuple(
        g
        for g in goals.balance
        if holding
        and g.resource in resources
        and totals[resources.index(g.resource)] / holding >= g.floor
        and totals[resources.index(g.resource)] > 0
    )


def _slopes(
    snapshot: Snapshot, counted: tuple[Goal, ...], total: Floats, holding: Bools
) -> Floats:
    brokers = snapshot.header.brokers
    slope = np.zeros((len(brokers), len(counted)))
    for k, goal in enumerate(counted):
        capacity = np.array([b.capacity.get(goal.resource, np.nan) for b in brokers])
        if np.isnan(capacity[holding]).any():
            capacity[:] = 1.0
        level = total[k] / capacity[holding].sum()
        slope[holding, k] = 1.0 / (capacity[holding] * level)
    return slope


def _allowed(
    snapshot: Snapshot, goals: Goals, before: Floats, holding: Bools
) -> Floats:
    """Limit x capacity, or what a broker that is over it has already."""
    allowed = np.full(before.shape, np.inf)
    for b, broker in enumerate(snapshot.header.brokers):
        for r, resource in enumerate(snapshot.header.resources):
            if holding[b] and resource in broker.capacity:
                limit = goals.capacity_limit * broker.capacity[resource]
                allowed[b, r] = max(limit, before[b, r])
    return allowed

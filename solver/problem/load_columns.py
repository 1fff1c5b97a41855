"""Load columns of a problem: each measure at each time slot."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.goals.goals import Goal, Goals
from model.snapshot.snapshot import Count, Floats, Measure, Resource, Snapshot

TOPIC_MEASURES = frozenset({Count.TOPIC_REPLICAS, Count.TOPIC_LEADERS})
"""Measures balanced topic by topic; they have no load column."""

CPU_OF_LEADER_IN = 0.7
CPU_OF_LEADER_OUT = 0.15
CPU_OF_FOLLOWER_IN = 0.15
"""Shares of CPU by kind of traffic; defaults of Cruise Control's static CPU model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadColumn:
    """One column of the load arrays: a measure at a time slot."""

    measure: Measure
    slot: int
    """0 for now, otherwise 1 + position among the header's forecast slots."""
    key: str
    """Name in plans, such as `net_in` or `net_in@monday 9h`."""


def find_load_columns(snapshot: Snapshot, goals: Goals) -> tuple[LoadColumn, ...]:
    """List the load columns: all resources now, their forecast slots, then counts of goals.

    A resource has forecast columns if a goal or a broker's capacity refers to it. Of the counts
    those of a resource have them, and are left out where it is not measured. Counts per topic
    have no column.
    """
    header = snapshot.header
    wanted = {goal.resource for goal in goals.balance}
    limited = {r for broker in header.brokers for r in broker.capacity}
    found = [LoadColumn(measure=r, slot=0, key=str(r)) for r in header.resources]
    for resource in header.resources:
        if resource in wanted or resource in limited:
            found += _forecast_columns(snapshot, resource)
    counts = {m for m in wanted if isinstance(m, Count)} - TOPIC_MEASURES
    known = {None, *header.resources}
    for count in sorted(c for c in counts if c.resource in known):
        found.append(LoadColumn(measure=count, slot=0, key=str(count)))
        if count.resource is not None:
            found += _forecast_columns(snapshot, count)
    return tuple(found)


def _forecast_columns(snapshot: Snapshot, measure: Measure) -> Iterator[LoadColumn]:
    for slot, name in enumerate(snapshot.header.slots, 1):
        yield LoadColumn(measure=measure, slot=slot, key=f"{measure}@{name}")


def column_weight(goal: Goal, snapshot: Snapshot) -> float:
    """Return a goal's weight per column: divided evenly among now and the forecast slots.

    Counts of replicas and leaders have a single column, so they keep the whole weight.
    """
    slots = len(snapshot.header.slots)
    alone = goal.resource in (Count.REPLICAS, Count.LEADERS)
    return goal.weight if alone else goal.weight / (1 + slots)


def replica_loads(snapshot: Snapshot, dimensions: tuple[LoadColumn, ...]) -> tuple[Floats, Floats]:
    """Return the load of each row on its leader's broker and on each follower's.

    Both are (n, D) for n rows and the D `dimensions`, in the measure's unit (bytes/s, bytes,
    requests/s, cores, or a number); unknown loads count as 0. A leader's `net_out` includes what
    it sends to followers; a follower's CPU is a share of the leader's, by Cruise Control's
    static CPU model.
    """
    n = len(snapshot.partitions.topic)
    lead, follow = np.zeros((n, len(dimensions))), np.zeros((n, len(dimensions)))
    for d, dimension in enumerate(dimensions):
        lead[:, d], follow[:, d] = _loads(snapshot, dimension)
    return lead, follow


def _loads(snapshot: Snapshot, dimension: LoadColumn) -> tuple[Floats, Floats]:
    measure = dimension.measure
    n = len(snapshot.partitions.topic)
    none = np.zeros(n)
    if measure is Count.REPLICAS:
        return np.ones(n), np.ones(n)
    if measure is Count.LEADERS:
        return np.ones(n), none
    if measure is Count.LEADER_NET_IN:
        return _known(snapshot, Resource.NET_IN, dimension.slot), none
    if measure in (Resource.NET_OUT, Count.POTENTIAL_NET_OUT):
        # A leader sends to consumers, and what it receives to each follower.
        followers = np.diff(snapshot.partitions.replica_start) - 1
        sent = _known(snapshot, Resource.NET_OUT, dimension.slot)
        sent = sent + followers * _known(snapshot, Resource.NET_IN, dimension.slot)
        return sent, none if measure is Resource.NET_OUT else sent
    resource = Resource(measure)
    load = _known(snapshot, resource, dimension.slot)
    if resource is Resource.REQUESTS:
        return load, none
    if resource is Resource.CPU:
        return load, load * _follower_share(snapshot, dimension.slot)
    return load, load


def _known(snapshot: Snapshot, resource: Resource, slot: int) -> Floats:
    """(n,) loads of one resource at one slot; 0 where unknown."""
    known: Floats = np.nan_to_num(_measured(snapshot, resource, slot), nan=0.0)
    return known


def _follower_share(snapshot: Snapshot, slot: int) -> Floats:
    """(n,) a follower's CPU as a share of its leader's, by Cruise Control's static model."""
    taken = _measured(snapshot, Resource.NET_IN, slot)
    followers = np.diff(snapshot.partitions.replica_start) - 1
    served = _measured(snapshot, Resource.NET_OUT, slot) + followers * taken
    whole = CPU_OF_LEADER_IN * taken + CPU_OF_LEADER_OUT * served
    share = CPU_OF_FOLLOWER_IN * taken / np.where(whole > 0, whole, 1.0)
    known: Floats = np.minimum(1.0, np.where(whole > 0, share, 0.0))
    return known


def _measured(snapshot: Snapshot, resource: Resource, slot: int) -> Floats:
    """(n,) loads of one resource at one slot; NaN where unknown."""
    columns, resources = snapshot.partitions, snapshot.header.resources
    if resource not in resources:
        return np.full(len(columns.topic), np.nan)
    at = resources.index(resource)
    later = columns.slot_loads
    if later is None or not slot:
        return columns.loads[:, at]
    return later[:, slot - 1, at]

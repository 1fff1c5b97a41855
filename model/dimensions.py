"""Dimensions of balance, and the load of each replica in them.

A dimension is a goal's measure at one time slot. Its key is `net_in` for now and
`net_in@SLOT` for a slot of the snapshot's header.
"""

from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from model.goals.goals import Goal, Goals
from model.snapshot.snapshot import Count, Floats, Ints, Measure, Resource, Snapshot, SnapshotHeader

TOPIC_MEASURES: Final = frozenset({Count.TOPIC_REPLICAS, Count.TOPIC_LEADERS})
"""Balanced topic by topic: their deviations belong to no broker alone."""

_CPU_OF_LEADER_IN: Final = 0.7
_CPU_OF_LEADER_OUT: Final = 0.15
_CPU_OF_FOLLOWER_IN: Final = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One measure at one time: now, or in a slot of the snapshot's header."""

    measure: Measure
    slot: str | None = None
    """A slot of the snapshot's header; None is now."""

    @property
    def key(self) -> str:
        """The dimension's name in files: `net_in` now, `net_in@SLOT` in a slot."""
        return self.measure.value + (f"@{self.slot}" if self.slot is not None else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A dimension with the weight, tolerance and floor of its goal."""

    dimension: Dimension
    weight: float
    """The goal's, shared equally among now and the slots."""
    tolerance: float
    floor: float

    @property
    def key(self) -> str:
        """The key of the dimension: `net_in` or `net_in@SLOT`."""
        return self.dimension.key


def times_of(header: SnapshotHeader, measure: Measure) -> tuple[str | None, ...]:
    """When a measure is known: now (None), then the slots; none if it is not measured.

    What is counted of the placement itself is the same at every hour.
    """
    resource = measure if isinstance(measure, Resource) else measure.resource
    if resource is None:
        return (None,)
    return (None, *header.slots) if resource in header.resources else ()


def weighted_dimensions(header: SnapshotHeader, goal: Goal) -> tuple[Weighted, ...]:
    """The dimensions of a goal, its weight shared equally among them.

    Empty where the snapshot has no load of the goal's measure.
    """
    times = times_of(header, goal.resource)
    return tuple(
        Weighted(
            dimension=Dimension(measure=goal.resource, slot=slot),
            weight=goal.weight / len(times),
            tolerance=goal.tolerance,
            floor=goal.floor,
        )
        for slot in times
    )


def loaded_dimensions(header: SnapshotHeader, goals: Goals) -> tuple[Dimension, ...]:
    """The dimensions that loads per broker are reported in.

    All resources now and in each slot, then the counts that goals balance; without
    those balanced topic by topic.
    """
    counts = [g.resource for g in goals.balance if isinstance(g.resource, Count)]
    measures: list[Measure] = [*header.resources]
    measures += [c for c in counts if c not in TOPIC_MEASURES]
    return tuple(
        Dimension(measure=measure, slot=slot)
        for measure in measures
        for slot in times_of(header, measure)
    )


def replica_loads(
    snapshot: Snapshot, dimension: Dimension, counts: Ints | None = None
) -> tuple[Floats, Floats]:
    """Load of each partition on its leader's broker and on each follower's broker.

    Followers take in what the leader takes in, and the leader serves it to each of them; consumers
    and requests are served by the leader. CPU of followers is `follower_cpu_share`. Unknown loads
    count as 0. Bytes/s, bytes, cores, requests/s or counts, as the measure has them.

    counts: (n,) replicas of each partition; None for those of the snapshot.

    Returns (n,) float64 each, in row order: the leader's, a follower's.

    Raises ValueError: the header lacks the dimension's resource or slot.
    """
    measure, slot = dimension.measure, dimension.slot
    n = len(snapshot)
    counts = snapshot.replica_counts if counts is None else counts
    nothing = np.zeros(n)
    match measure:
        case Count.REPLICAS | Count.TOPIC_REPLICAS:
            return np.ones(n), np.ones(n)
        case Count.LEADERS | Count.TOPIC_LEADERS:
            return np.ones(n), nothing
        case Count.LEADER_NET_IN:
            return _known(snapshot, Resource.NET_IN, slot), nothing
        case Resource.NET_OUT:
            return _served(snapshot, slot, counts), nothing
        case Count.POTENTIAL_NET_OUT:
            served = _served(snapshot, slot, counts)
            return served, served
        case Resource.REQUESTS:
            return _known(snapshot, measure, slot), nothing
        case Resource.CPU:
            lead = _known(snapshot, measure, slot)
            return lead, lead * follower_cpu_share(snapshot, slot, counts)
        case Resource.NET_IN | Resource.DISK:
            lead = _known(snapshot, measure, slot)
            return lead, lead


def follower_cpu_share(snapshot: Snapshot, slot: str | None, counts: Ints) -> Floats:
    """(n,) a follower's CPU as a share of its leader's, from 0 to 1; 0 where unknown.

    Unknown is where the header lacks `net_in` or `net_out`, or the row's loads are NaN or all 0.
    slot: None is now. counts: (n,) replicas of each partition. Cruise Control's static model
    (`ModelUtils.getFollowerCpuUtilFromLeaderLoad`): bytes in and out of a leader weigh 0.7 and
    0.15, bytes into a follower 0.15.

    Raises ValueError: the header lacks the slot.
    """
    known = snapshot.header.resources
    if Resource.NET_IN not in known or Resource.NET_OUT not in known:
        return np.zeros(len(snapshot))
    taken = _column(snapshot, Resource.NET_IN, slot)
    sent = _column(snapshot, Resource.NET_OUT, slot)
    replication = (counts - 1) * taken
    whole = _CPU_OF_LEADER_IN * taken + _CPU_OF_LEADER_OUT * (sent + replication)
    defined = whole > 0
    share = np.zeros(len(snapshot))
    share[defined] = _CPU_OF_FOLLOWER_IN * taken[defined] / whole[defined]
    return np.minimum(share, 1.0)


def _served(snapshot: Snapshot, slot: str | None, counts: Ints) -> Floats:
    """(n,) what a leader sends: to consumers, and to each of its followers."""
    sent = _known(snapshot, Resource.NET_OUT, slot)
    if Resource.NET_IN in snapshot.header.resources:
        sent = sent + (counts - 1) * _known(snapshot, Resource.NET_IN, slot)
    return sent


def _known(snapshot: Snapshot, resource: Resource, slot: str | None) -> Floats:
    return np.nan_to_num(_column(snapshot, resource, slot), nan=0.0)


def _column(snapshot: Snapshot, resource: Resource, slot: str | None) -> Floats:
    header, columns = snapshot.header, snapshot.partitions
    at = header.resources.index(resource)
    if slot is None:
        return columns.loads[:, at]
    # A snapshot whose header names slots has this column; its check saw to that.
    slot_loads = cast("Floats", columns.slot_loads)
    return slot_loads[:, header.slots.index(slot), at]

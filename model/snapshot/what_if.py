"""What-if: a snapshot of a cluster that does not exist, made from one that does."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median_low
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from model.errors import ConfigError
from model.files import FileModel, VersionedModel
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.names import Names
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import (
    TAKING,
    Bools,
    Broker,
    BrokerState,
    Floats,
    Ints,
    Partitions,
    Resource,
    Snapshot,
    StorageKind,
)
from model.units import count_text

KIND: Final = "plimsoll.what-if"
SCHEMA_VERSION: Final = "1.0"

MOST_ADDED: Final = 10_000
"""Most brokers that a scenario may add: more than any cluster has."""

TRAFFIC: Final = frozenset(Resource) - {Resource.DISK}
"""Resources that grow with the traffic; the use of disks depends on retention, too."""


class AddedBrokers(FileModel):
    """Brokers of the present kind that join."""

    count: Annotated[int, Field(ge=1, le=MOST_ADDED)]
    rack: str | None = None
    """None spreads them: each goes to the rack with the fewest brokers."""


class Traffic(FileModel):
    """Traffic times a factor: all rates, requests and CPU of some topics."""

    factor: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
    topics: Names | None = None
    """None for all topics."""


class Scenario(FileModel):
    """Changes assumed to happen to a cluster, all at once."""

    add: tuple[AddedBrokers, ...] = ()
    remove: tuple[BrokerId, ...] = ()
    """These drain."""
    traffic: tuple[Traffic, ...] = ()
    """Factors of a topic that several match are multiplied."""
    lose_racks: tuple[str, ...] = ()
    """All brokers of these die."""

    def words(self) -> str:
        """Describe the scenario in a clause: `2 brokers added, broker 3 removed`."""
        return ", ".join(_words(self)) or "nothing changes"


class FewestBrokers(FileModel):
    """The smallest number of brokers that can carry a cluster."""

    present: int
    """Brokers that may hold load in the scenario."""
    fewest: int
    """So few are enough: the plan beside it shows how."""
    bound: int
    """Fewer than this cannot do, whatever the plan."""
    binding: str
    """What proves the bound, in words."""
    removed: tuple[BrokerId, ...]
    """Brokers that the plan empties."""
    added: tuple[BrokerId, ...]
    """Brokers that it needs besides."""


class WhatIf(VersionedModel):
    """The answer to a what-if question. No command executes such a file."""

    kind: Literal["plimsoll.what-if"] = KIND
    schema_version: str = SCHEMA_VERSION
    hypothetical: Literal[True] = True
    scenario: Scenario
    words: str
    lost: int
    """Partitions that the scenario leaves without any replica that lives."""
    status: PlanStatus
    reasons: tuple[str, ...]
    fewest_brokers: FewestBrokers | None = None
    plan: Plan | None
    """Of the hypothetical cluster, not of the real one."""


def suppose(snapshot: Snapshot, scenario: Scenario) -> Snapshot:
    """Return the snapshot as it would be under a scenario.

    Brokers added get ids above all others and, of each resource, the median capacity of those that
    take load. A lost rack's partitions are led by their first live replica; on shared storage any
    broker can take them over, so they keep the dead one as leader until a plan moves them.

    Raises ConfigError for a broker, rack or topic that the cluster lacks.
    """
    _check(snapshot, scenario)
    dead = frozenset(b.id for b in snapshot.header.brokers if b.rack in scenario.lose_racks)
    kept = tuple(_kept(b, scenario, dead) for b in snapshot.header.brokers)
    brokers = with_added(kept, snapshot.header.brokers, scenario.add)
    header = snapshot.header.model_copy(update={"brokers": brokers})
    columns = replace(snapshot.partitions, leader=_leaders(snapshot, dead))
    return Snapshot(header, _grown(snapshot, columns, scenario.traffic))


def lost_partitions(before: Snapshot, after: Snapshot) -> tuple[PartitionId, ...]:
    """Partitions that had a leader before and have none after, in row order."""
    had = before.partitions.leader != NO_BROKER
    rows = np.flatnonzero(had & (after.partitions.leader == NO_BROKER))
    return tuple(before.id(row) for row in rows.tolist())


def with_added(
    kept: tuple[Broker, ...], models: Iterable[Broker], added: Iterable[AddedBrokers]
) -> tuple[Broker, ...]:
    """Return the brokers followed by those that join, with the next free ids.

    models: brokers whose median capacity of each resource the new ones have.
    """
    brokers = list(kept)
    capacity = _median_capacity(list(models))
    for some in added:
        for _ in range(some.count):
            number = max((b.id for b in brokers), default=0) + 1
            new = Broker(
                id=BrokerId(number),
                rack=some.rack if some.rack is not None else _emptiest_rack(brokers),
                state=BrokerState.NEW,
                capacity=capacity,
            )
            brokers.append(new)
    return tuple(brokers)


def _kept(broker: Broker, scenario: Scenario, dead: frozenset[BrokerId]) -> Broker:
    state = broker.state
    if broker.id in dead:
        state = BrokerState.DEAD
    elif broker.id in scenario.remove and state is not BrokerState.DEAD:
        state = BrokerState.DRAINING
    return broker.model_copy(update={"state": state})


def _median_capacity(brokers: list[Broker]) -> dict[Resource, float]:
    """Of the brokers that take load; a resource that one of them lacks is unknown."""
    models = [b for b in brokers if b.state in TAKING] or brokers
    return {
        resource: median_low([b.capacity[resource] for b in models])
        for resource in Resource
        if models and all(resource in b.capacity for b in models)
    }


def _emptiest_rack(brokers: list[Broker]) -> str | None:
    """The rack with the fewest brokers that take load, the first of them by name."""
    racks = [b.rack for b in brokers if b.state in TAKING]
    count = Counter(rack for rack in racks if rack is not None)
    # Where a broker names no rack, the rack rule does not apply.
    if not count or None in racks:
        return None
    return min(sorted(count), key=lambda rack: count[rack])


def _leaders(snapshot: Snapshot, dead: frozenset[BrokerId]) -> Ints:
    """(n,) broker ids of the leaders once these brokers are dead."""
    columns, topics = snapshot.partitions, snapshot.header.topics
    leader = columns.leader.copy()
    gone = dead | {b.id for b in snapshot.header.brokers if b.state is BrokerState.DEAD}
    for row in np.flatnonzero(np.isin(leader, sorted(dead))).tolist():
        alive = [b for b in snapshot.replicas(row) if b not in gone]
        shared = topics[int(columns.topic[row])].storage is StorageKind.SHARED
        if alive or not shared:
            leader[row] = alive[0] if alive else NO_BROKER
    return leader


def _grown(snapshot: Snapshot, columns: Partitions, traffic: tuple[Traffic, ...]) -> Partitions:
    """The columns with scaled loads; what is scaled counts as estimated."""
    if not traffic:
        return columns
    topics, resources = snapshot.header.topics, snapshot.header.resources
    names = [t.name for t in topics]
    by_topic = np.ones(len(topics))
    for growth in traffic:
        by_topic[_matches(names, growth.topics)] *= growth.factor
    grows = np.array([r in TRAFFIC for r in resources], np.bool_)
    row = by_topic[columns.topic] if len(topics) else np.ones(0)
    factor: Floats = np.where(grows, row[:, None], 1.0)
    slots = columns.slot_loads
    return replace(
        columns,
        loads=columns.loads * factor,
        measured=columns.measured & (factor == 1.0),
        slot_loads=None if slots is None else slots * factor[:, None, :],
    )


def _matches(names: Iterable[str], topics: Names | None) -> Bools:
    return np.array([topics is None or topics.match(n) for n in names], np.bool_)


def _check(snapshot: Snapshot, scenario: Scenario) -> None:
    header = snapshot.header
    for broker in scenario.remove:
        if broker not in snapshot.broker:
            known = ", ".join(map(str, snapshot.broker)) or "none"
            raise ConfigError(f"there is no broker {broker} to remove; known: {known}")
    racks = sorted({b.rack for b in header.brokers if b.rack is not None})
    for rack in scenario.lose_racks:
        if rack not in racks:
            known = ", ".join(racks) or "none"
            raise ConfigError(f"there is no rack {rack!r} to lose; known: {known}")
    names = [t.name for t in header.topics]
    for growth in scenario.traffic:
        if growth.topics is not None and not _matches(names, growth.topics).any():
            raise ConfigError(
                f"no topic matches {_pattern(growth.topics)!r}; the pattern is a "
                "regular expression that covers the whole name"
            )


def _words(scenario: Scenario) -> Iterator[str]:
    for some in scenario.add:
        where = f" in rack {some.rack}" if some.rack is not None else ""
        yield f"{count_text(some.count, 'broker')} added{where}"
    if scenario.remove:
        ids = ", ".join(map(str, scenario.remove))
        yield f"broker{'s' if len(scenario.remove) > 1 else ''} {ids} removed"
    for growth in scenario.traffic:
        of = f" of topics {_pattern(growth.topics)}" if growth.topics else ""
        yield f"traffic{of} x {growth.factor:g}"
    for rack in scenario.lose_racks:
        yield f"rack {rack} lost"


def _pattern(topics: Names) -> str:
    return ", ".join((*topics.exact, *(f"{p}*" for p in topics.prefix), *topics.regex))

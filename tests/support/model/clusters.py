"""Clusters and moves for the model's tests, independent of the solver's."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from model.goals.goals import Goal, Goals, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move, Plan, PlanStatus
from model.plan.proposal import Change, Proposal
from model.rules import RULES
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    RecentMove,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)

TOPIC = TopicName("orders")
TAKEN_AT_MS = 1_700_000_000_000
RATES = (Resource.NET_IN, Resource.NET_OUT)
NO_FLOOR = Goals(balance=tuple(Goal(resource=r, floor=0.0) for r in RATES))


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def brokers(
    count: int,
    racks: str | None = None,
    states: dict[int, BrokerState] | None = None,
    capacity: dict[int, float] | None = None,
) -> tuple[Broker, ...]:
    """Brokers 1 to count; racks by letter, `-` for none."""
    letters = racks or "-" * count
    limits = {i: dict.fromkeys(RATES, c) for i, c in (capacity or {}).items()}
    return tuple(
        Broker(
            id=BrokerId(i),
            rack=None if letters[i - 1] == "-" else letters[i - 1],
            state=(states or {}).get(i, BrokerState.ALIVE),
            capacity=limits.get(i, {}),
        )
        for i in range(1, count + 1)
    )


def snapshot(
    members: Sequence[Broker],
    places: Sequence[tuple[int, ...]],
    loads: Sequence[tuple[float, float]] | None = None,
    *,
    storage: StorageKind = StorageKind.SHARED,
    internal: bool = False,
    leaders: Sequence[int] | None = None,
    local_bytes: Sequence[int] | None = None,
    size_bytes: Sequence[int] | None = None,
    recent: Sequence[RecentMove] = (),
) -> Snapshot:
    """One topic; by default 1 byte/s in and out each."""
    topic = Topic(name=TOPIC, topic_id="id", storage=storage, internal=internal)
    rows = [
        PartitionRow(
            id=PartitionId(TOPIC, i),
            topic_id="id",
            storage=storage,
            internal=internal,
            replicas=ids(*place),
            leader=BrokerId(leaders[i] if leaders else place[0]),
            size_bytes=size_bytes[i] if size_bytes else 100,
            local_bytes=local_bytes[i] if local_bytes else 100,
        )
        for i, place in enumerate(places)
    ]
    header = SnapshotHeader(
        cluster_id="c",
        taken_at_ms=TAKEN_AT_MS,
        brokers=tuple(members),
        topics=(topic,),
        resources=RATES,
        recent_moves=tuple(recent),
    )
    given = loads if loads is not None else [(1.0, 1.0)] * len(rows)
    columns = np.array(given, np.float64).reshape(-1, 2)
    return Snapshot(header, partitions_from_rows([topic], rows, columns))


def wide(
    members: Sequence[Broker],
    places: Sequence[tuple[int, ...]],
    loads: Mapping[Resource, Sequence[float]],
    *,
    slots: Mapping[str, Mapping[Resource, Sequence[float]]] | None = None,
    dirs: Sequence[Sequence[int]] | None = None,
    topics: Sequence[int] | None = None,
    storage: StorageKind = StorageKind.REPLICATED,
) -> Snapshot:
    """Any resources, slots, log directories and topics (named t0, t1, ...)."""
    base = snapshot(members, places, storage=storage)
    resources = tuple(loads)
    shape = len(resources), len(places)
    columns: dict[str, Any] = {
        "loads": np.array([loads[r] for r in resources]).reshape(shape).T,
        "measured": np.ones((len(places), len(resources)), np.bool_),
    }
    if slots:
        cube = [[named[r] for r in resources] for named in slots.values()]
        columns["slot_loads"] = np.array(cube, np.float64).transpose(2, 0, 1)
    if dirs:
        columns["replica_dir"] = np.array([d for row in dirs for d in row], np.int64)
    named = [base.header.topics[0]]
    if topics:
        named = [
            Topic(name=TopicName(f"t{i}"), topic_id=f"id{i}", storage=storage)
            for i in range(max(topics) + 1)
        ]
        columns["topic"] = np.array(topics, np.int64)
    header = base.header.model_copy(
        update={"resources": resources, "slots": tuple(slots or ()), "topics": tuple(named)}
    )
    return Snapshot(header, dataclasses.replace(base.partitions, **columns))


def change(
    row: int, *replicas: int, leader: int | None = None, dirs: tuple[str, ...] = ()
) -> Change:
    """By default the first replica leads."""
    leads = replicas[0] if leader is None else leader
    return Change(row, ids(*replicas), BrokerId(leads), dirs)


def propose(state: Snapshot, *changes: Change, goals: Goals = NO_FLOOR) -> Proposal:
    return Proposal(state, goals, changes)


def words(proposal: Proposal, rule: str) -> list[str]:
    """The messages of one rule about a proposal."""
    return list(RULES[rule](proposal))


def move(partition: int, before: tuple[int, ...], after: tuple[int, ...], **others: Any) -> Move:
    fields: dict[str, Any] = {
        "topic": TOPIC,
        "topic_id": "id",
        "partition": partition,
        "storage": StorageKind.SHARED,
        "replicas_before": ids(*before),
        "replicas_after": ids(*after),
        "leader_before": BrokerId(before[0]),
        "leader_after": BrokerId(after[0]),
        "bytes_to_copy": 0,
        "gain": 0.5,
        "reason": "relieves broker 1",
    }
    return Move(**(fields | others))


def plan(*moves: Move, **others: Any) -> Plan:
    """A sealed plan of these moves, without brokers."""
    fields: dict[str, Any] = {
        "cluster_id": "c",
        "snapshot_fingerprint": "f",
        "snapshot_taken_at_ms": 1,
        "live_brokers": ids(1, 2, 3),
        "goals": NO_FLOOR,
        "limits": SolveLimits(),
        "status": PlanStatus.OPTIMAL,
        "objective_before": 5.0,
        "objective": 2.0,
        "bound": 1.0,
        "move_price": 0.1,
        "levels": {},
        "brokers": (),
        "moves": moves,
    }
    return Plan(**(fields | others)).seal()

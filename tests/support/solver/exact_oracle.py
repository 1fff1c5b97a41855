"""Tiny clusters and all their allowed placements: the oracle of the exact solver."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model.evaluate import Evaluation, evaluate, evaluate_proposal
from model.goals.goals import Goal, Goals, ObjectiveKind
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.plan.proposal import Change, Proposal
from model.rules import violations_of
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
from solver.repair.repair import REASONS_UNREPAIRED

TAKEN_AT_MS = 1_700_000_000_000
RESOURCES = (Resource.NET_IN, Resource.NET_OUT)
MAY_MOVE = ("", *REASONS_UNREPAIRED.values())
"""Reasons of rows that share racks and may move, as evaluator and solver give them."""
TOPIC = TopicName("orders")
OTHER = TopicName("payments")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One partition; those of `orders` stand before those of `payments`."""

    replicas: tuple[int, ...]
    load: tuple[float, float] = (1.0, 1.0)
    leader: int | None = None
    local_bytes: int = 100
    topic: TopicName = TOPIC
    later: tuple[float, float] | None = None
    """Loads at a forecast slot, if the cluster has one."""


def broker(
    number: int,
    rack: str | None = None,
    state: BrokerState = BrokerState.ALIVE,
    capacity: float | None = None,
) -> Broker:
    limits = {} if capacity is None else dict.fromkeys(RESOURCES, float(capacity))
    return Broker(id=BrokerId(number), rack=rack, state=state, capacity=limits)


def cluster(
    brokers: Sequence[Broker],
    rows: Sequence[Row],
    *,
    storage: StorageKind | Mapping[TopicName, StorageKind] = StorageKind.SHARED,
    internal: bool = False,
    recent: Sequence[RecentMove] = (),
) -> Snapshot:
    names = sorted({row.topic for row in rows} | {TOPIC})
    kinds = dict.fromkeys(names, storage) if isinstance(storage, str) else storage
    topics = [
        Topic(name=name, topic_id="id", storage=kinds[name], internal=internal) for name in names
    ]
    later = [row.later for row in rows]
    known = bool(rows) and None not in later
    header = SnapshotHeader(
        cluster_id="tiny",
        taken_at_ms=TAKEN_AT_MS,
        brokers=tuple(brokers),
        topics=tuple(topics),
        resources=RESOURCES,
        recent_moves=tuple(recent),
        slots=("later",) if known else (),
    )
    number: Counter[TopicName] = Counter()
    partitions = []
    for row in rows:
        kind = kinds[row.topic]
        partitions.append(_partition(row, number[row.topic], kind, internal))
        number[row.topic] += 1
    loads = np.array([row.load for row in rows], np.float64).reshape(-1, 2)
    columns = partitions_from_rows(topics, partitions, loads)
    if known:
        columns = replace(columns, slot_loads=np.array(later).reshape(-1, 1, 2))
    return Snapshot(header, columns)


def _partition(row: Row, number: int, storage: StorageKind, internal: bool) -> PartitionRow:
    return PartitionRow(
        id=PartitionId(row.topic, number),
        topic_id="id",
        storage=storage,
        internal=internal,
        replicas=tuple(map(BrokerId, row.replicas)),
        leader=BrokerId(row.replicas[0] if row.leader is None else row.leader),
        size_bytes=row.local_bytes,
        local_bytes=row.local_bytes,
    )


def moved(partition: int, left: int, age_s: float) -> RecentMove:
    at_ms = TAKEN_AT_MS - int(1000 * age_s)
    return RecentMove(topic=TOPIC, partition=partition, left=(BrokerId(left),), at_ms=at_ms)


def passed_on(partition: int, leader: int, age_s: float) -> RecentMove:
    """A broker passed on the leadership and kept its replica."""
    update = {"left": (), "leader_left": BrokerId(leader)}
    return moved(partition, leader, age_s).model_copy(update=update)


def goals(price: float | None = None, **others: object) -> Goals:
    """Both rates, no floor."""
    balance = tuple(Goal(resource=r, floor=0.0) for r in RESOURCES)
    return Goals.model_validate({"balance": balance, "move_price": price, **others}, strict=False)


def least(snapshot: Snapshot, given_goals: Goals, plan: Plan | None = None) -> float | None:
    """The least F of all placements without a violation; None if there is none.

    plan: count only placements that repair what it repairs, leave no broker further over a
    limit than it does, and come as close to the tolerance where that comes first.
    """
    result = (
        evaluation.objective
        for evaluation in allowed_placements(snapshot, given_goals)
        if plan is None
        or (repairs_as_much(evaluation, plan) and is_as_close(evaluation, snapshot, plan))
    )
    return min(result, default=None)


def tolerance_decides(given_goals: Goals) -> bool:
    """Whether plans must come as close to the tolerance as possible."""
    return given_goals.tolerance_first and given_goals.objective is ObjectiveKind.VARIANCE


def is_as_close(evaluation: Evaluation, snapshot: Snapshot, plan: Plan) -> bool:
    """Whether a placement leaves no more excess over the tolerance than a plan."""
    if not tolerance_decides(plan.goals):
        return True
    own = evaluate(snapshot, plan.goals, plan.moves).excess
    return evaluation.excess <= own + 1e-8


def least_excess(snapshot: Snapshot, given_goals: Goals, plan: Plan) -> float:
    """The least excess over the tolerance of all placements that repair as much as a plan."""
    placements = allowed_placements(snapshot, given_goals)
    return min(e.excess for e in placements if repairs_as_much(e, plan))


def allowed_placements(snapshot: Snapshot, given_goals: Goals) -> Iterator[Evaluation]:
    """Every placement without a violation."""
    for places in itertools.product(*_all_places(snapshot, given_goals)):
        changes = tuple(p for p in places if p is not None)
        evaluation = evaluate_proposal(Proposal(snapshot, given_goals, changes))
        if not evaluation.violations:
            yield evaluation


def repairs_as_much(evaluation: Evaluation, plan: Plan) -> bool:
    """Whether a placement repairs all that a plan repairs."""
    most = {(o.broker, o.dimension): o.after for o in plan.over_limit}
    repaired = {v.id for v in evaluation.rack_violations if v.repaired}
    return repaired.issuperset(plan.repaired) and all(
        o.after <= most.get((o.broker, o.dimension), 0.0) * (1 + 1e-8)
        for o in evaluation.over_limit
        if o.remains
    )


def remaining_violations(faults: Plan | Evaluation) -> tuple[int, float]:
    """Rows that share racks and may move, and the excess over limits, in limits."""
    left = [v for v in faults.rack_violations if not v.repaired and v.reason in MAY_MOVE]
    over = [o.after / o.limit - 1 for o in faults.over_limit if o.remains]
    return len(left), sum(over)


def most_repaired(snapshot: Snapshot, given_goals: Goals) -> tuple[int, float]:
    """The least violations that any placement leaves, racks before limits."""
    return min(map(remaining_violations, allowed_placements(snapshot, given_goals)))


def placement_count(snapshot: Snapshot, given_goals: Goals) -> int:
    """Number of placements that `least` tries."""
    return math.prod(map(len, _all_places(snapshot, given_goals)))


def _all_places(snapshot: Snapshot, given_goals: Goals) -> list[list[Change | None]]:
    """For each row, the placements that are not forbidden by themselves."""
    # Only observers have a fixed position in the list.
    ordered = any(rule.placement.observers for rule in given_goals.placements)
    return [
        [
            place
            for place in _places(snapshot, row, ordered=ordered)
            if not _forbidden(snapshot, given_goals, row, place)
        ]
        for row in range(len(snapshot))
    ]


def _forbidden(snapshot: Snapshot, given_goals: Goals, row: int, place: Change | None) -> bool:
    """Whether a rule reports a violation of this very partition."""
    proposal = Proposal(snapshot, given_goals, (place,) if place else ())
    prefix = f"{snapshot.id(row)} "
    return any(violation.words.startswith(prefix) for violation in violations_of(proposal))


def _places(snapshot: Snapshot, row: int, *, ordered: bool) -> Iterator[Change | None]:
    """Staying first; then each set, or each order, of replicas with each leader."""
    yield None
    before, leader = snapshot.replicas(row), snapshot.partitions.leader[row]
    ids = [b.id for b in snapshot.header.brokers]
    orders = itertools.permutations if ordered else itertools.combinations
    for chosen in orders(ids, len(before)):
        for leads in chosen:
            if ordered or set(chosen) != set(before) or leads != leader:
                yield Change(row, chosen, leads)

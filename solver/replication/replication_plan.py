"""A sealed plan that changes the replication factor of topics."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from model.dimensions import replica_loads
from model.evaluate import Evaluation, counted_dimensions, evaluate_proposal, mean_load
from model.files import rounded
from model.goals.goals import Goals, SolveLimits
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId, TopicName
from model.plan.plan import VERSION_WITH_REPLICATION, BrokerChange, Move, Plan, PlanStatus
from model.plan.proposal import Change, Proposal
from model.plan.remaining import OverLimit
from model.plan.replication_change import ReplicationChange
from model.plan.unplaceable import deferring
from model.plan.warnings import plan_warnings
from model.snapshot.snapshot import BrokerState, Floats, Snapshot
from solver.problem.problem import compile_problem
from solver.replication.placing import place
from solver.report.build_plan import ignored_goals

NO_SEARCH: Final = "replicas were placed one after the other; nothing is proved"
"""Why the search ended, as such a plan states it."""
UNMET: Final = "only replicas that are asked for are added or removed"
"""Why brokers are outside their tolerance after such a plan."""

Loads = Mapping[str, tuple[Floats, Floats]]
"""(n,) load of each leader and each follower, by the key of a dimension."""


def replication_plan(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, wanted: Mapping[TopicName, int]
) -> Plan | None:
    """Plan that every partition of these topics has so many replicas; None if all have.

    Replicas are added and removed, none is exchanged, and nothing else moves. Rules are checked
    by the caller: budgets and minimum leaders, say, are not considered here.

    Raises NoRoom: no broker is left for a replica. Precondition: the partitions have leaders.
    """
    topics = [t.name for t in snapshot.header.topics]
    found = with_topic_placements(goals, snapshot)
    forced = np.flatnonzero(Proposal(snapshot, found, ()).forced.rows).tolist()
    found = deferring(snapshot, found, forced)
    before = Proposal(snapshot, found, ())
    counts, of = snapshot.replica_counts, snapshot.partitions.topic.tolist()
    rows = {
        row: wanted[topics[topic]]
        for row, topic in enumerate(of)
        if topics[topic] in wanted and counts[row] != wanted[topics[topic]]
    }
    if not rows:
        return None
    places = place(before, rows)
    replication = tuple(_changes(snapshot, rows))
    changes = tuple(Change(row, held, held[0]) for row, held in places.items())
    after = Proposal(snapshot, found, changes, replication)
    return _plan(before, after, limits)


def _changes(snapshot: Snapshot, rows: Mapping[int, int]) -> Iterator[ReplicationChange]:
    """What changes, by topic; `before` is the count that is furthest from the one after."""
    counts: dict[TopicName, list[int]] = {}
    wanted: dict[TopicName, int] = {}
    for row, after in rows.items():
        topic = snapshot.id(row).topic
        counts.setdefault(topic, []).append(len(snapshot.replicas(row)))
        wanted[topic] = after
    for topic, found in sorted(counts.items()):
        furthest = max(found, key=lambda count: (abs(count - wanted[topic]), count))
        yield ReplicationChange(topic=topic, before=furthest, after=wanted[topic])


def _plan(before: Proposal, after: Proposal, limits: SolveLimits) -> Plan:
    snapshot, goals = after.snapshot, after.goals
    header = snapshot.header
    verdict = evaluate_proposal(after)
    start = evaluate_proposal(before)
    moves = tuple(_moves(after))
    outside = any(verdict.outside(goals))
    ignored = ignored_goals(compile_problem(snapshot, goals))
    plan = Plan(
        schema_version=VERSION_WITH_REPLICATION,
        cluster_id=header.cluster_id,
        snapshot_fingerprint=snapshot.fingerprint,
        snapshot_taken_at_ms=header.taken_at_ms,
        live_brokers=tuple(b.id for b in header.brokers if b.state is not BrokerState.DEAD),
        goals=goals,
        limits=limits,
        status=PlanStatus.IMPROVED,
        objective_before=rounded(start.objective),
        objective=rounded(verdict.objective),
        bound=0.0,
        limited_by=NO_SEARCH,
        move_price=rounded(verdict.move_price),
        levels={g.key: rounded(mean_load(after, g)) for g in counted_dimensions(after)},
        brokers=tuple(_brokers(before, after, start, verdict)),
        moves=moves,
        forecast=header.forecast,
        warnings=plan_warnings(snapshot, goals, ignored, moves),
        over_limit=tuple(map(_rounded, verdict.over_limit)),
        rack_violations=verdict.rack_violations,
        tolerance_unmet=UNMET if outside else "",
        replication=after.replication,
    )
    if plan.proves(limits.gap):
        plan = plan.model_copy(update={"status": PlanStatus.OPTIMAL, "limited_by": ""})
    return plan.seal()


def _moves(after: Proposal) -> Iterator[Move]:
    snapshot = after.snapshot
    now = [d for d in after.dimensions if d.slot is None]
    loads = {d.key: replica_loads(snapshot, d) for d in now}
    for change in after.changes:
        here = snapshot.row(change.row)
        added = {*change.replicas} - {*here.replicas}
        yield Move(
            topic=here.id.topic,
            topic_id=here.topic_id,
            partition=here.id.partition,
            storage=here.storage,
            replicas_before=here.replicas,
            replicas_after=change.replicas,
            leader_before=here.leader,
            leader_after=change.leader,
            bytes_to_copy=here.bytes_to_copy(len(added)),
            gain=0.0,
            reason=f"{len(change.replicas)} replicas instead of {len(here.replicas)}",
            leader_load=_of_row(loads, change.row, 0),
            follower_load=_of_row(loads, change.row, 1),
        )


def _of_row(loads: Loads, row: int, part: int) -> dict[str, float]:
    return {key: rounded(float(both[part][row])) for key, both in loads.items()}


def _brokers(
    before: Proposal, after: Proposal, start: Evaluation, verdict: Evaluation
) -> Iterator[BrokerChange]:
    now = [d.key for d in after.dimensions if d.slot is None]
    for broker in after.snapshot.header.brokers:
        yield BrokerChange(
            id=broker.id,
            rack=broker.rack,
            state=broker.state,
            before={key: rounded(before.loads_before[broker.id][key]) for key in now},
            after={key: rounded(after.loads_after[broker.id][key]) for key in now},
            deviation_before=_deviations(start, broker.id),
            deviation_after=_deviations(verdict, broker.id),
            replicas_before=before.replicas_before[broker.id],
            replicas_after=after.replicas_after[broker.id],
            capacity={r.value: rounded(c) for r, c in broker.capacity.items()},
        )


def _deviations(of: Evaluation, broker: BrokerId) -> dict[str, float]:
    return {key: rounded(by[broker]) for key, by in of.deviations.items() if broker in by}


def _rounded(over: OverLimit) -> OverLimit:
    figures = {
        name: rounded(value)
        for name in ("before", "after", "limit", "capacity")
        if (value := getattr(over, name)) is not None
    }
    return over.model_copy(update=figures)

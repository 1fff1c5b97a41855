"""Demoting brokers, for good or for maintenance, and electing their leaders back."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from control.planning.staging import barring_budget, staged
from control.planning.validate import refuse_broken
from control.tasks.broker_marks import BrokerMark, states_of
from control.tasks.broker_task import (
    BrokerTask,
    Operation,
    TaskPhase,
    TopicAtMinIsr,
    brokers_text,
    min_isr_text,
)
from control.tasks.operation_rules import Left
from control.tasks.removal import best_of, requested
from control.tasks.task_parts import FoundPlan, TaskParts
from control.tasks.task_steps import OUTDATED
from model.dimensions import Dimension, replica_loads
from model.errors import ConfigError, GuardrailRefused
from model.files import rounded
from model.goals.goals import Goals, RackRule, without_replica_moves
from model.goals.topic_placement import with_topic_placements
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.plan.plan import VERSION_WITH_DEMOTION, Move, Plan
from model.plan.proposal import Proposal
from model.plan.unplaceable import deferring
from model.snapshot.snapshot import LEADERLESS, BrokerState, Snapshot
from model.units import count_text

if TYPE_CHECKING:
    from executor.client.responses import PartitionView
    from executor.journal.run_history import PastRun

STATES: Final[Mapping[Operation, BrokerState]] = {
    Operation.DEMOTE: BrokerState.DEMOTED,
    Operation.MAINTENANCE: BrokerState.MAINTENANCE,
}
"""The state that brokers are in from the request on."""

ENDS: Final[Mapping[Operation, Operation]] = {
    Operation.UNDEMOTE: Operation.DEMOTE,
    Operation.MAINTENANCE_OFF: Operation.MAINTENANCE,
}
"""What ends a demotion, and which kind of demotion."""


def led(views: "Mapping[PartitionId, PartitionView]", brokers: Sequence[BrokerId]) -> list[str]:
    """Partitions that these brokers lead, or whose preferred leader they are."""
    named = {*brokers}
    return [str(v.id) for v in views.values() if named & {v.leader, v.replicas[0]}]


# ---- what forbids a demotion


def refuse_demotion(
    snapshot: Snapshot,
    goals: Goals,
    brokers: Sequence[BrokerId],
    views: "Mapping[PartitionId, PartitionView]",
) -> None:
    """Raise GuardrailRefused where a partition would have no leader but these brokers.

    snapshot: with the brokers demoted. views: of the partitions that they hold.
    """
    reasons = itertools.chain(
        _obstacles(snapshot, goals, brokers),
        _out_of_sync(views, brokers),
        _too_small_budgets(snapshot, goals, brokers),
    )
    for reason in reasons:
        raise GuardrailRefused(f"cannot demote {brokers_text(brokers)}: {reason}")


def _obstacles(snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]) -> Iterator[str]:
    proposal = Proposal(snapshot, with_topic_placements(goals, snapshot), ())
    forced, columns = proposal.forced, snapshot.partitions
    leads, prefers = np.isin(columns.leader, brokers), _preferred(snapshot, brokers)
    for row in np.flatnonzero(leads | prefers).tolist():
        name = snapshot.id(row)
        if columns.leader[row] == NO_BROKER:
            yield f"{name} has no leader; bring its replicas back first"
        elif proposal.domains.of(row).placement is not None:
            yield f"{name} has placement constraints, which say where its leaders may be"
        elif leads[row] and not forced.demoted[row] and not proposal.deferred[row]:
            yield f"{name} has no other replica on a broker that may lead it"
        elif forced.replicas[row]:
            yield (
                f"{name} has a replica that has to move first, as from a dead broker; let "
                "plimsoll plan, or run --auto, move it"
            )


def _too_small_budgets(
    snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]
) -> Iterator[str]:
    """The budgets, where they allow no change of a leader at all."""
    goals = goals.model_copy(update={"rack_rule": RackRule.OFF})
    proposal = Proposal(snapshot, with_topic_placements(goals, snapshot), ())
    leads = proposal.forced.demoted & np.isin(snapshot.partitions.leader, brokers)
    if why := barring_budget(proposal, np.flatnonzero(leads).tolist()):
        yield why


def _out_of_sync(
    views: "Mapping[PartitionId, PartitionView]", brokers: Sequence[BrokerId]
) -> Iterator[str]:
    for view in views.values():
        if view.leader in brokers and not view.in_sync - {*brokers}:
            yield f"{view.id} has no other in-sync replica; wait until its replicas have caught up"


def _preferred(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> np.ndarray:
    """(n,) rows whose preferred leader is one of these brokers."""
    columns = snapshot.partitions
    return np.isin(columns.replica_broker[columns.replica_start[:-1]], brokers)


# ---- what needs the brokers all the same


def at_min_isr(task: BrokerTask, parts: TaskParts) -> tuple[TopicAtMinIsr, ...]:
    """Topics of which partitions have too few in-sync replicas without the task's brokers."""
    views = parts.executor.views_on(task.brokers).values()
    least = parts.executor.min_in_sync({view.id.topic for view in views})
    named = {*task.brokers}
    count = Counter(v.id.topic for v in views if len(v.in_sync - named) < least.get(v.id.topic, 1))
    return tuple(
        TopicAtMinIsr(topic=topic, partitions=count[topic], min_insync_replicas=least.get(topic, 1))
        for topic in sorted(count)
    )


# ---- the plan of a demotion


def plan_demotion(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    """Plan that other replicas lead, and that others are preferred; nothing is copied.

    Raises GuardrailRefused as `refuse_demotion` does, and NoPlan where there is no plan.
    """
    brokers, state = task.brokers, STATES[task.operation]
    views = parts.executor.views_on(brokers)
    demoted = requested(snapshot, brokers, state)
    refuse_demotion(demoted, parts.goals, brokers, views)
    goals, deferred = demotion_goals(demoted, parts.goals, brokers)
    result = parts.solve(demoted, goals)
    plan = best_of(result, f"lets other brokers lead what {brokers_text(brokers)} leads")
    plan = preferring_others(demoted, plan, brokers)
    refuse_broken(demoted, plan)
    note = f"{count_text(plan.leader_changes, 'leader change')}, 0 bytes to copy"
    if order := len(plan.moves) - plan.leader_changes:
        note += f"; {count_text(order, 'partition')} led elsewhere prefer another leader"
    if deferred:
        note += f"; budgets leave {count_text(deferred, 'partition')} to the next plan of the task"
    if lost := min_isr_text(at_min_isr(task, parts), brokers):
        note += f"; warning: {lost}"
    return FoundPlan.of(plan, note, left=len(led(views, brokers)))


def demotion_goals(
    snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]
) -> tuple[Goals, int]:
    """Goals under which other replicas lead, and nothing else changes; partitions put off.

    snapshot: with the brokers demoted. Partitions that something else forces to move are left
    alone, and those beyond the user's budgets are left to a later plan.
    """
    # No replica moves, so that racks need not hold a leader back.
    goals = goals.model_copy(update={"rack_rule": RackRule.OFF})
    found = with_topic_placements(goals, snapshot)
    forced = Proposal(snapshot, found, ()).forced
    mine = forced.demoted & np.isin(snapshot.partitions.leader, brokers)
    others = np.flatnonzero(forced.rows & ~mine).tolist()
    found = deferring(snapshot, found, others)
    found, deferred = staged(snapshot, found, repair_rules=False)
    least = int(np.count_nonzero(Proposal(snapshot, found, ()).forced.demoted))
    found = without_replica_moves(found)
    limit = found.budgets.leader_changes
    # Each of these changes its leader, so that no other partition can.
    budgets = {"leader_changes": least if limit is None else min(least, limit)}
    tight = found.budgets.model_copy(update=budgets)
    return found.model_copy(update={"budgets": tight}), deferred


def preferring_others(snapshot: Snapshot, plan: Plan, brokers: Sequence[BrokerId]) -> Plan:
    """The plan, after which no partition that it names prefers one of these brokers.

    Kafka elects the first replica of the list in time, so they go to its end. Partitions that
    others lead already get another order alone.
    """
    named = {*brokers}
    moves = [_in_order(m, named) for m in plan.moves]
    moved = {m.id for m in moves}
    loads = {r: replica_loads(snapshot, Dimension(measure=r)) for r in snapshot.header.resources}
    for row in np.flatnonzero(_preferred(snapshot, brokers)).tolist():
        partition = snapshot.row(row)
        if partition.id in moved or partition.leader in (*named, NO_BROKER):
            continue
        others = (b for b in partition.replicas if b != partition.leader)
        moves.append(
            Move(
                topic=partition.id.topic,
                topic_id=partition.topic_id,
                partition=partition.id.partition,
                storage=partition.storage,
                replicas_before=partition.replicas,
                replicas_after=(partition.leader, *sorted(others, key=named.__contains__)),
                leader_before=partition.leader,
                leader_after=partition.leader,
                bytes_to_copy=0,
                gain=0.0,
                reason=f"prefers broker {partition.leader}, which leads it",
                leader_load={str(r): rounded(lead[row]) for r, (lead, _) in loads.items()},
                follower_load={str(r): rounded(follow[row]) for r, (_, follow) in loads.items()},
            )
        )
    found = {"moves": tuple(moves), "schema_version": VERSION_WITH_DEMOTION}
    return plan.model_copy(update=found).seal()


def _in_order(move: Move, last: set[BrokerId]) -> Move:
    """The move with these brokers at the end of its replica list, and their directories."""
    dirs = move.log_dirs_after or ("",) * len(move.replicas_after)
    pairs = sorted(zip(move.replicas_after, dirs, strict=True), key=lambda p: p[0] in last)
    update: dict[str, object] = {"replicas_after": tuple(b for b, _ in pairs)}
    if move.log_dirs_after:
        update["log_dirs_after"] = tuple(path for _, path in pairs)
    return move.model_copy(update=update)


# ---- the way back


def plan_return(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    """Plan to roll back the newest run of a demotion that is not undone yet."""
    del snapshot
    plans = _returns(task, parts)
    if not plans:
        raise GuardrailRefused("the leaders have returned meanwhile; nothing is left to elect")
    plan, left = plans[0]
    note = f"{count_text(len(plan.moves), 'partition')} as before the demotion, 0 bytes to copy"
    if left:
        note += f"; left alone: {'; '.join(left)}"
    return FoundPlan.of(plan, note, left=sum(len(p.moves) for p, _ in plans))


def not_returned(task: BrokerTask, parts: TaskParts) -> list[str]:
    """Partitions that are still as a demotion of these brokers has left them."""
    return [str(m.id) for plan, _ in _returns(task, parts) for m in plan.moves]


def _returns(task: BrokerTask, parts: TaskParts) -> list[tuple[Plan, list[str]]]:
    """Rollbacks of the demotions' runs that would change anything, of the newest run first."""
    found = [
        parts.executor.plan_rollback(parts.journal_dir, run.run_id)
        for run in reversed(_runs(_ended_by(task, parts), task, parts))
    ]
    states = states_of(parts.files.marks(task.cluster_id), task.cluster_id)
    barred = {b for b, state in states.items() if state in LEADERLESS} - {*task.brokers}
    kept = [_without_barred(*_without_dead(plan, left), barred) for plan, left in found]
    return [(plan, left) for plan, left in kept if plan.moves]


def lost(task: BrokerTask, parts: TaskParts) -> str:
    """What does not return since its run cannot be read, in words; empty where nothing is lost.

    Those partitions of the demotions' plans that are still as such a plan has left them.
    """
    ended = _ended_by(task, parts)
    known = {run.plan.hash for run in _runs(ended, task, parts)}
    views = parts.executor.views_on(task.brokers)
    demoted, named, unnamed = {*task.brokers}, set[str](), list[str]()
    for of in ended:
        for entry in of.plans:
            ran = entry.approved_at_ms is not None and entry.closed != OUTDATED
            if entry.plan_hash in known or not ran:
                continue
            try:
                plan = parts.files.read_plan(of, entry.plan_hash)
            except ConfigError:
                unnamed.append(f"what task {of.task_id} has changed cannot be read")
                continue
            mine = (m for m in plan.moves if {m.leader_before, m.replicas_before[0]} & demoted)
            named |= {str(m.id) for m in mine if _is_as_after(m, views.get(m.id))}
    words = "still as the demotion has left them, since the journal of its run cannot be read"
    return "; ".join(filter(None, (Left.of(sorted(named), words).words, *unnamed)))


def _is_as_after(move: Move, view: "PartitionView | None") -> bool:
    """Whether a partition is as a move has left it, and not as before."""
    if view is None:
        return False
    now = tuple(view.replicas), view.leader
    before = move.replicas_before, move.leader_before
    return now == (move.replicas_after, move.leader_after) != before


def _ended_by(task: BrokerTask, parts: TaskParts) -> list[BrokerTask]:
    """The demotions that a task ends, the newest first."""
    tasks, _ = parts.files.readable(task.cluster_id)
    return demotions(tasks, task.brokers, task.task_id)


def _runs(ended: Sequence[BrokerTask], task: BrokerTask, parts: TaskParts) -> "list[PastRun]":
    """The readable runs of demotions, oldest first."""
    hashes = {plan.plan_hash for of in ended for plan in of.plans}
    return parts.executor.runs_of(parts.journal_dir, task.cluster_id, hashes) if hashes else []


def _without_dead(plan: Plan, left: list[str]) -> tuple[Plan, list[str]]:
    """A rollback without the partitions whose leader has died, and what was left alone."""
    dead = [move for move in plan.moves if move.leader_after not in plan.live_brokers]
    return _without(plan, left, dead, {m.leader_after for m in dead}, "dead by now")


def _without_barred(
    plan: Plan, left: list[str], barred: Collection[BrokerId]
) -> tuple[Plan, list[str]]:
    """A rollback without the partitions that others would lead, or prefer, that may not lead."""
    theirs = [m for m in plan.moves if {m.leader_after, m.replicas_after[0]} & {*barred}]
    named = {b for m in theirs for b in (m.leader_after, m.replicas_after[0]) if b in barred}
    return _without(plan, left, theirs, named, "which may not lead")


def _without(
    plan: Plan, left: list[str], moves: Collection[Move], brokers: Collection[BrokerId], why: str
) -> tuple[Plan, list[str]]:
    """A rollback without these moves, and what was left alone."""
    if not moves:
        return plan, left
    words = f"{count_text(len(moves), 'partition')} of {brokers_text(sorted(brokers))}, {why}"
    kept = tuple(move for move in plan.moves if move not in moves)
    return plan.model_copy(update={"moves": kept}).seal(), [*left, words]


def demotions(
    tasks: Sequence[BrokerTask], brokers: Sequence[BrokerId], but: str = ""
) -> list[BrokerTask]:
    """Demotions that were not ended yet of any of these brokers, the newest first.

    tasks: of one cluster, oldest first. but: the task that ends them.
    """
    found, demoted = [], {*brokers}
    for task in reversed(tasks):
        if task.task_id == but or not {*task.brokers} & demoted:
            continue
        if task.operation in ENDS and task.phase is TaskPhase.DONE:
            demoted -= {*task.brokers}
        if task.operation in STATES:
            found.append(task)
    return found


def standing(tasks: Sequence[BrokerTask], marks: Collection[BrokerMark]) -> list[BrokerTask]:
    """Demotions whose leaders may still return: not ended, and of brokers that are marked.

    tasks: oldest first. A later mark may have taken the place of a demotion's own.
    """
    found: dict[str, BrokerTask] = {}
    for cluster_id, broker in {(m.cluster_id, m.broker) for m in marks}:
        own = [task for task in tasks if task.cluster_id == cluster_id]
        found |= {task.task_id: task for task in demotions(own, [broker])}
    return [*found.values()]


def refuse_undemoted(
    tasks: Sequence[BrokerTask], brokers: Sequence[BrokerId], marks: Collection[BrokerMark]
) -> None:
    """Raise GuardrailRefused where none of the brokers was demoted. marks: of the cluster."""
    demoted = {m.broker for m in marks if m.state in LEADERLESS}
    if not demoted & {*brokers} and not demotions(tasks, brokers):
        was = "was" if len(brokers) == 1 else "were"
        raise GuardrailRefused(
            f"{brokers_text(brokers)} {was} not demoted; nothing is to be undone"
        )

"""Adding brokers: plans that fill them, and move nothing elsewhere."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from control.planning.staging import barring_budget, staged
from control.planning.validate import refuse_broken
from control.tasks.broker_marks import AWAY
from control.tasks.broker_task import BrokerTask, brokers_text
from control.tasks.removal import best_of, member, requested
from control.tasks.task_parts import FoundPlan, TaskParts
from model.errors import GuardrailRefused
from model.evaluate import evaluate
from model.goals.goals import Budgets, Cooldown, Goal, Goals
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId
from model.plan.proposal import Proposal
from model.plan.unplaceable import deferring
from model.snapshot.snapshot import (
    TAKING,
    Broker,
    BrokerState,
    Count,
    RecentMove,
    Snapshot,
    StorageKind,
)
from model.units import bytes_text, count_text

NO_REST: Final = dict.fromkeys(StorageKind, Cooldown(rest_s=0.0, return_window_s=1.0))
"""The cooldown of plans that fill brokers: it binds only what `barred` says."""


def filling(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> Snapshot:
    """The snapshot in which these brokers may take load, and without cooldowns.

    Raises GuardrailRefused where one may not: it is gone, dead, cordoned, demoted or in
    maintenance.
    """
    for broker in brokers:
        state = member(snapshot, broker).state
        if state not in TAKING | AWAY:
            raise GuardrailRefused(
                f"cannot add broker {broker}: it is {state.words}{_instead(state)}"
            )
    leaving = [b for b in brokers if snapshot.broker[b].state in AWAY]
    return requested(_opened(snapshot, leaving), leaving, BrokerState.ALIVE)


def _opened(snapshot: Snapshot, brokers: Collection[BrokerId]) -> Snapshot:
    """The snapshot without the cordons that came with the marks of these brokers."""

    def opened(member: Broker) -> Broker:
        if member.id not in brokers or not all(d.cordoned for d in member.log_dirs):
            return member
        dirs = tuple(d.model_copy(update={"cordoned": d.failed}) for d in member.log_dirs)
        return member.model_copy(update={"log_dirs": dirs})

    members = tuple(map(opened, snapshot.header.brokers))
    return replace(snapshot, header=snapshot.header.model_copy(update={"brokers": members}))


def _instead(state: BrokerState) -> str:
    return {
        BrokerState.DEAD: "; start it, or cancel the task",
        BrokerState.CORDONED: "; clear its cordoned.log.dirs first",
        BrokerState.DEMOTED: "; end that with plimsoll broker undemote first",
        BrokerState.MAINTENANCE: "; end that with plimsoll broker maintenance ID off first",
    }.get(state, "")


def filling_goals(snapshot: Snapshot, goals: Goals) -> Goals:
    """The user's goals; replicas and leaders count where no load is large enough to."""
    found = with_topic_placements(goals, snapshot)
    if evaluate(snapshot, found, ()).deviations:
        return found
    counts = (Goal(resource=Count.REPLICAS), Goal(resource=Count.LEADERS))
    return found.model_copy(update={"balance": counts})


def too_little(snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]) -> int:
    """Replicas and leaders elsewhere, while an added broker is below its tolerance; else 0."""
    open_ = filling(snapshot, brokers)
    found = filling_goals(open_, goals)
    if not evaluate(open_, found, ()).below_band(found) & {*brokers}:
        return 0
    return _elsewhere(snapshot, brokers)


def _elsewhere(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> int:
    columns = snapshot.partitions
    return sum(
        int(np.count_nonzero(~np.isin(ids, brokers)))
        for ids in (columns.replica_broker, columns.leader)
    )


def refuse_filling(snapshot: Snapshot, goals: Goals, brokers: Sequence[BrokerId]) -> None:
    """Raise GuardrailRefused as `filling`, and where budgets allow nothing on empty brokers."""
    open_ = filling(snapshot, brokers)
    columns = open_.partitions
    is_held = bool(np.isin(columns.replica_broker, brokers).any())
    if goals.budgets == Budgets() or is_held or not too_little(snapshot, goals, brokers):
        return
    proposal = Proposal(open_, filling_goals(open_, goals), ())
    one = np.ones(len(open_), np.int64)
    if why := barring_budget(proposal, range(len(open_)), one):
        raise GuardrailRefused(f"cannot add {brokers_text(brokers)}: {why}")


def plan_filling(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    """Plan to fill brokers: new replicas lie on them alone; leaders may change to balance the rest.

    The plan has no moves where none is worth its cost. Raises GuardrailRefused as `filling` does,
    and NoPlan where there is no plan.
    """
    brokers = task.brokers
    open_ = filling(snapshot, brokers)
    goals = filling_goals(open_, parts.goals)
    forced = np.flatnonzero(Proposal(open_, goals, ()).forced.rows).tolist()
    goals = deferring(open_, goals, forced)
    goals, _ = staged(open_, goals, repair_rules=False)
    goals = goals.model_copy(update={"cooldown": NO_REST})
    open_ = barred(open_, brokers)
    plan = best_of(parts.solve(open_, goals), f"fills {brokers_text(brokers)}")
    refuse_broken(open_, plan)
    note = f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to copy"
    return FoundPlan.of(plan, note, left=_elsewhere(snapshot, brokers))


def barred(snapshot: Snapshot, brokers: Sequence[BrokerId]) -> Snapshot:
    """The snapshot in which new replicas may lie on these brokers alone.

    As if every partition had just left all others: planner and evaluator have one rule for both,
    and racks still count every broker.
    """
    header = snapshot.header
    others = tuple(b.id for b in header.brokers if b.id not in brokers)
    recent = tuple(
        RecentMove(topic=pid.topic, partition=pid.partition, left=others, at_ms=header.taken_at_ms)
        for pid in snapshot.ids
    )
    update = {"recent_moves": recent}
    return Snapshot(header.model_copy(update=update), snapshot.partitions)

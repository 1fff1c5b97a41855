"""Tasks that repair whatever is broken on the cluster."""

from typing import Final

from control.planning.repair_request import broken_partitions, plan_repair
from control.tasks.broker_task import BrokerTask
from control.tasks.operation_rules import (
    Left,
    Observe,
    OperationRules,
    no_cordon,
    nothing_cordoned,
    nothing_forbids,
)
from control.tasks.task_parts import FoundPlan, NoPlan, TaskParts
from model.goals.goals import Goals
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import Snapshot


def _find(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    del task
    found = plan_repair(snapshot, parts.goals, parts.solve)
    if found is None or found.plan is None:
        why = "; ".join(found.notes) if found is not None else "nothing is broken any longer"
        raise NoPlan(why or "nothing can be repaired", PlanStatus.NONE_IN_TIME)
    note = "; ".join((found.words, *found.bounds, *found.notes))
    left = len(broken_partitions(snapshot, parts.goals))
    return FoundPlan.of(found.plan, note, left=left, least_bytes=found.least_bytes)


def _left(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    del task
    return Left.of(broken_partitions(observe(), parts.goals), "still broken")


def _is_whole(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> bool:
    del task
    return not broken_partitions(snapshot, goals)


REPAIR: Final = OperationRules(
    refuse=nothing_forbids,
    needless=_is_whole,
    find=_find,
    left=_left,
    mark=None,
    mark_approved=None,
    marks=False,
    cordon=no_cordon,
    uncordon=nothing_cordoned,
    verified=lambda _task: (
        "nothing is broken: no dead broker or failed directory holds a replica, and no rule of "
        "racks or placement is broken"
    ),
    done=lambda _task: "the cluster is repaired",
)

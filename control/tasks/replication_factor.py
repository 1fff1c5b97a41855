"""Tasks that change the replication factor of topics."""

from typing import Final

from control.planning.least_bytes import bound_sentence
from control.planning.replication_request import (
    are_of,
    least_replication,
    plan_replication,
    rack_sentence,
    refuse_replication,
)
from control.planning.validate import refuse_broken
from control.tasks.broker_task import NAMED, BrokerTask, task_words
from control.tasks.operation_rules import Left, Observe, OperationRules, no_cordon, nothing_cordoned
from control.tasks.task_parts import FoundPlan, NoPlan, TaskParts
from model.errors import ExecutionStopped
from model.goals.goals import Goals, SolveLimits
from model.ids import TopicName
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Snapshot
from model.units import bytes_text, count_text, listed


def _replicas(task: BrokerTask) -> int:
    if task.replicas is None or not task.topics:
        raise ExecutionStopped(f"task {task.task_id} names no topics; request it again")
    return task.replicas


def _known(task: BrokerTask, snapshot: Snapshot) -> tuple[TopicName, ...]:
    """The topics of a task that still exist."""
    known = {t.name for t in snapshot.header.topics}
    return tuple(topic for topic in task.topics if topic in known)


def _wanted(task: BrokerTask, snapshot: Snapshot) -> dict[TopicName, int]:
    return dict.fromkeys(_known(task, snapshot), _replicas(task))


def _refuse(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> None:
    refuse_replication(snapshot, goals, _wanted(task, snapshot))


def changing(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> Plan | None:
    """The plan of a task; None where every partition has so many replicas.

    Raises as `plan_replication` does.
    """
    plan = plan_replication(snapshot, goals, SolveLimits(), _wanted(task, snapshot))
    refuse_broken(snapshot, plan)
    return plan


def least(task: BrokerTask, snapshot: Snapshot) -> int | None:
    """Bytes that any plan of a task copies; None where a size is unknown."""
    return least_replication(snapshot, _known(task, snapshot), _replicas(task))


def crowded(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> str:
    """As `rack_sentence`, for a task."""
    return rack_sentence(snapshot, goals, _replicas(task))


def _find(task: BrokerTask, snapshot: Snapshot, parts: TaskParts) -> FoundPlan:
    plan = changing(task, snapshot, parts.goals)
    if plan is None:
        raise NoPlan(
            "the snapshot does not show yet what the brokers do; wait, and resume the task",
            PlanStatus.NONE_IN_TIME,
        )
    fewest = least(task, snapshot)
    note = f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to copy"
    if bound := bound_sentence("does so", plan.bytes_to_copy, fewest):
        note += f"; {bound}"
    if racks := crowded(task, snapshot, parts.goals):
        note += f"; {racks}"
    return FoundPlan.of(plan, note, left=len(plan.moves), least_bytes=fewest)


def _left(task: BrokerTask, parts: TaskParts, observe: Observe) -> Left:
    """Partitions with another number of replicas; of topics that were deleted, none is left.

    Raises ExecutionStopped where no topic of the task exists any longer.
    """
    del observe
    topics, replicas = {*task.topics}, _replicas(task)
    found = {p: held for p, held in parts.executor.replica_lists().items() if p.topic in topics}
    if gone := sorted(topics - {pid.topic for pid in found}):
        verb = "exists" if len(gone) == 1 else "exist"
        words = f"{listed(gone, NAMED)} no longer {verb}"
        if len(gone) == len(topics):
            raise ExecutionStopped(f"{words}; cancel the task with plimsoll task cancel")
        parts.say(words)
    other = [pid for pid, held in found.items() if len(held) != replicas]
    return Left.of(other, f"still without {count_text(replicas, 'replica')}")


def _verified(task: BrokerTask) -> str:
    of = "the topic" if len(task.topics) == 1 else f"{len(task.topics):,} topics"
    return f"every partition of {of} has {count_text(_replicas(task), 'replica')}"


def _is_set(task: BrokerTask, snapshot: Snapshot, goals: Goals) -> bool:
    del goals
    counts = snapshot.replica_counts[are_of(snapshot, _known(task, snapshot))]
    return len(counts) > 0 and bool((counts == _replicas(task)).all())


SET_REPLICAS: Final = OperationRules(
    refuse=_refuse,
    needless=_is_set,
    find=_find,
    left=_left,
    mark=None,
    mark_approved=None,
    marks=False,
    cordon=no_cordon,
    uncordon=nothing_cordoned,
    verified=_verified,
    done=lambda task: f"done: {task_words(task)}",
)

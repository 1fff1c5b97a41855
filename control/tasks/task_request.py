"""A request for a task: refused as a whole, or a task that is not kept yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from control.tasks.broker_marks import states_of
from control.tasks.broker_task import BrokerTask, Operation
from control.tasks.demotion import ENDS, refuse_part
from control.tasks.operations import OPERATIONS, refuse_marked
from control.tasks.removal import refuse_conflicts
from control.tasks.task_files import TaskFiles
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import LEADERLESS, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What a person asks for."""

    operation: Operation
    brokers: tuple[BrokerId, ...]
    """Ascending."""
    onto: BrokerId | None = None
    """The broker that replaces them; None but for `replace`."""
    by: str
    """Who asks."""
    at_ms: int
    """Milliseconds since the epoch."""


def requested_task(
    files: TaskFiles, snapshot: Snapshot, goals: Goals, asked: TaskRequest
) -> tuple[BrokerTask, bool]:
    """The open task of this request, or one that is not kept yet; whether it is not new.

    Raises GuardrailRefused where other tasks, marks, or the state of the cluster forbid it.
    """
    cluster_id = snapshot.header.cluster_id
    tasks = files.of(cluster_id)
    wanted = (asked.operation, asked.brokers, asked.onto)
    for task in tasks:
        if task.is_open and (task.operation, task.brokers, task.onto) == wanted:
            return task, True
    task = BrokerTask.requested(
        f"{asked.operation}-new",
        cluster_id,
        asked.operation,
        asked.brokers,
        by=asked.by,
        ms=asked.at_ms,
        onto=asked.onto,
    )
    refuse_conflicts(tasks, task.named)
    _refuse_marks(files, cluster_id, tasks, asked)
    OPERATIONS[asked.operation].refuse(task, snapshot, goals)
    return task, False


def _refuse_marks(
    files: TaskFiles, cluster_id: str, tasks: Sequence[BrokerTask], asked: TaskRequest
) -> None:
    marks = files.marks(cluster_id)
    refuse_marked(marks, cluster_id, asked.brokers, OPERATIONS[asked.operation].replaces)
    if asked.operation in ENDS:
        states = states_of(marks, cluster_id)
        leaderless = [b for b, state in states.items() if state in LEADERLESS]
        refuse_part(tasks, asked.brokers, leaderless)

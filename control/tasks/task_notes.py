"""Sentences about open tasks, for commands that are not about tasks."""

from control.tasks.broker_task import BrokerTask
from control.tasks.task_files import TaskFiles


def open_task_notes(files: TaskFiles, cluster_id: str | None = None) -> list[str]:
    """Name each open task, of one cluster or of all.

    What keeps a task from being read is named instead, since the command is not about tasks.
    """
    tasks, unreadable = files.readable(cluster_id)
    return unreadable + [
        f"Task {task.task_id} is open: {task.words()}, {task.phase}. {_goes_on(task)}; plimsoll "
        f"task show {task.task_id} tells how far it is."
        for task in tasks
        if task.is_open
    ]


def _goes_on(task: BrokerTask) -> str:
    """Who continues a task without a working process."""
    by_hand = f"plimsoll task resume {task.task_id} continues it"
    if not task.approved:
        return f"None of its plans is approved yet; {by_hand}"
    if task.stopped_by:
        return f"{task.stopped_by} has stopped it; {by_hand}"
    return "Once its process has ended, --auto continues it"

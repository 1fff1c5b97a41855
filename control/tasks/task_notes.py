"""Sentences about open tasks, for commands that are not about tasks."""

from control.tasks.task_files import TaskFiles


def open_task_notes(files: TaskFiles, cluster_id: str | None = None) -> list[str]:
    """Name each open task, of one cluster or of all.

    What keeps a task from being read is named instead, since the command is not about tasks.
    """
    tasks, unreadable = files.readable()
    return unreadable + [
        f"Task {task.task_id} is open: {task.words()}, {task.phase}. It and run --auto may move "
        f"the same replicas in turn; plimsoll task show {task.task_id} tells how far it is."
        for task in tasks
        if task.is_open and cluster_id in (None, task.cluster_id)
    ]

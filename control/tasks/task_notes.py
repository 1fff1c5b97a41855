"""Sentences about open tasks, for commands that are not about tasks."""

from pathlib import Path

from control.tasks.task_files import TaskFiles
from model.errors import ConfigError


def open_task_notes(state_dir: Path, cluster_id: str | None = None) -> list[str]:
    """Name each open task of a state folder, of one cluster or of all.

    A file that cannot be read is named instead, since the command is not about tasks.
    """
    files = TaskFiles(state_dir)
    try:
        tasks = files.all()
    except ConfigError as exc:
        return [str(exc)]
    return [
        f"Task {task.task_id} is open: {task.words()}, {task.phase}. It and run --auto may move "
        f"the same replicas in turn; plimsoll task show {task.task_id} tells how far it is."
        for task in tasks
        if task.is_open and cluster_id in (None, task.cluster_id)
    ]

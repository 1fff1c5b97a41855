"""Delete tasks that are over, and name the runs that open ones need."""

import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from control.tasks.broker_marks import read_marks
from model.errors import ConfigError
from model.log_events import LogEvent, named
from model.units import count_text

if TYPE_CHECKING:
    from control.tasks.broker_task import BrokerTask
    from control.tasks.task_files import TaskFiles

_log = logging.getLogger("plimsoll.control")


def run_ids_of_open_tasks(files: "TaskFiles") -> set[str]:
    """Runs that the open tasks of a state folder name, as this host knows them."""
    found = set()
    for path in files.paths():
        with contextlib.suppress(ConfigError):
            task = files.read(path.stem)
            if task.is_open and task.progress is not None:
                found.add(task.progress.run_id)
    return found


def prune_tasks(files: "TaskFiles", most: int | None) -> list[str]:
    """Delete the oldest tasks that are over, but for `most`; return their ids. None keeps all.

    Open tasks stay, those that have marked brokers, and what cannot be read. Does nothing where
    there is an archive: the files are a mirror of it. Precondition: the folder's lock is held.
    """
    paths = files.paths()
    if most is None or files.archive is not None or len(paths) <= most:
        return []
    try:
        marking = {mark.task_id for mark in read_marks(files.state_dir)}
    except ConfigError:
        return []
    over: list[BrokerTask] = []
    for path in paths:
        with contextlib.suppress(ConfigError):
            task = files.read(path.stem)
            if not task.is_open and task.task_id not in marking:
                over.append(task)
    over.sort(key=lambda task: (task.requested_at_ms, task.task_id))
    deleted = []
    for task in over[: max(0, len(over) - most)]:
        # The task is last: what a crash leaves is then deleted next time.
        plans = files.folder.glob(f"{task.task_id}.*.plan")
        if all(map(_delete, (*plans, files.lock_path(task.task_id), files.path(task.task_id)))):
            deleted.append(task.task_id)
    if deleted:
        _log.info(
            "deleted %s that are over from %s, the last %s",
            count_text(len(deleted), "task"),
            files.folder,
            deleted[-1],
            extra=named(LogEvent.TASKS_DELETED),
        )
    return deleted


def _delete(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError as exc:
        _log.warning(
            "%s cannot be deleted: %s", path, exc.strerror, extra=named(LogEvent.TASK_FAILED)
        )
        return False
    return True

"""Delete tasks that are over, and name the runs that others need."""

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from control.tasks.broker_marks import read_marks
from executor.journal.run_journal import journal_ids, of_plans
from model.errors import ConfigError
from model.log_events import LogEvent, named
from model.units import count_text

if TYPE_CHECKING:
    from control.tasks.broker_task import BrokerTask
    from control.tasks.task_files import TaskFiles

_log = logging.getLogger("plimsoll.control")


def needed_runs(files: "TaskFiles", journal_dir: Path) -> set[str]:
    """Runs that tasks of a state folder need, as this host knows them.

    Those of open tasks, and those of demotions whose leaders are to return.
    """
    tasks = _readable(files)
    found = {t.progress.run_id for t in tasks if t.is_open and t.progress is not None}
    plans = {plan.plan_hash for task in _standing(files, tasks) for plan in task.plans}
    return found | {*of_plans(journal_ids(journal_dir), plans)}


def _readable(files: "TaskFiles") -> "list[BrokerTask]":
    """The tasks that can be read, oldest first."""
    found = []
    for path in files.paths():
        with contextlib.suppress(ConfigError):
            found.append(files.read(path.stem))
    return sorted(found, key=lambda task: (task.requested_at_ms, task.task_id))


def _standing(files: "TaskFiles", tasks: "Sequence[BrokerTask]") -> "Sequence[BrokerTask]":
    """Demotions whose leaders are to return; all tasks where the marks cannot be read."""
    # It loads the planner.
    from control.tasks.demotion import standing

    try:
        return standing(tasks, read_marks(files.state_dir))
    except ConfigError:
        return tasks


def prune_tasks(files: "TaskFiles", most: int | None) -> list[str]:
    """Delete the oldest tasks that are over, but for `most`; return their ids. None keeps all.

    Open tasks stay, those that have marked brokers, demotions whose leaders are to return, and
    what cannot be read. Does nothing where there is an archive: the files are a mirror of it.
    Precondition: the folder's lock is held.
    """
    paths = files.paths()
    if most is None or files.archive is not None or len(paths) <= most:
        return []
    try:
        marking = {mark.task_id for mark in read_marks(files.state_dir)}
    except ConfigError:
        return []
    tasks = _readable(files)
    kept = marking | {task.task_id for task in _standing(files, tasks)}
    over = [task for task in tasks if not task.is_open and task.task_id not in kept]
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

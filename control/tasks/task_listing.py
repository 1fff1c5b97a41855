"""The tasks of a cluster as a screen lists them: who works on each, and what cannot be read."""

import contextlib
from dataclasses import dataclass
from typing import Final

from control.tasks.broker_task import BrokerTask
from control.tasks.task_files import TaskFiles
from executor.journal.lease import this_process
from model.errors import ConfigError, NewerVersion, PlimsollError

OWN: Final = "this plimsoll"
"""The worker of a task that this process works on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTask:
    """One task, and the process that works on it."""

    task: BrokerTask
    worker: str = ""
    """`plimsoll 4711 on host`, or `OWN`; empty where none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableTask:
    """A file that should hold a task."""

    name: str
    """Of the file, without its folder; of an object of the archive, with that of its task."""
    reason: str
    """Why it cannot be read, and what to do."""
    newer: bool = False
    """Whether a newer plimsoll has written it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListing:
    """What is known of the tasks of one cluster."""

    tasks: tuple[ListedTask, ...] = ()
    """Open ones first, and newest first."""
    unreadable: tuple[UnreadableTask, ...] = ()
    warning: str = ""
    """Why these are the tasks that this host knows, and not those of the archive."""


def task_listing(files: TaskFiles, cluster_id: str) -> TaskListing:
    """Read the tasks of a cluster; files that cannot be read are named, of whatever cluster.

    Reads files, and objects of the archive: not for a thread that draws.
    """
    found, warning = list[ListedTask](), ""
    unreadable = list[UnreadableTask]()
    try:
        mirrored = files.mirror()
        if mirrored.away:
            warning = f"{mirrored.away}; the tasks are as {files.folder} has them"
        # The file of the same task may be intact.
        unreadable += [
            _unreadable(f"{task_id}/task.json", exc) for task_id, exc in mirrored.unreadable.items()
        ]
    except PlimsollError as exc:
        warning = str(exc)
    try:
        paths = files.paths()
    except OSError as exc:
        return TaskListing(warning=f"{files.folder} cannot be read: {exc.strerror}")
    for path in paths:
        try:
            task = files.read(path.stem)
        except ConfigError as exc:
            unreadable.append(_unreadable(path.name, exc))
            continue
        if task.cluster_id == cluster_id:
            found.append(ListedTask(task=task, worker=_worker(files, task)))
    found.sort(key=lambda of: (of.task.is_open, of.task.requested_at_ms, of.task.task_id))
    return TaskListing(tasks=tuple(reversed(found)), unreadable=tuple(unreadable), warning=warning)


def _unreadable(name: str, exc: ConfigError) -> UnreadableTask:
    return UnreadableTask(name=name, reason=str(exc), newer=isinstance(exc, NewerVersion))


def _worker(files: TaskFiles, task: BrokerTask) -> str:
    """Who works on a task; nobody is known to where the folder is not writable."""
    worker = ""
    if task.is_open:
        with contextlib.suppress(PlimsollError):
            worker = files.worker_of(task.task_id)
    return OWN if worker == this_process() else worker

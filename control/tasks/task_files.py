"""The files of tasks: one per task and one per plan, in `tasks/` in the state folder.

Each is replaced in one step and has a checksum. `<task id>.lock` is held by the process that
works on the task; a short lock orders changes of its file, so that a task may be cancelled
while it is worked on.

With an archive, the bucket is written first, and the files are a mirror of it: a task is read from
there before it is changed, and written there only if it is still the same.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.tasks import broker_marks
from control.tasks.broker_marks import BrokerMark, mirror_marks, read_marks
from control.tasks.broker_task import KIND, BrokerTask, Operation, TaskPhase
from control.tasks.sealed_files import locked, read_sealed
from control.tasks.task_hold import FREE, TaskHold
from control.tasks.task_retention import prune_tasks
from executor.journal.lease import this_process
from model.errors import (
    ArchiveUnreachable,
    ConfigError,
    GuardrailRefused,
    PlimsollError,
    RightsMissing,
)
from model.files import replace_file, validate_document, write_document
from model.ids import BrokerId
from model.log_events import LogEvent, named
from model.paths import path_part
from model.plan.plan import Plan, read_plan

if TYPE_CHECKING:
    from control.tasks.task_archive import TaskArchive, TaskEntry

FOLDER: Final = "tasks"
_NAMED: Final = 4
"""Brokers in the id of a task."""

_TRIES: Final = 20
"""Attempts at a change that other processes' changes overtake."""

_LOCK_TRIES: Final = 10
_LOCK_EVERY_S: Final = 0.02
"""Attempts at the lock of a task, and the time between them."""
_MOST_NAME: Final = 200
"""Characters of the name of a process."""

_ELSEWHERE: Final = (
    "a task lies in the state folder that it was requested in, with its plans and approvals, "
    "so set state_dir to that folder, or request the task again"
)
_NOT_ARCHIVED: Final = "a task requested without the archive lies in its state folder alone"

Marks = tuple[BrokerMark, ...]


class UnknownTask(ConfigError):
    """No task has this id."""


class AmbiguousTask(UnknownTask):
    """Several tasks have ids that begin so."""


_log = logging.getLogger("plimsoll.control")


class TaskCancelled(GuardrailRefused):
    """The task was cancelled while it was worked on."""


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest state of a task."""

    task: BrokerTask
    etag: str
    """Of the same state in the archive; empty without one, and where it is not archived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """What could not be brought from the archive."""

    away: str = ""
    """Why the archive cannot be reached; empty where it can."""
    unreadable: dict[str, ConfigError] = field(default_factory=dict)
    """Why tasks cannot be read there, by their ids."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The tasks of a state folder, and of the archive where there is one.

    What changes a task raises as `Bucket` does, before anything is changed.
    """

    state_dir: Path
    archive: "TaskArchive | None" = None
    most_over: int | None = field(default=None, kw_only=True)
    """Tasks that are over and are kept, unless there is an archive; None for all."""

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self.state_dir / FOLDER

    def path(self, task_id: str) -> Path:
        """The file of a task."""
        return self.folder / f"{task_id}.json"

    def lock_path(self, task_id: str) -> Path:
        """The file that whoever works on a task has locked."""
        return self.folder / f".{task_id}.lock"

    def plan_path(self, task_id: str, plan_hash: str) -> Path:
        """The sealed plan of a task."""
        return self.folder / f"{task_id}.{plan_hash[:12]}.plan"

    def paths(self) -> list[Path]:
        """The files of all tasks, in the order of their names."""
        return sorted(self.folder.glob("*.json"))

    def all(self) -> list[BrokerTask]:
        """Read all tasks, of any cluster, oldest first. Raises as `read`.

        While the archive is away, those that this host knows, with a warning.
        """
        for error in self._mirror_all().values():
            raise error
        return _oldest_first(self.read(path.stem) for path in self.paths())

    def readable(self, cluster_id: str | None = None) -> tuple[list[BrokerTask], list[str]]:
        """The tasks as `all`, without those that cannot be read; and why those cannot.

        cluster_id: of one cluster alone; None for all. Files that cannot be read may be of any.
        """
        tasks, why = list[BrokerTask](), list[str]()
        try:
            why += map(str, self._mirror_all().values())
        except PlimsollError as exc:
            why.append(str(exc))
        for path in self.paths():
            try:
                tasks.append(self.read(path.stem))
            except ConfigError as exc:
                why.append(str(exc))
        found = (task for task in tasks if cluster_id in (None, task.cluster_id))
        return _oldest_first(found), why

    def of(self, cluster_id: str) -> list[BrokerTask]:
        """Read the tasks of a cluster, oldest first. Raises as `read`."""
        return [task for task in self.all() if task.cluster_id == cluster_id]

    def read(self, task_id: str) -> BrokerTask:
        """Read one task as this host knows it.

        Raises ConfigError: there is none, or its file is damaged, edited, or of a newer plimsoll.
        """
        path = self.path(task_id)
        document = read_sealed(path, KIND, "request the task again")
        task = validate_document(BrokerTask, document, path)
        if task.task_id != task_id:
            raise ConfigError(
                f"{path} holds the task {task.task_id}; give the file its own name again"
            )
        return task

    def named(self, prefix: str) -> BrokerTask:
        """Read the task whose id is, or begins with, `prefix`.

        Raises UnknownTask where no task does, or several do, and ConfigError where it cannot be
        read. While the archive is away, as `all`.
        """
        unreadable = self._mirror_all()
        ids = sorted({*unreadable, *(path.stem for path in self.paths())})
        found = [i for i in ids if i == prefix] or [i for i in ids if i.startswith(prefix)]
        if len(found) == 1:
            if error := unreadable.get(found[0]):
                raise error
            return self.read(found[0])
        if found:
            raise AmbiguousTask(
                f"{len(found)} tasks begin with {prefix!r}: {', '.join(found[:_NAMED])}; type "
                "more characters"
            )
        hint = _ELSEWHERE if self.archive is None else _NOT_ARCHIVED
        also = "" if self.archive is None else f" with the archive {self.archive.where}"
        known = f"known: {', '.join(ids[-_NAMED:])}" if ids else f"it holds none; {hint}"
        raise UnknownTask(f"{self.folder}{also} has no task {prefix!r}; {known}")

    def add(
        self,
        cluster_id: str,
        operation: Operation,
        brokers: tuple[BrokerId, ...],
        by: str,
        ms: int,
        onto: BrokerId | None = None,
    ) -> BrokerTask:
        """Write a new task on brokers, requested at `ms` (since the epoch); raises as `store`."""
        task = BrokerTask.requested(
            f"{operation}-new", cluster_id, operation, brokers, by=by, ms=ms, onto=onto
        )
        return self.store(task)

    def store(self, requested: BrokerTask) -> BrokerTask:
        """Write a new task under an id of its own.

        Raises ConfigError where it cannot be written.
        """
        archive, ms = self.archive, requested.requested_at_ms
        taken = {entry.task_id for entry in archive.entries()} if archive is not None else set()
        with self._changing():
            while True:
                task_id = self._new_id(requested.operation, requested.brokers, ms, taken)
                task = requested.model_copy(update={"task_id": task_id}).sealed()
                if archive is None or archive.put_task(task, ""):
                    self._write(task)
                    prune_tasks(self, self.most_over)
                    return task
                taken.add(task.task_id)

    def newest(self, task_id: str) -> BrokerTask:
        """Read a task that this host knows, from the archive where there is one.

        A task that was not archived is. Raises as `change`, but for TaskCancelled.
        """
        with self._changing():
            return self._newest(task_id).task

    def known(self, cluster_id: str, task_id: str) -> BrokerTask | None:
        """The newest state of a task, whether or not this host knows it; None where none does."""
        with self._changing():
            if self.archive is not None:
                self._mirror(self.archive, path_part(cluster_id), task_id)
            if not self.path(task_id).exists():
                return None
            found = self.read(task_id)
            return found if found.cluster_id == cluster_id else None

    def change(
        self,
        task_id: str,
        change: Callable[[BrokerTask], BrokerTask],
        hold: TaskHold = FREE,
        *,
        patient: bool = False,
    ) -> BrokerTask:
        """Change a task in one step; write only where it differs.

        hold: the worker's. patient: wait a while for an archive that is away. Raises TaskCancelled
        where someone cancelled it, WriterBarred where another worker has taken it over, and
        ConfigError as `read` does or where it cannot be written.
        """

        def once() -> BrokerTask:
            return self._change(task_id, change, hold)

        return hold.patiently(once) if patient else once()

    def _change(
        self, task_id: str, change: Callable[[BrokerTask], BrokerTask], hold: TaskHold
    ) -> BrokerTask:
        for _ in range(_TRIES):
            hold.need()
            with self._changing():
                before = self._newest(task_id)
                if before.task.phase is TaskPhase.CANCELLED:
                    raise TaskCancelled(f"task {task_id} was cancelled: {before.task.note}")
                after = change(before.task).sealed()
                if after == before.task:
                    return after
                # Reading may have taken as long as the lease lasts.
                hold.need()
                if self.archive is None or self.archive.put_task(after, before.etag):
                    self._write(after)
                    return after
        raise ArchiveUnreachable(f"Other processes keep changing task {task_id}; try again.")

    # ---- marks

    def marks(self, cluster_id: str) -> Marks:
        """The marks of a cluster; while the archive is away, those that this host knows.

        Raises ConfigError where they cannot be trusted.
        """
        try:
            self.mirror_marks(cluster_id)
        except ArchiveUnreachable as exc:
            _log.warning(
                "%s; the marks in %s hold", exc, self.state_dir, extra=named(LogEvent.TASK_FAILED)
            )
        return _own(read_marks(self.state_dir), cluster_id)

    def mirror_marks(self, cluster_id: str) -> None:
        """Bring the marks of a cluster from the archive into the file; raises as `Bucket`."""
        if self.archive is None:
            return
        found, _ = self.archive.marks(cluster_id)
        if found is not None:
            mirror_marks(self.state_dir, cluster_id, found)

    def change_marks(
        self,
        cluster_id: str,
        change: Callable[[Marks], Marks],
        hold: TaskHold = FREE,
        *,
        patient: bool = False,
    ) -> Marks:
        """Change the marks of a cluster in one step; return them.

        hold, patient: as for `change`. `change` may be called again when others are faster, and
        what it raises ends the call, with nothing changed.
        """

        def once() -> Marks:
            return self._change_marks(cluster_id, change, hold)

        return hold.patiently(once) if patient else once()

    def _change_marks(
        self, cluster_id: str, change: Callable[[Marks], Marks], hold: TaskHold
    ) -> Marks:
        archive = self.archive
        if archive is None:
            hold.need()
            changed = broker_marks.change_marks(self.state_dir, change)
            return _own(changed, cluster_id)
        for _ in range(_TRIES):
            hold.need()
            there, etag = archive.marks(cluster_id)
            # An archive that was configured later begins with what this host has.
            before = _own(read_marks(self.state_dir), cluster_id) if there is None else there
            after = change(before)
            if after != (there or ()):
                hold.need()
                if not archive.put_marks(cluster_id, after, etag):
                    continue
            mirror_marks(self.state_dir, cluster_id, after)
            return after
        raise ArchiveUnreachable("Other processes keep changing the marks of brokers; try again.")

    def fetch_cordons(self, journal_dir: Path, cluster_id: str) -> None:
        """Bring the journals of the cordons that other hosts have set or ended, of any age.

        Raises as `Bucket`, and ConfigError where they cannot be read or written.
        """
        if self.archive is not None:
            self.archive.fetch_cordons(journal_dir, cluster_id)

    # ---- cancelling and plans

    def is_cancelled(self, task_id: str) -> bool:
        """Whether this host knows that a task was cancelled; an unreadable file was not."""
        with contextlib.suppress(ConfigError):
            return self.read(task_id).phase is TaskPhase.CANCELLED
        return False

    def keep_plan(self, task: BrokerTask, plan: Plan, hold: TaskHold = FREE) -> None:
        """Write a plan beside its task. Raises ConfigError where it cannot be written.

        hold: the worker's; waits a while for an archive that is away.
        """
        archive = self.archive
        if archive is not None:

            def put() -> None:
                hold.need()
                archive.put_plan(task, plan)

            hold.patiently(put)
        path = self.plan_path(task.task_id, plan.hash)
        write_document(path, plan.model_dump(mode="json"), private=True)

    def read_plan(self, task: BrokerTask, plan_hash: str) -> Plan:
        """Read a plan of a task.

        Raises ConfigError: it is missing, damaged, or not the one that the task names.
        """
        path = self.plan_path(task.task_id, plan_hash)
        try:
            plan = read_plan(path)
        except ConfigError as exc:
            if self.archive is None:
                raise
            try:
                plan = _downloaded(self.archive.plan(task, plan_hash), path)
            except ConfigError as missing:
                raise (exc if path.exists() else missing) from exc
        if plan.hash != plan_hash or plan.cluster_id != task.cluster_id:
            raise ConfigError(
                f"{path} is not the plan of task {task.task_id}; cancel the task and request it "
                "again"
            )
        return plan

    @contextlib.contextmanager
    def working_on(self, task_id: str) -> Iterator[TaskHold]:
        """Keep other processes from working on a task; gives what its changes need.

        Without an archive, those of this machine. Raises GuardrailRefused where one does.
        """
        with contextlib.ExitStack() as held:
            lock = held.enter_context(self._alone_here(task_id, _LOCK_TRIES))
            # For whoever asks who works on it; a full disk may take that away.
            with contextlib.suppress(OSError):
                lock.write_text(this_process(), encoding="utf-8")
            if self.archive is None:
                yield FREE
            else:
                yield held.enter_context(self.archive.working_on(self.read(task_id)))

    @contextlib.contextmanager
    def _alone_here(self, task_id: str, tries: int = 1) -> Iterator[Path]:
        """Hold the lock of a task; gives its file.

        tries: attempts, since whoever asks who works on the task holds it for a moment.
        """
        lock = self.lock_path(task_id)
        with contextlib.ExitStack() as held:
            for left in reversed(range(tries)):
                try:
                    held.enter_context(locked(lock, wait=False))
                    break
                except BlockingIOError:
                    if left:
                        time.sleep(_LOCK_EVERY_S)
                        continue
                    raise GuardrailRefused(
                        f"another plimsoll works on task {task_id}; wait until it ends, or cancel "
                        f"the task with plimsoll task cancel {task_id}"
                    ) from None
            yield lock

    def is_worked_on(self, task_id: str) -> bool:
        """Whether a process works on a task: of this machine, or as the archive has it."""
        return bool(self.worker_of(task_id))

    def worker_of(self, task_id: str) -> str:
        """The process that works on a task, `plimsoll 4711 on host`; empty where none does."""
        try:
            with self._alone_here(task_id):
                pass
        except GuardrailRefused:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                named = self.lock_path(task_id).read_text(encoding="utf-8")
                if len(named) <= _MOST_NAME and named.isprintable() and named:
                    return named
            return "plimsoll on this host"
        if self.archive is None:
            return ""
        with contextlib.suppress(ArchiveUnreachable):
            return self.archive.worker_of(self.read(task_id))
        return ""

    # ---- the archive

    def _newest(self, task_id: str) -> _Newest:
        """The newest state of a task, which the archive then has, too."""
        archive, here = self.archive, self.read(task_id)
        if archive is None:
            return _Newest(here, "")
        for _ in range(_TRIES):
            there, etag = archive.task(path_part(here.cluster_id), task_id)
            if there is not None and not here.continues(there):
                if here != there:
                    self._write(there)
                return _Newest(there, etag)
            self._archive_plans(archive, here)
            archive.put_task(here, etag)
        raise ArchiveUnreachable(f"Other processes keep changing task {task_id}; try again.")

    def _archive_plans(self, archive: "TaskArchive", task: BrokerTask) -> None:
        """Archive the plan that a task made without the archive works on, if it can be read."""
        if task.plan is None or not self.plan_path(task.task_id, task.plan.plan_hash).exists():
            return
        try:
            plan = self.read_plan(task, task.plan.plan_hash)
        except ConfigError as exc:
            # Whoever resumes the task is refused; it can be shown and cancelled all the same.
            _log.warning(
                "the plan of task %s is not archived: %s",
                task.task_id,
                exc,
                extra=named(LogEvent.TASK_FAILED),
            )
            return
        archive.put_plan(task, plan)

    def _mirror_all(self) -> dict[str, ConfigError]:
        """As `mirror`, with a warning while the archive is away; the tasks unreadable there."""
        found = self.mirror()
        if found.away:
            _log.warning(
                "%s; the tasks are as %s has them",
                found.away,
                self.folder,
                extra=named(LogEvent.TASK_FAILED),
            )
        return found.unreadable

    def mirror(self) -> Mirrored:
        """Bring the tasks of the archive here, and open ones that it lacks there.

        Returns what kept it from that. Raises as `Bucket` does otherwise.
        """
        archive, unreadable = self.archive, dict[str, ConfigError]()
        if archive is None:
            return Mirrored()
        try:
            entries = archive.entries()
            for entry in entries:
                if self._is_over_here(entry):
                    continue
                try:
                    with self._changing():
                        self._mirror(archive, entry.folder, entry.task_id)
                except ConfigError as exc:
                    unreadable[entry.task_id] = exc
            self._archive_missing({entry.task_id for entry in entries})
        except ArchiveUnreachable as exc:
            return Mirrored(away=str(exc), unreadable=unreadable)
        return Mirrored(unreadable=unreadable)

    def _mirror(self, archive: "TaskArchive", folder: str, task_id: str) -> None:
        """Bring the newer state of a task to where the older one is."""
        here = self._readable(task_id)
        if here is not None and path_part(here.cluster_id) != folder:
            _log.warning(
                "%s has a task %s of another cluster, so that of the archive is left out; set "
                "state_dir to a folder of its own",
                self.folder,
                task_id,
                extra=named(LogEvent.TASK_FAILED),
            )
            return
        there, _ = archive.task(folder, task_id)
        if there is None or here == there:
            return
        if here is None or not here.continues(there):
            self._write(there)
            return
        with _warned(here):
            self._newest(task_id)

    def _archive_missing(self, archived: set[str]) -> None:
        for path in self.paths():
            task = self._readable(path.stem) if path.stem not in archived else None
            if task is not None and task.is_open:
                with self._changing(), _warned(task):
                    self._newest(task.task_id)

    def _is_over_here(self, entry: "TaskEntry") -> bool:
        """Whether a task is over, and archived as it is here, so that nothing changes it."""
        task = self._readable(entry.task_id)
        if task is None or task.is_open:
            return False
        return self.path(entry.task_id).stat().st_size == entry.size

    def _readable(self, task_id: str) -> BrokerTask | None:
        """A task as this host has it; None where it has none, or none that can be trusted."""
        with contextlib.suppress(ConfigError):
            return self.read(task_id)
        return None

    def _changing(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.folder / ".lock")

    def _write(self, task: BrokerTask) -> None:
        write_document(self.path(task.task_id), task.model_dump(mode="json"), private=True)

    def _new_id(
        self, operation: Operation, brokers: tuple[BrokerId, ...], ms: int, taken: Collection[str]
    ) -> str:
        """`remove-4-20261127T051500`; a number follows where that is taken."""
        named = "-".join(map(str, brokers[:_NAMED]))
        more = f"-and-{len(brokers) - _NAMED}" if len(brokers) > _NAMED else ""
        stamp = datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y%m%dT%H%M%S")
        first = "-".join(filter(None, (str(operation), f"{named}{more}", stamp)))
        found, number = first, 1
        while found in taken or self.path(found).exists():
            number += 1
            found = f"{first}-{number}"
        return found


def _oldest_first(tasks: Iterable[BrokerTask]) -> list[BrokerTask]:
    return sorted(tasks, key=lambda task: (task.requested_at_ms, task.task_id))


def _own(marks: Marks, cluster_id: str) -> Marks:
    return tuple(mark for mark in marks if mark.cluster_id == cluster_id)


def _downloaded(body: bytes, path: Path) -> Plan:
    """Write a plan from the archive to its file, and read it.

    Raises ConfigError where it cannot be written, or is not a plan.
    """
    try:
        replace_file(path, body)
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc
    return read_plan(path)


@contextlib.contextmanager
def _warned(task: BrokerTask) -> Iterator[None]:
    """Warn where the archive cannot be written, so that tasks can be listed all the same."""
    try:
        yield
    except RightsMissing as exc:
        _log.warning(
            "task %s is not archived: %s", task.task_id, exc, extra=named(LogEvent.TASK_FAILED)
        )

"""The files of tasks: one per task and one per plan, in `tasks/` in the state folder.

Each is replaced in one step and has a checksum. `<task id>.lock` is held by the process that
works on the task; a short lock orders changes of its file, so that a task may be cancelled
while it is worked on.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from control.tasks.broker_task import KIND, BrokerTask, Operation, PhaseChange, TaskPhase
from control.tasks.sealed_files import locked, read_sealed
from model.errors import ConfigError, GuardrailRefused
from model.files import validate_document, write_document
from model.ids import BrokerId
from model.plan.plan import Plan, read_plan

FOLDER: Final = "tasks"
_NAMED: Final = 4
"""Brokers in the id of a task."""

_ELSEWHERE: Final = (
    "a task lies in the state folder that it was requested in, with its plans and approvals, "
    "so set state_dir to that folder, or request the task again"
)


class TaskCancelled(GuardrailRefused):
    """The task was cancelled while it was worked on."""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The tasks of a state folder."""

    state_dir: Path

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self.state_dir / FOLDER

    def path(self, task_id: str) -> Path:
        """The file of a task."""
        return self.folder / f"{task_id}.json"

    def plan_path(self, task_id: str, plan_hash: str) -> Path:
        """The sealed plan of a task."""
        return self.folder / f"{task_id}.{plan_hash[:12]}.plan"

    def paths(self) -> list[Path]:
        """The files of all tasks, in the order of their names."""
        return sorted(self.folder.glob("*.json"))

    def all(self) -> list[BrokerTask]:
        """Read all tasks, of any cluster, oldest first. Raises as `read`."""
        found = [self.read(path.stem) for path in self.paths()]
        return sorted(found, key=lambda task: (task.requested_at_ms, task.task_id))

    def of(self, cluster_id: str) -> list[BrokerTask]:
        """Read the tasks of a cluster, oldest first. Raises as `read`."""
        return [task for task in self.all() if task.cluster_id == cluster_id]

    def read(self, task_id: str) -> BrokerTask:
        """Read one task.

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

        Raises ConfigError: no task does, or several do.
        """
        ids = [path.stem for path in self.paths()]
        found = [i for i in ids if i == prefix] or [i for i in ids if i.startswith(prefix)]
        if len(found) == 1:
            return self.read(found[0])
        if found:
            raise ConfigError(
                f"{len(found)} tasks begin with {prefix!r}: {', '.join(found[:_NAMED])}; type "
                "more characters"
            )
        known = f"known: {', '.join(ids[-_NAMED:])}" if ids else f"it holds none; {_ELSEWHERE}"
        raise ConfigError(f"{self.folder} has no task {prefix!r}; {known}")

    def add(
        self,
        cluster_id: str,
        operation: Operation,
        brokers: tuple[BrokerId, ...],
        by: str,
        ms: int,
        onto: BrokerId | None = None,
    ) -> BrokerTask:
        """Write a new task that was requested at `ms`, milliseconds since the epoch.

        Raises ConfigError where it cannot be written.
        """
        with self._changing():
            task = BrokerTask(
                task_id=self._new_id(operation, brokers, ms),
                cluster_id=cluster_id,
                operation=operation,
                brokers=brokers,
                onto=onto,
                by=by,
                phases=(PhaseChange(phase=TaskPhase.REQUESTED, at_ms=ms, note=f"by {by}"),),
            ).sealed()
            self._write(task)
            return task

    def change(self, task_id: str, change: Callable[[BrokerTask], BrokerTask]) -> BrokerTask:
        """Change a task in one step; write only where it differs.

        Raises TaskCancelled where someone cancelled it, and ConfigError as `read` does or
        where it cannot be written.
        """
        with self._changing():
            before = self.read(task_id)
            if before.phase is TaskPhase.CANCELLED:
                raise TaskCancelled(f"task {task_id} was cancelled: {before.note}")
            after = change(before).sealed()
            if after != before:
                self._write(after)
            return after

    def is_cancelled(self, task_id: str) -> bool:
        """Whether a task was cancelled; an unreadable file was not."""
        with contextlib.suppress(ConfigError):
            return self.read(task_id).phase is TaskPhase.CANCELLED
        return False

    def keep_plan(self, task_id: str, plan: Plan) -> None:
        """Write a plan beside its task. Raises ConfigError where it cannot be written."""
        path = self.plan_path(task_id, plan.hash)
        write_document(path, plan.model_dump(mode="json"), private=True)

    def read_plan(self, task: BrokerTask, plan_hash: str) -> Plan:
        """Read a plan of a task.

        Raises ConfigError: it is missing, damaged, or not the one that the task names.
        """
        path = self.plan_path(task.task_id, plan_hash)
        plan = read_plan(path)
        if plan.hash != plan_hash or plan.cluster_id != task.cluster_id:
            raise ConfigError(
                f"{path} is not the plan of task {task.task_id}; cancel the task and request it "
                "again"
            )
        return plan

    @contextlib.contextmanager
    def working_on(self, task_id: str) -> Iterator[None]:
        """Keep other processes of this machine from working on a task.

        Raises GuardrailRefused where one does.
        """
        try:
            held = contextlib.ExitStack()
            held.enter_context(locked(self.folder / f".{task_id}.lock", wait=False))
        except BlockingIOError:
            raise GuardrailRefused(
                f"another plimsoll works on task {task_id}; wait until it ends, or cancel the "
                f"task with plimsoll task cancel {task_id}"
            ) from None
        with held:
            yield

    def is_worked_on(self, task_id: str) -> bool:
        """Whether a process of this machine works on a task."""
        try:
            with self.working_on(task_id):
                return False
        except GuardrailRefused:
            return True

    def _changing(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.folder / ".lock")

    def _write(self, task: BrokerTask) -> None:
        write_document(self.path(task.task_id), task.model_dump(mode="json"), private=True)

    def _new_id(self, operation: Operation, brokers: tuple[BrokerId, ...], ms: int) -> str:
        """`remove-4-20261127T051500`; a number follows where that is taken."""
        named = "-".join(map(str, brokers[:_NAMED]))
        more = f"-and-{len(brokers) - _NAMED}" if len(brokers) > _NAMED else ""
        stamp = datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y%m%dT%H%M%S")
        first = f"{operation}-{named}{more}-{stamp}"
        found, number = first, 1
        while self.path(found).exists():
            number += 1
            found = f"{first}-{number}"
        return found

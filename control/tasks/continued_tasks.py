"""Tasks that `--auto` continues: a person has approved them, and no process works on them."""

import contextlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from control.loop.dependencies import TaskSite, WorkInterrupted
from control.planning.backoff import Backoff
from control.tasks.broker_task import BrokerTask
from control.tasks.task_files import TaskFiles
from control.tasks.task_parts import Solve, TaskExecutor, TaskParts
from control.tasks.task_runner import TaskRunner
from executor.run.operator_control import Steering
from model.errors import GuardrailRefused
from model.goals.goals import Goals
from model.plan.plan import Plan

FIRST_RETRY_S: Final = 60.0
"""Time after which a task that failed is tried again; doubles with each further failure."""
MOST_RETRY_S: Final = 3600.0


@dataclass(kw_only=True)
class ContinuedTasks:
    """Finds the next task to continue, and works on it."""

    files: TaskFiles
    connect: Callable[[], contextlib.AbstractContextManager[TaskExecutor]]
    """Opens the only object that changes the cluster."""
    journal_dir: Path
    solve: Solve
    goals: Goals
    clock: Callable[[], float]
    """Seconds since the epoch."""
    steady: Callable[[], float]
    """Seconds of a clock that is never set."""
    barred: str = ""
    """Why no task may be worked on; empty where they may."""
    _failures: dict[str, Backoff] = field(default_factory=dict, init=False)

    def next(self, cluster_id: str) -> "ContinuedTask | None":
        """The oldest open task of the cluster that may be continued now; None without one.

        Left alone are tasks that no person has approved yet, that a person has stopped, that a
        process works on, and that have failed just now. Files that cannot be read are skipped:
        commands name them. Raises GuardrailRefused where there is one and tasks are barred.
        """
        tasks, _ = self.files.readable(cluster_id)
        now_s = self.steady()
        for task in tasks:
            mine = task.is_open and task.approved
            failed = self._failures.get(task.task_id)
            if not mine or task.stopped_by or (failed is not None and failed.left_s(now_s) > 0):
                continue
            if not self.files.is_worked_on(task.task_id):
                self.refuse_barred(f"task {task.task_id} ({task.words()}) is not continued: ")
                return ContinuedTask(self, task)
        return None

    def refuse_barred(self, about: str = "") -> None:
        """Raise GuardrailRefused where tasks are barred; about: what comes before the reason."""
        if self.barred:
            raise GuardrailRefused(f"{about}{self.barred}")

    def work(
        self,
        task: BrokerTask,
        site: TaskSite,
        approve: Callable[[BrokerTask, Plan], str],
        operator: str = "",
    ) -> str:
        """Work on a task; how it ended, in words. Raises PlimsollError.

        approve, operator: as in `TaskParts`.
        """
        with self.connect() as executor:
            parts = self.parts(executor, site, approve, operator)
            try:
                task = TaskRunner(task, parts, site.snapshot).run()
            except WorkInterrupted:
                task = self._interrupted(task.task_id, site.steering, operator)
            except Exception:
                # Also an error of plimsoll's own, which would come again at once.
                before = self._failures.get(task.task_id)
                usual = Backoff(first_s=FIRST_RETRY_S, most_s=MOST_RETRY_S)
                self._failures[task.task_id] = (before or usual).again(self.steady())
                raise
        self._failures.pop(task.task_id, None)
        note = f": {task.note}" if task.note else ""
        return f"task {task.task_id} is {task.phase}{note}"

    def _interrupted(self, task_id: str, steering: Steering, operator: str) -> BrokerTask:
        """The task whose work ended between two runs; notes who stopped it, if anyone has."""
        by = operator or steering.stopped_by
        if not by or steering.leaving or not steering.stopping.is_set():
            return self.files.read(task_id)
        return self.files.change(task_id, lambda t: t.model_copy(update={"stopped_by": by}))

    def parts(
        self,
        executor: TaskExecutor,
        site: TaskSite,
        approve: Callable[[BrokerTask, Plan], str],
        operator: str = "",
    ) -> TaskParts:
        """What a task is worked on with; approve, operator: as there."""
        return TaskParts(
            files=self.files,
            executor=executor,
            journal_dir=self.journal_dir,
            observe=site.observe,
            solve=self.solve,
            goals=self.goals,
            approve=approve,
            say=site.say,
            watch=site.watch,
            steered=lambda: nullcontext(site.steering),
            moves_in_flight=site.moves_in_flight,
            now_ms=self.now_ms,
            operator=operator,
            planned=site.planned,
        )

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(1000 * self.clock())


def approver(task: BrokerTask) -> str:
    """Who approved the first plan of a task."""
    return next(plan.approved_by for plan in task.plans if plan.approved_at_ms is not None)


@dataclass(frozen=True, slots=True)
class ContinuedTask:
    """One task to continue."""

    tasks: ContinuedTasks
    task: BrokerTask

    @property
    def title(self) -> str:
        """The task in words: `task remove-1 (remove broker 4)`."""
        return f"task {self.task.task_id} ({self.task.words()})"

    @property
    def by(self) -> str:
        """Who approved it."""
        return approver(self.task)

    def work(self, site: TaskSite) -> str:
        """Work on it to its end; how it ended, in words. Raises PlimsollError."""
        # Whoever approved the first plan approved the request.
        return self.tasks.work(self.task, site, lambda of, _plan: approver(of))

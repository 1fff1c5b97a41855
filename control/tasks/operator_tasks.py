"""What a person at a screen does about tasks: list, cancel and resume them."""

from dataclasses import dataclass

from control.loop.dependencies import TaskSite
from control.tasks import task_runner
from control.tasks.broker_task import BrokerTask
from control.tasks.continued_tasks import ContinuedTasks, approver
from control.tasks.task_files import TaskFiles
from control.tasks.task_listing import TaskListing, task_listing
from model.errors import ConfigError, GuardrailRefused
from model.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class OperatorTasks:
    """The tasks of one state folder, for a person; not for a thread that draws."""

    continued: ContinuedTasks
    """Works on them."""

    @property
    def _files(self) -> TaskFiles:
        return self.continued.files

    def listing(self, cluster_id: str) -> TaskListing:
        """Read the tasks of a cluster."""
        return task_listing(self._files, cluster_id)

    def cancel(self, task_id: str, by: str) -> None:
        """Cancel an open task: a run of it stops, and what has moved stays.

        Raises ConfigError where it is over, and as `TaskFiles.change`.
        """
        now_ms = int(1000 * self.continued.clock())
        task_runner.cancel(self._files, self._files.read(task_id), by, now_ms)

    def waiting_plan(self, task_id: str) -> Plan | None:
        """The plan of a task that waits for its approval, if one does.

        Raises ConfigError where it cannot be read.
        """
        task = self._files.newest(task_id)
        plan = task.plan
        if plan is None or plan.approved_at_ms is not None:
            return None
        return self._files.read_plan(task, plan.plan_hash)

    def resumed(self, task_id: str, by: str, approved: str = "") -> "ResumedTask":
        """A task to be worked on because a person asks for it.

        approved: the hash of the plan that the person approves; empty for none. Raises ConfigError
        where the task is over, and GuardrailRefused where a process works on it.
        """
        task = self._files.newest(task_id)
        if not task.is_open:
            raise ConfigError(f"task {task_id} is {task.phase}; nothing is left to resume")
        if worker := self._files.worker_of(task_id):
            raise GuardrailRefused(
                f"{worker} works on task {task_id}; wait until it ends, or cancel the task"
            )
        return ResumedTask(tasks=self.continued, task=task, by=by, approved=approved)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedTask:
    """One task that a person resumes."""

    tasks: ContinuedTasks
    task: BrokerTask
    by: str
    """Who resumes it."""
    approved: str
    """The hash of the plan that this person approves; empty for none."""

    @property
    def title(self) -> str:
        """The task in words: `task remove-1 (remove broker 4)`."""
        return f"task {self.task.task_id} ({self.task.words()})"

    def work(self, site: TaskSite) -> str:
        """Work on it to its end; how it ended, in words. Raises PlimsollError."""
        return self.tasks.work(self.task, site, self._approve, operator=self.by)

    def _approve(self, task: BrokerTask, plan: Plan) -> str:
        """Whoever approved the first plan approved the request; no other plan is approved."""
        if task.approved:
            return approver(task)
        return self.by if plan.hash == self.approved else ""

"""How far a task is, who works on it, and why it waits."""

from dataclasses import dataclass
from typing import Final

from control.tasks.broker_task import BrokerTask, TaskPhase
from control.tasks.task_listing import ListedTask
from model.run import MoveState, RunProgress
from tui.screen_state import Moment
from tui.viewmodel.cells import Role
from tui.viewmodel.run.progress import bytes_copied

PHASE_ROLES: Final = {
    TaskPhase.MOVING: Role.STRONG,
    TaskPhase.PLANNED: Role.UNDER,
    TaskPhase.VERIFIED: Role.GOOD,
    TaskPhase.DONE: Role.GOOD,
    TaskPhase.CANCELLED: Role.MUTED,
    TaskPhase.FAILED: Role.ALARM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HowFar:
    """How far the run of a task's newest plan is."""

    moves_done: int
    moves: int
    bytes_copied: int
    bytes_to_copy: int | None
    """None where sizes are unknown."""
    seconds_left: float | None
    """None where that is unknown, or no process works on the task."""
    at_ms: int

    @property
    def share(self) -> float:
        """The share that is done, by bytes, or by moves if none are copied."""
        if self.bytes_to_copy:
            return min(1.0, self.bytes_copied / self.bytes_to_copy)
        return self.moves_done / max(1, self.moves)

    @property
    def bytes_left(self) -> int | None:
        """Bytes still to copy; None where sizes are unknown."""
        if self.bytes_to_copy is None:
            return None
        # The log grows while it is copied.
        return max(0, self.bytes_to_copy - self.bytes_copied)


def how_far(of: ListedTask, moment: Moment) -> HowFar | None:
    """How far an open task is; None before its run begins, and once it has ended.

    From the run in progress if that is the task's, which is newer than what its file has.
    """
    task, run = of.task, moment.view.run
    plan = task.plan
    if not task.is_open:
        return None
    if run is not None and plan is not None and moment.running and run.plan_hash == plan.plan_hash:
        return _of_run(run, plan.bytes_to_copy, moment.now_ms)
    found = task.progress
    if found is None or plan is None:
        return None
    return HowFar(
        moves_done=found.moves_done,
        moves=found.moves,
        bytes_copied=found.bytes_copied,
        bytes_to_copy=found.bytes_to_copy,
        seconds_left=found.seconds_left if of.worker else None,
        at_ms=found.at_ms,
    )


def _of_run(run: RunProgress, bytes_to_copy: int | None, now_ms: int) -> HowFar:
    return HowFar(
        moves_done=run.count(MoveState.DONE),
        moves=len(run.moves),
        bytes_copied=bytes_copied(run),
        bytes_to_copy=bytes_to_copy,
        seconds_left=run.left_s,
        at_ms=now_ms,
    )


def phase_text(task: BrokerTask) -> str:
    """The phase in a word; a run that someone stopped is not moving."""
    return "stopped" if is_stopped(task) else str(task.phase)


def is_stopped(task: BrokerTask) -> bool:
    """Whether a person has stopped its run."""
    return task.phase is TaskPhase.MOVING and bool(task.stopped_by)


def phase_role(task: BrokerTask) -> Role:
    """The role of `phase_text`."""
    return Role.UNDER if is_stopped(task) else PHASE_ROLES.get(task.phase, Role.PLAIN)


def waits_for(of: ListedTask, key: str) -> str:
    """Why nobody works on an open task, and what continues it; empty where someone does.

    key: that resumes it.
    """
    task = of.task
    if of.worker or not task.is_open:
        return ""
    if task.plan is not None and task.plan.approved_at_ms is None:
        return f"waits for approval of its plan; {key} shows it"
    if not task.approved:
        return f"has no plan yet, and nobody makes one; {key} does"
    if task.phase is TaskPhase.FAILED:
        return f"{task.note}; {key} tries again"
    if task.stopped_by:
        return f"stopped by {task.stopped_by}; {key} resumes it"
    return f"its process has ended; {key} or run --auto resumes it"

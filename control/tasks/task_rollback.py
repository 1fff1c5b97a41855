"""Rolling back the runs of tasks: the marks and cordons that a task has set end, too.

A mark that stayed would undo the rollback with the next plan.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from control.tasks.broker_marks import BrokerMark
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase, brokers_text
from control.tasks.operations import OPERATIONS, ending_of
from control.tasks.task_cordons import (
    cordon,
    cordoned_brokers,
    end_cordons,
    kept_cordons,
    task_cordon,
)
from control.tasks.task_files import TaskFiles
from control.tasks.task_runner import mark_again, marks_after, unmark
from executor.journal.run_history import PastRun, past_run, past_runs, undone_run
from executor.run.operator_control import Steering
from executor.run.rollback_plan import restores, rolls_back
from model.errors import ConfigError, GuardrailRefused, PlimsollError, RightsMissing
from model.ids import BrokerId
from model.plan.plan import Plan
from model.run import MoveState, RunReport
from model.snapshot.snapshot import BrokerState
from model.units import listed

if TYPE_CHECKING:
    from executor.executor import Executor

_NAMED: Final = 3
"""Runs named in a sentence."""
_ADVICE: Final = {
    Operation.UNDEMOTE: "leaders may return to {named} with the next plan; plimsoll broker demote "
    "{ids} keeps them away",
    Operation.MAINTENANCE_OFF: "leaders may return to {named} with the next plan; plimsoll broker "
    "maintenance {ids} on keeps them away",
    Operation.ADD: "{named} may be filled again by the next plan; plimsoll broker exclude {ids} "
    "keeps new replicas away",
}
"""What no mark prevents once the run of a task is rolled back that has lifted marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRollback:
    """What belongs to the rollback of one run of a task, besides its moves."""

    files: TaskFiles
    journal_dir: Path
    run_id: str
    """The run that is rolled back."""
    task: BrokerTask
    again: bool = False
    """Whether that run was itself a rollback, so that the task's moves are made again."""

    @classmethod
    def of(cls, files: TaskFiles, journal_dir: Path, plan: Plan) -> "TaskRollback | None":
        """What belongs to the rollback that a plan is; None for the run of no task.

        Raises ConfigError as `past_run`, and GuardrailRefused where the task is open and would
        move the same replicas again.
        """
        past, again = past_run(journal_dir, plan.cluster_id, undone_run(plan)), False
        run_id = past.run_id
        tasks, _ = files.readable(plan.cluster_id)
        task = _task_of(tasks, past.plan)
        if task is None and restores(past.plan):
            with contextlib.suppress(ConfigError):
                past = past_run(journal_dir, plan.cluster_id, undone_run(past.plan))
                task, again = _task_of(tasks, past.plan), True
        if task is None:
            return None
        if task.is_open and not again:
            raise GuardrailRefused(
                f"run {run_id} belongs to task {task.task_id} ({task.words()}, {task.phase}), "
                "which would move the same replicas again; give it up with plimsoll task cancel "
                f"{task.task_id}, then roll back"
            )
        return cls(files=files, journal_dir=journal_dir, run_id=run_id, task=task, again=again)

    @property
    def notes(self) -> list[str]:
        """What ends with the rollback, and what stays, in sentences."""
        task, rules = self.task, OPERATIONS[self.task.operation]
        named, ids = brokers_text(task.brokers), " ".join(map(str, task.brokers))
        if self.again:
            sets = rules.marks and rules.mark_approved is not None
            words = f"the marks of task {task.task_id} ({task.words()}) are not set again"
            return [f"{words}: request the task again for that"] if sets else []
        found = list(self._marks())
        after = marks_after(self.files.marks(task.cluster_id), task)
        if (ends := task_cordon(self.journal_dir, task, after)) is not None:
            found.append(f"with the rollback, the cordon of {ends.named} ends")
        if advice := _ADVICE.get(task.operation):
            found.append(advice.format(named=named, ids=ids))
        return [*found, *self._other_runs()]

    def _marks(self) -> Iterator[str]:
        task = self.task
        if not OPERATIONS[task.operation].marks:
            return
        marks = self.files.marks(task.cluster_id)
        after = {m.key: m for m in marks_after(marks, task)}
        for mark in marks:
            if mark.broker not in task.brokers:
                continue
            left, words = after.get(mark.key), BrokerState(mark.state).words
            if left is None:
                yield f"with the rollback, broker {mark.broker} is no longer {words}"
                continue
            words = BrokerState(left.state).words
            how = "stays" if left == mark else "is, as before the task,"
            yield (
                f"broker {mark.broker} {how} {words} ({left.reason}, by {left.by}), which may "
                f"undo the rollback; {ending_of(left)} ends that"
            )

    def _other_runs(self) -> Iterator[str]:
        """Other runs of the task, which this rollback does not undo."""
        hashes = {plan.plan_hash for plan in self.task.plans}
        runs = past_runs(self.journal_dir, self.task.cluster_id)
        undone = {self.run_id, *(undone_run(run.plan) for run in runs)}
        own = [run.run_id for run in runs if run.plan.hash in hashes]
        found = [run_id for run_id in own if run_id not in undone]
        if found:
            yield (
                f"task {self.task.task_id} has other runs, too ({listed(found[::-1], _NAMED)}); "
                "plimsoll rollback RUN undoes one of them"
            )

    @contextlib.contextmanager
    def ending(
        self, executor: "Executor", by: str, now_ms: int, say: Callable[[str], None]
    ) -> Iterator[list[RunReport]]:
        """End marks before the rollback's run and cordons after it, unless other marks want them.

        In this order, the run of a process that is killed meanwhile can be resumed, and no plan
        undoes it. Where the run does not begin, rights are missing, or none of its moves was made,
        the marks stay. Takes the report of the run. Raises as `TaskFiles.change_marks` and
        `TaskFiles.fetch_cordons`.
        """
        reports = list[RunReport]()
        if self.again:
            yield reports
            return
        files, task = self.files, self.task
        files.fetch_cordons(self.journal_dir, task.cluster_id)
        # The run itself ends the cordons of brokers that it moves replicas to.
        own = cordoned_brokers(self.journal_dir, task.cluster_id)
        after = marks_after(files.marks(task.cluster_id), task)
        wanted = [mark.broker for mark in kept_cordons(self.journal_dir, task, after)]
        removed: tuple[BrokerMark, ...] = unmark(files, task)
        cordoned = [m.broker for m in removed if m.broker in own]
        again = partial(self._cordon_again, executor, by, say)
        newest = self._newest()
        try:
            yield reports
        except (Exception, KeyboardInterrupt) as exc:
            run = self._newest()
            if run is None or newest is None or run.run_id == newest.run_id:
                self._keep(removed, partial(again, cordoned), say)
            elif isinstance(exc, RightsMissing) and not self._has_moved(run):
                once = " once plimsoll run --resume has finished it"
                self._keep(removed, partial(again, cordoned), say, once)
            raise
        if any(map(_made_none, reports)):
            self._keep(removed, partial(again, cordoned), say)
            return
        journals = self.journal_dir
        end_cordons(lambda: contextlib.nullcontext(executor), task, files, journals, by, say)
        again(wanted)
        if task.phase is not TaskPhase.CANCELLED:
            note = f"run {self.run_id} was rolled back by {by}"
            files.change(task.task_id, lambda t: t.entered(t.phase, now_ms, note))

    def _keep(
        self,
        removed: Sequence[BrokerMark],
        cordon_again: Callable[[], None],
        say: Callable[[str], None],
        once: str = "",
    ) -> None:
        """Set the marks and cordons again of a rollback that has moved nothing, and say so.

        once: when they may be ended.
        """
        try:
            mark_again(self.files, self.task, tuple(removed))
        except PlimsollError as exc:
            for mark in removed:
                say(f"broker {mark.broker} is not marked again: {exc}")
            return
        cordon_again()
        for mark in removed:
            say(
                f"nothing has moved, so broker {mark.broker} is still "
                f"{BrokerState(mark.state).words}; {ending_of(mark)} ends that{once}"
            )

    def _cordon_again(
        self, executor: "Executor", by: str, say: Callable[[str], None], brokers: list[BrokerId]
    ) -> None:
        journals, cluster_id = self.journal_dir, self.task.cluster_id
        if not brokers:
            return
        try:
            own = cordoned_brokers(journals, cluster_id)
            if brokers := [b for b in brokers if b not in own]:
                cordon(executor, brokers, journals, cluster_id, by, say)
        except PlimsollError as exc:
            # Such as a run that was interrupted and has yet to move replicas there.
            ids = " ".join(map(str, brokers))
            say(
                f"{brokers_text(brokers)} not cordoned again: {exc}; plimsoll broker exclude "
                f"{ids} --allow-changes does"
            )

    def _newest(self) -> PastRun | None:
        """The newest run on the cluster; None where its journal cannot be read."""
        with contextlib.suppress(ConfigError):
            return past_run(self.journal_dir, self.task.cluster_id)
        return None

    def _has_moved(self, run: PastRun) -> bool:
        """Whether this run is that of the rollback, and has made any of its moves."""
        mine = restores(run.plan) and undone_run(run.plan) == self.run_id
        return mine and any(at.state is MoveState.DONE for at in run.moves.values())


def _made_none(report: RunReport) -> bool:
    return bool(report.moves) and all(m.state is MoveState.DROPPED for m in report.moves)


def _task_of(tasks: list[BrokerTask], plan: Plan) -> BrokerTask | None:
    """The newest task with this plan."""
    found = [t for t in tasks if any(p.plan_hash == plan.hash for p in t.plans)]
    return found[-1] if found else None


class TaskAwareExecutor:
    """An executor whose rollbacks end marks and cordons, too; else as the one that it wraps."""

    def __init__(
        self,
        executor: "Executor",
        files: TaskFiles,
        journal_dir: Path,
        *,
        now_ms: Callable[[], int],
        say: Callable[[str], None],
    ) -> None:
        """say: hears what became of cordons."""
        self._executor = executor
        self._files = files
        self._of = partial(TaskRollback.of, files, journal_dir)
        self._now_ms = now_ms
        self._say = say

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        """As the executor's; raises GuardrailRefused for a run of an open task, too."""
        plan, left = self._executor.plan_rollback(journal_dir, run_id)
        self._of(plan)
        return plan, left

    def notes(self, plan: Plan) -> list[str]:
        """What ends with a rollback, and what stays, in sentences."""
        found = self._of(plan)
        if found is not None:
            return found.notes
        _, unreadable = self._files.readable(plan.cluster_id)
        return [f"{why}. If the run is that task's, its marks stay" for why in unreadable]

    def end(self, plan: Plan, by: str) -> None:
        """End what belongs to a rollback that has nothing to move."""
        with self._ending(plan, by):
            pass

    def execute(
        self, plan: Plan, *, journal_dir: Path, steering: Steering, **options: Any
    ) -> RunReport:
        """As the executor's."""
        undoes = rolls_back(plan, journal_dir)
        unheard = contextlib.nullcontext(list[RunReport]())
        with self._ending(plan, steering.by) if undoes else unheard as reports:
            report = self._executor.execute(
                plan, journal_dir=journal_dir, steering=steering, **options
            )
            reports.append(report)
        return report

    def _ending(self, plan: Plan, by: str) -> contextlib.AbstractContextManager[list[RunReport]]:
        found = self._of(plan)
        if found is None:
            return contextlib.nullcontext(list[RunReport]())
        return found.ending(self._executor, by, self._now_ms(), self._say)

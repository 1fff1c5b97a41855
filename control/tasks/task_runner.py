"""Work on one task: ask `next_step`, do that step, and keep the task's file up to date.

Whatever is done on the cluster is done by the executor, with its own journal. The task's file
is written before each step that depends on it, so that a killed process leaves a task that any
other process continues, on any step.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from control.loop.dependencies import WorkInterrupted
from control.tasks.broker_marks import AWAY, BrokerMark, marked, unmarked
from control.tasks.broker_task import BrokerTask, TaskPhase, TaskProgress, min_isr_text
from control.tasks.operation_rules import Left
from control.tasks.operations import OPERATIONS
from control.tasks.removal import refuse_conflicts, refuse_contradictions
from control.tasks.task_cordons import cordoned_brokers
from control.tasks.task_files import Marks, TaskCancelled, TaskFiles
from control.tasks.task_hold import FREE
from control.tasks.task_parts import FoundPlan, TaskParts
from control.tasks.task_steps import (
    EMPTY,
    OUTDATED,
    RAN,
    SUPERSEDED,
    RunSeen,
    Seen,
    Step,
    next_step,
)
from executor.run.operator_control import Steering
from model.errors import ConfigError, ExecutionStopped, PlanOutdated, PlimsollError
from model.ids import BrokerId
from model.log_events import LogEvent, named
from model.plan.plan import Plan
from model.run import MoveState, RunProgress, RunReport, RunState
from model.snapshot.snapshot import Snapshot

CANCEL_EVERY_MS: Final = 1_000
"""Time between two looks at whether the task was cancelled."""
PROGRESS_EVERY_MS: Final = 5_000
"""Time between two writes of the progress."""
_log = logging.getLogger("plimsoll.control")


class TaskRunner:
    """Works on one task until it ends, is interrupted, or fails. One thread uses it."""

    def __init__(
        self,
        task: BrokerTask,
        parts: TaskParts,
        snapshot: Snapshot | None = None,
        first: FoundPlan | None = None,
    ) -> None:
        """snapshot: of the cluster just now, for the first plan. first: that plan, if it is made.

        Only a task without plans has a first one.
        """
        self.task = task
        self._first = first
        self._parts = parts
        self._rules = OPERATIONS[task.operation]
        self._snapshot = snapshot
        self._seen = Seen()
        self._steering = Steering()
        self._hold = FREE
        self.undone = ""
        """What the task was to do and cannot, in words, once it is done; empty for nothing."""
        self._reason = ""
        """Why the last run did not make all of its moves."""
        self._looked_ms = self._wrote_ms = 0
        self._latest: RunProgress | None = None
        """Of the run in progress, where it was not written."""

    def run(self) -> BrokerTask:
        """Work on the task; return it as it then is.

        A task that is neither over nor failed was interrupted by the operator. Raises
        GuardrailRefused where another process works on it, NoPlan where there is no plan, and
        whatever the cluster's calls raise, after the task has noted it.
        """
        files, task_id = self._parts.files, self.task.task_id
        with files.working_on(task_id) as self._hold, self._noting_interrupts():
            # Another process may have continued or cancelled it since it was read.
            self.task = files.newest(task_id)
            self._refuse_foreign()
            self._parts.planned(self.task.plans[-1].plan_hash if self.task.plans else "")
            try:
                self._mark()
                self._work()
            except TaskCancelled as exc:
                self._unmark()
                self._uncordon()
                self.task = files.read(task_id)
                self._parts.say(str(exc))
            except PlimsollError as exc:
                self._fail(str(exc))
                self._give_back()
                raise
            except WorkInterrupted:
                raise
            except Exception as exc:
                self._fail(f"internal error: {exc!r}")
                raise
        return self.task

    # ---- steps

    def _work(self) -> None:
        """Do one step after the other until one ends the work."""
        steps: dict[Step, Callable[[], bool]] = {
            Step.CHECK: self._check,
            Step.PLAN: self._plan,
            Step.ASK: self._ask,
            Step.EXECUTE: partial(self._run, resume=False),
            Step.RESUME: partial(self._run, resume=True),
            Step.CLOSE: self._close_run,
            Step.FINISH: self._finish,
            Step.GIVE_UP: self._give_up,
            Step.END: lambda: False,
        }
        goes_on = True
        while goes_on:
            self._seen = replace(self._seen, run=self._run_of_plan())
            goes_on = steps[next_step(self.task, self._seen)]()

    def _check(self) -> bool:
        left = self._rules.left(self.task, self._parts, self._newest)
        self._seen = replace(self._seen, left=left.count)
        self.undone = "" if left.count else left.words
        return True

    def _newest(self) -> Snapshot:
        """The snapshot that the next plan is for, unless a run has begun since."""
        if self._snapshot is None:
            self._snapshot = self._parts.observe()
        return self._snapshot

    def _plan(self) -> bool:
        parts, task = self._parts, self.task
        if self._steering.stopping.is_set():
            # Too late for the run, all of whose moves were in flight.
            return self._stop("another plan is needed")
        found, self._first = self._first, None
        if found is None:
            found = self._rules.find(task, self._newest(), parts)
        self._snapshot = None
        if not found.plan.moves and self._rules.rests:
            return self._finish("no further move is worth its cost")
        if not found.plan.moves:
            # Its replicas are those of topics that were created or deleted just now.
            return self._fail_unless_done()
        parts.files.keep_plan(task, found.plan, self._hold)
        now_ms = parts.now_ms()
        self._change(lambda t: t.planned(found.entry, now_ms, found.note))
        parts.planned(found.plan.hash)
        parts.say(f"planned: {found.note}")
        return True

    def _ask(self) -> bool:
        """Ask for approval; False if the plan is not approved, and still waits."""
        plan = self._approved_plan()
        by = self._parts.approve(self.task, plan)
        if not by:
            return False
        now_ms = self._parts.now_ms()

        def approved(task: BrokerTask) -> BrokerTask:
            task = task.with_plan(approved_by=by, approved_at_ms=now_ms)
            return task.entered(TaskPhase.APPROVED, now_ms, f"by {by}")

        self._change(approved)
        self._mark()
        return True

    def _run(self, *, resume: bool) -> bool:
        """Execute or resume the run of the newest plan; False if the operator stopped it."""
        parts = self._parts
        plan, now_ms = self._approved_plan(), parts.now_ms()
        how = "resumes" if resume else "begins"

        def moving(task: BrokerTask) -> BrokerTask:
            task = task.entered(TaskPhase.MOVING, now_ms, f"the run {how}")
            return task.model_copy(update={"stopped_by": ""})

        self._change(moving)
        self._seen = replace(self._seen, left=None)
        try:
            with parts.steered() as self._steering:
                report = self._execute(plan, resume=resume)
        except PlanOutdated as exc:
            return self._give_plan_up(str(exc))
        except PlimsollError:
            self._keep_latest()
            raise
        self._keep_latest()
        return self._after(report)

    def _give_plan_up(self, why: str) -> bool:
        """Let another plan take the place of one that no longer fits the cluster."""
        self._parts.say(f"the plan is outdated: {why}")
        self._close(OUTDATED)
        self._seen = replace(self._seen, outdated=self._seen.outdated + 1)
        return True

    def _execute(self, plan: Plan, *, resume: bool) -> RunReport:
        parts = self._parts
        if resume:
            return parts.executor.resume(
                journal_dir=parts.journal_dir,
                moves_in_flight=parts.moves_in_flight,
                observe=self._observe,
                steering=self._steering,
            )
        return parts.executor.execute(
            plan,
            journal_dir=parts.journal_dir,
            moves_in_flight=parts.moves_in_flight,
            observe=self._observe,
            steering=self._steering,
        )

    def _after(self, report: RunReport) -> bool:
        run_id = report.run_id
        if is_over(report):
            plan = self.task.plan
            self._reason = report.reason
            self._seen = replace(
                self._seen, ran_from=None if plan is None else plan.replicas, outdated=0
            )
            self._close(RAN)
            return True
        if self._steering.stopping.is_set():
            how = "interrupted" if self._steering.leaving else "stopped"
            return self._stop(f"run {run_id} was {how}")
        if report.outdated and report.rollback is None:
            return self._give_plan_up(report.reason)
        undone = " and was rolled back" if report.rollback is not None else ""
        raise ExecutionStopped(f"run {run_id} {report.state}{undone}: {report.reason}")

    def _stop(self, why: str) -> bool:
        """Leave the task to whoever resumes it, and note who has stopped it."""
        now_ms, note = self._parts.now_ms(), f"{why}; plimsoll task resume continues it"

        def stopped(task: BrokerTask) -> BrokerTask:
            task = task.entered(TaskPhase.MOVING, now_ms, note)
            return task.model_copy(update={"stopped_by": self._stopper})

        self._change(stopped)
        return False

    @property
    def _stopper(self) -> str:
        """Who has stopped the latest run; empty where it was not, or its process only ends."""
        steering = self._steering
        if not steering.stopping.is_set() or steering.leaving:
            return ""
        return self._parts.operator or steering.stopped_by

    def _close_run(self) -> bool:
        run = self._seen.run
        if run is None:
            self._close(EMPTY)
        else:
            self._close(SUPERSEDED if run.unfinished else RAN)
        return True

    def _give_up(self) -> bool:
        if self._rules.rests and not (self._reason or self._seen.outdated):
            return self._finish("the last plan was made, and no further one comes closer")
        return self._fail_unless_done()

    def _fail_unless_done(self) -> bool:
        """Raise ExecutionStopped with what is left, which a broker may have known too late."""
        left = self._rules.left(self.task, self._parts, self._newest)
        if left.count:
            raise ExecutionStopped(self._remaining(left))
        self._seen = replace(self._seen, left=0)
        self.undone = left.words
        return True

    def _finish(self, verified: str = "") -> bool:
        """End the task; `verified`: what the cluster shows, if not what was requested."""
        rules, now_ms = self._rules, self._parts.now_ms()
        at_min_isr = rules.at_min_isr(self.task, self._parts)

        def finished(task: BrokerTask) -> BrokerTask:
            task = task.model_copy(update={"at_min_isr": at_min_isr, "stopped_by": ""})
            shown = verified or self.undone or rules.verified(task)
            task = task.entered(TaskPhase.VERIFIED, now_ms, shown)
            return task.entered(TaskPhase.DONE, now_ms, rules.done(task))

        self._mark(over=True)
        self._change(finished)
        if self.undone:
            self._parts.say(f"warning: {self.undone}")
        if self._reason:
            # Such as a topic that was deleted, or a dead broker that keeps its throttle.
            self._parts.say(f"its last run: {self._reason}")
        lost = min_isr_text(at_min_isr, self.task.brokers)
        if lost and not self.task.plans:
            self._parts.say(f"warning: {lost}")
        if rules.advise is not None:
            rules.advise(self.task, self._parts)
        elif not rules.marks and not self.task.approved:
            self._parts.say(f"{rules.verified(self.task)}; nothing to do")
        return False

    def _close(self, why: str) -> None:
        self._change(lambda t: t.with_plan(closed=why))

    # ---- what is known

    def _run_of_plan(self) -> RunSeen | None:
        """The run of the newest plan, where it has begun."""
        plan = self.task.plan
        if plan is None or plan.approved_at_ms is None:
            return None
        executor, journals = self._parts.executor, self._parts.journal_dir
        runs = executor.runs(journals, self.task.cluster_id)
        found = [run for run in runs if run.plan.hash == plan.plan_hash]
        # Many others may have begun since.
        found = found or executor.runs_of(journals, self.task.cluster_id, [plan.plan_hash])
        if not found:
            return None
        run = found[-1]
        return RunSeen(
            unfinished=run.is_unfinished, newest=not runs or run.run_id == runs[-1].run_id
        )

    def _remaining(self, left: Left) -> str:
        why = f": {self._reason}" if self._reason else ""
        # Without an approved plan, the task is over with this.
        again = f"; plimsoll task resume {self.task.task_id} tries again"
        return f"{left.words}{why}{again if self.task.approved else ''}"

    def _approved_plan(self) -> Plan:
        plan = self.task.plan
        if plan is None:
            raise ConfigError(f"task {self.task.task_id} has no plan")
        try:
            return self._parts.files.read_plan(self.task, plan.plan_hash)
        except ConfigError as exc:
            name, words = self.task.task_id, str(exc)
            if "cancel the task" in words:
                raise
            raise ConfigError(
                f"{words}; give the task up with plimsoll task cancel {name}, and request it again"
            ) from exc

    def _refuse_foreign(self) -> None:
        cluster_id = self._parts.executor.cluster().cluster_id
        if cluster_id != self.task.cluster_id:
            raise ConfigError(
                f"task {self.task.task_id} is about the cluster {self.task.cluster_id}, and this "
                f"is {cluster_id}; set the right bootstrap servers"
            )

    # ---- what is kept

    def _change(self, change: Callable[[BrokerTask], BrokerTask], *, patient: bool = True) -> None:
        """Change the task, unless another worker has it; patient: wait for the archive."""
        files = self._parts.files
        self.task = files.change(self.task.task_id, change, self._hold, patient=patient)

    def _mark(self, *, over: bool = False) -> None:
        """Mark the brokers as the operation says, from its request and from the approval on.

        Of tasks that were requested at the same time on several hosts, one succeeds: raises
        GuardrailRefused where another open task has marked one of the brokers.
        """
        task = self.task
        if not task.is_open:
            return
        if not self._rules.marks:
            self._claim(over=over)
            return
        state = self._rules.mark_approved if task.approved or over else self._rules.mark
        if state is None and not (task.approved or over):
            # Whoever declines the plan keeps the marks; they are lifted with its approval.
            self._change_marks(lambda marks: marks)
            return
        if state is None:
            self._change_marks(lambda marks: unmarked(marks, task.cluster_id, task.brokers))
            if self._uncordon():
                # It shows brokers, or directories, that take no replicas.
                self._snapshot = None
            return
        new = [
            BrokerMark(
                cluster_id=task.cluster_id,
                broker=broker,
                state=state,
                at_ms=task.requested_at_ms,
                by=task.by,
                reason=f"task {task.task_id}",
                task_id=task.task_id,
            )
            for broker in task.brokers
        ]
        while not self._replace_marks(new):
            pass  # Someone has changed them between two looks.
        if state in AWAY and (task.approved or over):
            self._rules.cordon(task, self._parts)

    def _replace_marks(self, new: Sequence[BrokerMark]) -> bool:
        """Set own marks, once the task knows whose place they take; False to try again."""
        parts, task = self._parts, self.task
        found = replaced_marks(parts.files.marks(task.cluster_id), task)
        if found != task.replaced:
            known = self._known_cordons() if found else frozenset()
            cordoned = tuple(m.broker for m in found if m.broker in known)
            update = {"replaced": found, "cordoned": cordoned}
            self._change(lambda t: t.model_copy(update=update))
        is_known = True

        def change(marks: Marks) -> Marks:
            nonlocal is_known
            is_known = replaced_marks(marks, self.task) == found
            return marked(marks, new) if is_known else marks

        self._change_marks(change)
        return is_known

    def _known_cordons(self) -> frozenset[BrokerId]:
        """Brokers that plimsoll has cordoned, on any host; waits a while for the archive."""
        parts, cluster_id = self._parts, self.task.cluster_id
        self._hold.patiently(lambda: parts.files.fetch_cordons(parts.journal_dir, cluster_id))
        return cordoned_brokers(parts.journal_dir, cluster_id)

    def _claim(self, *, over: bool) -> None:
        """Cordon what a task without marks empties, once it is approved.

        Before, raises GuardrailRefused where another open task is about the same: of two that
        were requested at the same time, at least one sees the other. A request is refused while
        a file of a task is damaged; one that was damaged later does not stop others.
        """
        task = self.task
        if not (task.approved or over):
            others, _ = self._parts.files.readable(task.cluster_id)
            refuse_contradictions(others, task)
        elif task.approved != over:
            self._rules.cordon(task, self._parts)

    def _uncordon(self) -> bool:
        """End own cordons; whether any was changed."""
        return self._rules.uncordon(self.task, self._parts)

    def _change_marks(self, change: Callable[[Marks], Marks]) -> None:
        self._parts.files.change_marks(
            self.task.cluster_id,
            lambda marks: change(self._unclaimed(marks)),
            self._hold,
            patient=True,
        )

    def _unclaimed(self, marks: Marks) -> Marks:
        """These marks; raises GuardrailRefused where another open task has marked our brokers."""
        task, files = self.task, self._parts.files
        others = {
            mark.task_id
            for mark in marks
            if mark.cluster_id == task.cluster_id and mark.broker in task.named
        } - {"", task.task_id}
        found = [files.known(task.cluster_id, other) for other in sorted(others)]
        refuse_conflicts([t for t in found if t is not None], task.named)
        return marks

    def _unmark(self) -> None:
        unmark(self._parts.files, self.task)

    def _fail(self, reason: str) -> None:
        """Note why the task failed, and who has stopped it; one that moved nothing has no mark."""
        now_ms = self._parts.now_ms()

        def failed(task: BrokerTask) -> BrokerTask:
            # The change that ended it may have been made, though it was reported as failed.
            if not task.is_open:
                return task
            task = task.entered(TaskPhase.FAILED, now_ms, reason)
            return task.model_copy(update={"stopped_by": self._stopper or task.stopped_by})

        with self._warning():
            self._change(failed, patient=False)
            if self.task.phase is TaskPhase.FAILED and not self.task.is_open:
                self._unmark()

    @contextlib.contextmanager
    def _noting_interrupts(self) -> Iterator[None]:
        """Note who interrupts the work outside its runs, too: the task then waits for a person."""

        def stopped(task: BrokerTask) -> BrokerTask:
            by = self._parts.operator if task.is_open and task.approved else ""
            return task.model_copy(update={"stopped_by": by or task.stopped_by})

        try:
            yield
        except KeyboardInterrupt:
            with self._warning():
                self._change(stopped, patient=False)
            raise

    @contextlib.contextmanager
    def _warning(self) -> Iterator[None]:
        """Log it where the task cannot be updated."""
        try:
            yield
        except PlimsollError as exc:
            _log.warning(
                "task %s cannot be updated: %s",
                self.task.task_id,
                exc,
                extra=named(LogEvent.TASK_FAILED),
            )

    def _give_back(self) -> None:
        """End the cordons of a task without marks whose first run was refused."""
        task = self.task
        if self._rules.marks or not task.approved:
            return
        with contextlib.suppress(PlimsollError):
            if len(task.plans) == 1 and self._run_of_plan() is None:
                self._uncordon()

    def _observe(self, progress: RunProgress) -> None:
        """Pass a run's progress on; keep it, and stop the run of a cancelled task."""
        parts = self._parts
        parts.watch(progress)
        now_ms = parts.now_ms()
        if now_ms - self._looked_ms >= CANCEL_EVERY_MS:
            self._looked_ms = now_ms
            stopping = self._steering.stopping.is_set()
            cancelled = self._hold.is_lost or parts.files.is_cancelled(self.task.task_id)
            if not stopping and cancelled:
                self._steering.stop()
        self._latest = progress
        if now_ms - self._wrote_ms >= PROGRESS_EVERY_MS:
            self._wrote_ms, self._latest = now_ms, None
            self._keep_progress(progress, now_ms)

    def _keep_latest(self) -> None:
        """Write how far a run came that has ended, with what came after the last write."""
        latest, self._latest = self._latest, None
        if latest is not None:
            self._keep_progress(latest, self._parts.now_ms())

    def _keep_progress(self, progress: RunProgress, now_ms: int) -> None:
        found = progress_of(progress, self.task, now_ms)
        try:
            self._change(lambda t: t.model_copy(update={"progress": found}), patient=False)
        except PlimsollError as exc:
            # The run itself must not end for that; its journal has the same.
            _log.debug(
                "the progress of the task is not kept: %s", exc, extra=named(LogEvent.TASK_FAILED)
            )


def is_over(report: RunReport) -> bool:
    """Whether each move of a run was made or is impossible, as of a deleted topic."""
    if report.state is RunState.DONE:
        return True
    ended = (MoveState.DONE, MoveState.DROPPED)
    undone = report.rollback is not None or report.state is not RunState.FAILED
    return not undone and all(move.state in ended for move in report.moves)


def progress_of(progress: RunProgress, task: BrokerTask, now_ms: int) -> TaskProgress:
    """The progress of a task's run, as its file keeps it."""
    return TaskProgress(
        at_ms=now_ms,
        run_id=progress.run_id,
        moves_done=progress.count(MoveState.DONE),
        moves=len(progress.moves),
        bytes_copied=sum(at.bytes_copied or 0 for at in progress.moves),
        bytes_to_copy=task.plan.bytes_to_copy if task.plan is not None else None,
        seconds_left=progress.left_s,
    )


def replaced_marks(marks: Marks, task: BrokerTask) -> Marks:
    """The marks whose place those of a task take, or have taken before."""
    before = {m.broker: m for m in task.replaced}
    here = [m for m in marks if m.cluster_id == task.cluster_id and m.broker in task.brokers]
    found = (before.get(m.broker) if m.task_id == task.task_id else m for m in here)
    return tuple(sorted((m for m in found if m is not None), key=lambda m: m.broker))


def marks_after(marks: Marks, task: BrokerTask) -> Marks:
    """The marks where a task ends before it is done: those return that its own had replaced."""
    if not OPERATIONS[task.operation].marks:
        return marks
    kept = unmarked(marks, task.cluster_id, task.brokers, task.task_id)
    ended = {m.key for m in marks} - {m.key for m in kept}
    return marked(kept, (m for m in task.replaced if m.key in ended))


def unmark(files: TaskFiles, task: BrokerTask) -> Marks:
    """Remove the marks that belong to a task, as `marks_after`; return the removed ones."""
    removed: Marks = ()
    if not OPERATIONS[task.operation].marks:
        return removed

    def change(marks: Marks) -> Marks:
        nonlocal removed
        after = marks_after(marks, task)
        removed = tuple(mark for mark in marks if mark not in after)
        return after

    files.change_marks(task.cluster_id, change)
    return removed


def mark_again(files: TaskFiles, task: BrokerTask, removed: Marks) -> None:
    """Set marks again that `unmark` has removed, unless someone has set others since."""
    keys = {m.key for m in removed}

    def change(marks: Marks) -> Marks:
        return marked(removed, (m for m in marks if m.key not in keys or m not in task.replaced))

    files.change_marks(task.cluster_id, change)


def cancel(files: TaskFiles, task: BrokerTask, by: str, now_ms: int, why: str = "") -> BrokerTask:
    """Cancel an open task: its brokers are marked as before; a run of it stops.

    What has moved stays. Raises ConfigError where the task is over, or is done meanwhile and so
    keeps its marks, and as `TaskFiles.change`.
    """
    note = f"by {by}{f': {why}' if why else ''}"

    def cancelled(task: BrokerTask) -> BrokerTask:
        if not task.is_open:
            raise ConfigError(f"task {task.task_id} is {task.phase}; nothing is left to cancel")
        return task.entered(TaskPhase.CANCELLED, now_ms, note)

    newest = files.newest(task.task_id)
    cancelled(newest)
    removed = unmark(files, newest)
    try:
        return files.change(task.task_id, cancelled)
    except ConfigError:
        # Its worker was faster: the brokers are emptied, and must stay so.
        if files.newest(task.task_id).phase is TaskPhase.DONE:
            mark_again(files, newest, removed)
        raise

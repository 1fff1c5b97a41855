"""Orders of Cruise Control's clients: the plan of their dry run is executed, and no other.

An order is in the user task's file before anything is done on the cluster, so that the next
service executes it if this one ends first. What became of it is read from the journals and from
the files of tasks on brokers.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.cruise_control.answers import ONGOING, REFUSED, Answer, Failed, done, failure
from control.cruise_control.dry_runs import OPERATION_OF, UNSUPPORTED, Planned
from control.cruise_control.kept_plans import KeptPlans
from control.cruise_control.load_documents import VERSION
from control.cruise_control.planning import Planning
from control.cruise_control.requests import REVIEW_ID, BadRequest, Request
from control.cruise_control.reviews import (
    ReviewStatus,
    review,
    review_board,
    review_status,
    reviewed,
)
from control.cruise_control.user_tasks import TaskStatus, UserTask, UserTasks
from control.loop import questions
from control.loop.questions import Question
from control.service.operator_actions import CLIENT, ActionResult, OperatorActions, client_name
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.operations import OPERATIONS, refuse_marked
from control.tasks.removal import refuse_conflicts
from control.tasks.task_files import TaskFiles
from control.tasks.task_request import UNSIGNED
from control.tasks.task_runner import cancel
from executor.journal.lock import is_changing
from executor.journal.run_history import past_runs
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.ids import BrokerId
from model.log_events import LogEvent, named
from model.plan.plan import Plan, read_plan
from model.printable import printable
from model.run import RunState
from model.snapshot.snapshot import Snapshot
from model.units import listed

if TYPE_CHECKING:
    from control.loop.loop import Loop

ORDER_VALID_S: Final = 3600.0
"""Age at which an order that has not begun is no longer executed."""
BEGIN_S: Final = 60.0
"""Seconds within which the run of an approved plan begins."""
TASKS_S: Final = 5.0
"""Seconds that a stop waits for the archive of tasks on brokers."""
STOPPED: Final = "stop_proposal_execution has ended the order before its run began"
MOST_NAMED: Final = 3
"""Changes of the cluster that are named in a reason."""
_PLANNED_BY: Final = (*UNSUPPORTED, "destination_broker_ids", "excluded_topics", "goals")
"""Parameters that would make a plan another one than that under review."""
_log = logging.getLogger("plimsoll.service")


@dataclass(frozen=True, kw_only=True)
class ExecutionParts:
    """What orders are executed with."""

    actions: OperatorActions
    files: TaskFiles
    """The tasks on brokers."""
    journal_dir: Path


@dataclass(frozen=True, kw_only=True)
class Following:
    """What an order needs to know of the archive that services on several hosts share."""

    catches_up: Callable[[], bool]
    """Waits until what the last leader has left has been read, within limits; whether it has."""
    flush: Callable[[], None]
    """Waits until what has been kept is in the archive, within limits."""


ALONE: Final = Following(catches_up=lambda: True, flush=lambda: None)
"""Of a service without others."""


class Execution:
    """Executes what clients order, one order at a time."""

    def __init__(
        self,
        parts: ExecutionParts | None,
        tasks: UserTasks,
        kept: KeptPlans,
        planning: Planning,
        now_ms: Callable[[], int],
        following: Following = ALONE,
    ) -> None:
        """parts: None where clients may only read and plan."""
        self._following = following
        self._parts, self._tasks, self._kept = parts, tasks, kept
        self._planning, self._now_ms = planning, now_ms
        self._began_at_ms = now_ms()
        """Runs from before are not those of this process."""
        self._one = threading.Lock()
        self._ordered: set[str] = set()
        """User tasks whose orders this process has given."""
        self._begun: set[str] = set()
        """User tasks whose orders an earlier process has given, as far as is known."""
        self.stops = 0
        """Stops that clients have requested since the start."""
        self._warned: set[str] = set()

    def refuse_now(self) -> None:
        """Refuse an order that cannot be executed now, whatever its plan is.

        Raises Failed, and GuardrailRefused where another service leads.
        """
        _refuse_while_running(self._leading())

    def refuse_others(self, request: Request, snapshot: Snapshot) -> None:
        """Refuse a request about brokers of an open task that no order could replace.

        Raises GuardrailRefused, and ConfigError where a task cannot be read.
        """
        if self._parts is None or request.endpoint.name not in OPERATION_OF:
            return
        operation, brokers = OPERATION_OF[request.endpoint.name], request.brokers()
        tasks = self._parts.files.of(snapshot.header.cluster_id)
        refuse_conflicts([t for t in tasks if not _is_same_order(t, operation, brokers)], brokers)

    def _leading(self) -> ExecutionParts:
        """What orders are executed with, of a service that leads."""
        parts = self._needed()
        parts.actions.refuse_standby()
        return parts

    def order(self, request: Request, task: UserTask, snapshot: Snapshot) -> Answer:
        """Execute the plan of the newest dry run of the same request, or one that is made now.

        Raises Failed where the kept plan no longer fits: it is not replaced by another one, which
        no one has seen. Raises as `Planning.plan`, too.
        """
        # Before a task is written, which the leader would see.
        parts = self._leading()
        if not self._following.catches_up():
            # A plan that the last leader has shown may be missing here.
            raise Failed("this service is taking over; try again", REFUSED)
        if self._is_old(task):
            # The service was away meanwhile.
            raise Failed("the order is more than an hour old; give it again", REFUSED)
        with self._one:
            self._refuse_stopped(task)
            found = self._found(request, task, snapshot)
            self._refuse_stopped(task)
            answer = self._planning.result(request, found)
            plan = found.plan or self._only_marks(parts, request, task, found)
            if plan is None:
                return answer
            _refuse_while_running(parts)
            operation = "" if found.entry is None else self._requested(request, task, plan, found)
            answer = replace(answer, executes=True, operation=operation)
            try:
                # Before the run, so that a service that is killed now leaves the order.
                self._execute(task, answer, plan)
                self._following.flush()
                self._give(parts, task, plan, operation, request.url)
            except PlimsollError as exc:
                # Before another thread gives it again.
                self._end_order(task, str(exc))
                if operation:
                    made = parts.files.read(operation)
                    cancel(
                        parts.files, made, client_name(task.client), self._now_ms(), "not executed"
                    )
                raise
            return answer

    def _execute(self, task: UserTask, answer: Answer, plan: Plan) -> None:
        """Keep that a plan is executed. Raises GuardrailRefused where its order was stopped."""
        status, operation = TaskStatus.EXECUTING, answer.operation
        if not self._tasks.end_unless_over(
            task.task_id, answer, status, plan_hash=plan.hash, operation=operation
        ):
            self._refuse_stopped(task)

    def _refuse_stopped(self, task: UserTask) -> None:
        """Raise GuardrailRefused where `stop` has ended an order."""
        found = self._tasks.find(task.task_id)
        if found is None or found.status.is_over:
            raise GuardrailRefused(STOPPED)

    def reviewed(self, request: Request, task: UserTask, snapshot: Snapshot) -> Answer:
        """Answer with the run that the approval of a plan under review has started.

        Nothing is executed for this, since `review` does that. Raises BadRequest for parameters
        that do not belong to the plan, Failed where it was not approved, or can no longer be shown.
        """
        parts = self._needed()
        state_dir, number = parts.actions.state_dir, request.values[REVIEW_ID]
        question = reviewed(state_dir, request)
        for name in ("dryrun", *_PLANNED_BY):
            if request.values.get(name):
                raise BadRequest(f"{REVIEW_ID}={number} means a plan as it is; leave out {name}")
        named = f"the plan {question.plan_hash[:12]} of request {number} under review"
        match review_status(question, state_dir, self._now_ms()):
            case ReviewStatus.PENDING:
                raise Failed(f"{named} is not approved; approve it with review?approve={number}")
            case ReviewStatus.DISCARDED:
                raise Failed(f"{named} was discarded")
        plan = read_plan(questions.plan_file(state_dir / questions.FOLDER, question.plan_hash))
        if plan.hash != question.plan_hash:
            raise Failed(f"{named} is no longer kept; it was approved, which starts its run")
        loop = parts.actions.loop
        run = None if loop is None else parts.actions.run_in_progress(loop)
        moving = run is not None and run.plan_hash == plan.hash
        if why := outdated(plan, snapshot, moving=moving):
            raise Failed(
                f"{named} was approved, which started its run, and the cluster has changed since: "
                f"{why}; state shows a run in progress"
            )
        with self._one:
            found = Planned(snapshot=snapshot, goals=plan.goals, plan=plan)
            answer = replace(self._planning.result(request, found), executes=True)
            self._execute(task, answer, plan)
            return answer

    def stop(self, request: Request, client: str) -> Answer:
        """End the run in progress, and orders that have not begun; nothing begins after the answer.

        `force_stop` cancels in-flight moves. A task on brokers then waits until a client of this
        API repeats its order, which replaces it, or until a person resumes or cancels it.
        """
        parts, by = self._needed(), client_name(client)
        ordered: set[str] = set()

        def end_orders() -> str:
            self.stops += 1
            # Before their user tasks are over.
            ordered.update(t.operation for t in self._tasks.all() if _is_executing(t))
            ended = [task.task_id for task in self._unbegun(parts) if self.end_order(task)]
            again = [q.plan_hash[:12] for q in questions.retract(parts.actions.state_dir)]
            clauses = (
                f"user task {', '.join(ended)} does not begin" if ended else "",
                f"plan {', '.join(again)} waits for approval again" if again else "",
            )
            return "; ".join(filter(None, clauses))

        def end_tasks() -> str:
            return self._end_waiting(parts, ordered - {""}, by)

        aborts = request.flag("force_stop", False)
        message = parts.actions.halt(by, end_orders, end_tasks, aborts=aborts)
        return done({"version": VERSION, "message": f"Proposal execution stopped: {message}."})

    def end_order(self, task: UserTask) -> bool:
        """End an order before it is executed; whether it was not over. Any thread may call."""
        return self._end_order(task, STOPPED)

    def _end_order(self, task: UserTask, why_ended: str) -> bool:
        why = failure("POST", f"/{task.endpoint}", f"{REFUSED}: {printable(why_ended)}")
        try:
            return self._tasks.end_unless_over(task.task_id, why, TaskStatus.FAILED)
        except ConfigError as exc:
            self._warn(f"user task {task.task_id} has ended until a restart alone: {exc}")
            return True

    def _unbegun(self, parts: ExecutionParts) -> list[UserTask]:
        """Orders that are being planned, or whose runs have not begun as far as is known."""
        loop, given = parts.actions.loop, self._ordered | self._begun
        run = None if loop is None else parts.actions.run_in_progress(loop)
        moved = "" if run is None else run.plan_hash
        return [
            task
            for task in self._tasks.all()
            if _is_order(task)
            and not task.status.is_over
            and task.task_id not in given
            # The run of an approved plan is not begun by the task that its id is sent with.
            and not (_is_executing(task) and (_is_reviewed(task) or task.plan_hash == moved))
        ]

    def _end_waiting(self, parts: ExecutionParts, ordered: Collection[str], by: str) -> str:
        """Stop the tasks on brokers that have not begun; a clause about them.

        Waits no longer than `TASKS_S` for an archive that does not answer.
        """
        stopped, failed = list[str](), list[str]()

        def stop_each() -> None:
            for task_id in sorted(ordered):
                try:
                    if _stop_waiting(parts.files, task_id, by):
                        stopped.append(task_id)
                except PlimsollError as exc:
                    failed.append(f"task {task_id} is not stopped, but waits with all runs: {exc}")

        if not ordered:
            return ""
        worker = threading.Thread(target=stop_each, name="cruise-stop", daemon=True)
        worker.start()
        worker.join(TASKS_S)
        if worker.is_alive():
            failed.append("the archive does not answer; tasks on brokers wait with all runs")
        begun = f"task {', '.join(stopped)} does not begin" if stopped else ""
        return "; ".join(filter(None, (begun, *failed)))

    def _is_old(self, task: UserTask) -> bool:
        return self._now_ms() - task.started_at_ms > 1000 * ORDER_VALID_S

    def review(self, request: Request, client: str) -> Answer:
        """Approve or discard plans of `--auto` that wait. Raises as `review`."""
        parts = self._needed()
        review(parts.actions, request, client)
        return done(review_board(parts.actions.state_dir, request, self._now_ms()))

    def _needed(self) -> ExecutionParts:
        if self._parts is None:
            raise Failed(
                "clients may read and plan, and not change the cluster; set cruise_control_api = "
                '"execute" in [service], or add dryrun=true',
                REFUSED,
            )
        return self._parts

    def _found(self, request: Request, task: UserTask, snapshot: Snapshot) -> Planned:
        """The kept plan, or a new one where there was no dry run since the last order."""
        kept = self._kept.find(request)
        if kept is None or self._is_used(kept[1].hash, kept[0].task_id, task):
            found = self._planning.plan(request, snapshot)
            if found.plan is not None:
                self._kept.keep(request, found.plan, task.task_id, self._now_ms(), found.entry)
            return found
        entry, plan = kept
        age_ms = self._now_ms() - entry.made_at_ms
        why = outdated(plan, snapshot)
        if age_ms > 1000 * questions.VALID_S:
            why = "it is more than a day old"
        if why:
            raise Failed(
                f"the plan {plan.hash[:12]} of the dry run {entry.task_id} is outdated: {why}; "
                "request a dry run again, and approve its plan",
                REFUSED,
            )
        return Planned(snapshot=snapshot, goals=plan.goals, plan=plan, entry=entry.entry)

    def _is_used(self, plan_hash: str, made_by: str, task: UserTask) -> bool:
        """Whether an earlier order has executed a plan, or has made it for itself alone.

        made_by: the user task that has planned it.
        """
        earlier = [t for t in self._tasks.all() if _is_order(t) and t.task_id != task.task_id]
        return any(
            # An order that was refused has no plan, though one was made for it.
            (order.task_id == made_by and order.status.is_over)
            or (order.plan_hash == plan_hash and order.status is TaskStatus.COMPLETED)
            for order in earlier
        )

    def _only_marks(
        self, parts: ExecutionParts, request: Request, task: UserTask, found: Planned
    ) -> Plan | None:
        """The plan without moves of a task that changes marks of its brokers; None without any.

        A broker that holds nothing is removed, so that it takes no replicas afterwards; one that
        was removed and is added again takes some, though none is worth moving to it now. The plan
        is kept, so that the next service can give the order again.
        """
        plan = found.empty
        if plan is None:
            return None
        rules = OPERATIONS[OPERATION_OF[request.endpoint.name]]
        states = {mark.broker: mark.state for mark in parts.files.marks(plan.cluster_id)}
        known = [states.get(broker) for broker in request.brokers()]
        if rules.mark_approved is None:
            if not any(state in rules.replaces for state in known):
                return None
        elif all(state is rules.mark_approved for state in known):
            return None
        self._kept.keep(request, plan, task.task_id, self._now_ms(), found.entry)
        return plan

    def _requested(self, request: Request, task: UserTask, plan: Plan, found: Planned) -> str:
        """Write the task on brokers that executes a plan, not approved yet; its id.

        Raises GuardrailRefused where another task or a mark forbids it.
        """
        parts, entry = self._needed(), found.entry
        if entry is None:
            raise BadRequest("the plan moves nothing")
        operation, brokers = OPERATION_OF[request.endpoint.name], request.brokers()
        files, cluster_id, now_ms = parts.files, plan.cluster_id, self._now_ms()
        tasks = files.of(cluster_id)
        replaced = {t.task_id for t in tasks if _is_stopped(files, t, operation, brokers)}
        refuse_conflicts([t for t in tasks if t.task_id not in replaced], brokers)
        marks = [mark for mark in files.marks(cluster_id) if mark.task_id not in replaced]
        refuse_marked(marks, cluster_id, brokers, OPERATIONS[operation].replaces)
        made = files.add(cluster_id, operation, brokers, client_name(task.client), now_ms)
        files.keep_plan(made, plan)
        note = f"dry run of user task {task.task_id}"
        files.change(made.task_id, lambda of: of.planned(entry, now_ms, note))
        return made.task_id

    def _give(
        self, parts: ExecutionParts, task: UserTask, plan: Plan, operation: str, url: str
    ) -> None:
        """Begin the run of a plan, or approve the task on brokers that makes it."""
        by = client_name(task.client)

        def act(loop: "Loop") -> ActionResult:
            if not operation:
                loop.order(plan, by)
                self._ordered.add(task.task_id)
                message = f"plan {plan.hash[:12]} is executed for user task {task.task_id}"
                return ActionResult(message=message, plan_hash=plan.hash)
            if loop.signed is not None:
                raise GuardrailRefused(UNSIGNED)
            ended = self._end_replaced(parts.files, operation, by)
            parts.files.change(operation, approved)
            self._ordered.add(task.task_id)
            message = f"task {operation} is approved for user task {task.task_id}{ended}"
            return ActionResult(message=message, plan_hash=plan.hash)

        def approved(of: BrokerTask) -> BrokerTask:
            self._refuse_stopped(task)
            return _approved(of, by, self._now_ms())

        parts.actions.order(plan.hash, by, url, act, check=lambda: self._refuse_stopped(task))

    def _end_replaced(self, files: TaskFiles, task_id: str, by: str) -> str:
        """Cancel the stopped tasks whose orders a task repeats; a clause for the audit log."""
        made, clauses = files.read(task_id), ""
        for task in files.of(made.cluster_id):
            if _is_stopped(files, task, made.operation, made.brokers):
                cancel(files, task, by, self._now_ms(), f"task {task_id} replaces it")
                clauses += f"; it replaces task {task.task_id}, which is cancelled"
        return clauses

    # ---- what became of orders

    def settle(self, cluster_id: str) -> None:
        """Bring the status of each order up to date, and give those that a crash has kept back.

        cluster_id: of the cluster that is seen now.
        """
        parts = self._parts
        if parts is None:
            return
        for task in self._tasks.all():
            if task.status is not TaskStatus.EXECUTING:
                continue
            try:
                status = self._status(parts, task, cluster_id)
                if status is not None:
                    self._tasks.become(task.task_id, status)
            except (PlimsollError, BadRequest) as exc:
                self._warn(f"what became of user task {task.task_id} is not known: {exc}")

    def _warn(self, words: str) -> None:
        """Write a warning to the log, once."""
        if words not in self._warned:
            self._warned.add(words)
            _log.warning("%s", words, extra=named(LogEvent.REQUEST_FAILED))

    def _status(self, parts: ExecutionParts, task: UserTask, cluster_id: str) -> TaskStatus | None:
        """The status of an order; None while it stays what it is."""
        loop = parts.actions.loop
        if task.operation:
            return self._status_on_brokers(parts, task)
        # Before all else: the run of what is given in between looks as if there was none.
        given = task.task_id in self._ordered
        # Before the journals: what is resumed in between must not look interrupted.
        is_left = loop is not None and not loop.may_resume
        if loop is None or loop.running or is_changing(parts.journal_dir, cluster_id):
            return None
        since_ms, review = task.started_at_ms, self._review_of(parts, task)
        if _is_reviewed(task):
            # Its run may have begun before the task.
            since_ms = 0 if review is None else review.asked_at_ms
        past = past_runs(parts.journal_dir, cluster_id)
        runs = [
            run for run in past if run.plan.hash == task.plan_hash and run.started_at_ms >= since_ms
        ]
        if runs:
            self._begun.add(task.task_id)
        if runs and runs[-1] is not past[-1]:
            # Only the newest run can be resumed.
            return _AFTER.get(runs[-1].state, TaskStatus.FAILED)
        if runs:
            is_left = is_left and runs[-1].started_at_ms <= self._began_at_ms
            return _AFTER.get(runs[-1].state, TaskStatus.FAILED if is_left else None)
        if _is_reviewed(task):
            return self._status_before_run(parts, task, review)
        if given:
            # Its checks have refused it before the first request.
            return TaskStatus.FAILED
        return self._again(parts, task)

    def _review_of(self, parts: ExecutionParts, task: UserTask) -> Question | None:
        """The review that a task means; None without one, or where it is not kept any more."""
        if not _is_reviewed(task):
            return None
        for found in questions.questions(parts.actions.state_dir):
            # The same plan may have been asked for once more since.
            if found.plan_hash == task.plan_hash and found.asked_at_ms <= task.started_at_ms:
                return found
        return None

    def _status_before_run(
        self, parts: ExecutionParts, task: UserTask, review: Question | None
    ) -> TaskStatus | None:
        """The status of a task that waits for the run of an approved plan."""
        if review is None:
            return TaskStatus.FAILED
        match review_status(review, parts.actions.state_dir, self._now_ms()):
            case ReviewStatus.APPROVED:
                return None
            case ReviewStatus.SUBMITTED if not self._is_late(task):
                return None
        # Its checks have refused it before the first request.
        return TaskStatus.FAILED

    def _is_late(self, task: UserTask) -> bool:
        """Whether the run of an approved plan would have begun by now."""
        return self._now_ms() - task.started_at_ms > 1000 * BEGIN_S

    def _status_on_brokers(self, parts: ExecutionParts, task: UserTask) -> TaskStatus | None:
        found = parts.files.read(task.operation)
        if found.phase is TaskPhase.DONE:
            return TaskStatus.COMPLETED
        if not found.is_open or found.stopped_by:
            return TaskStatus.FAILED
        if not found.approved:
            return self._again(parts, task)
        self._begun.add(task.task_id)
        return None

    def _again(self, parts: ExecutionParts, task: UserTask) -> TaskStatus | None:
        """Give an order that an earlier service has kept and not begun.

        Not while another order is planned or given, which may take a while, or be this one.
        """
        if not self._one.acquire(blocking=False):
            return None
        try:
            found = self._tasks.find(task.task_id)
            if task.task_id in self._ordered or found is None or not _is_executing(found):
                return None
            return self._given_again(parts, task)
        finally:
            self._one.release()

    def _given_again(self, parts: ExecutionParts, task: UserTask) -> TaskStatus | None:
        actions = parts.actions
        request = task.request()
        kept = self._kept.find(request)
        if self._is_old(task) or kept is None or kept[1].hash != task.plan_hash:
            return TaskStatus.FAILED
        if actions.loop is None or actions.loop.running or actions.pause is not None:
            # Not tried in vain, since each attempt is in the audit log.
            return None
        with contextlib.suppress(GuardrailRefused):
            # What has begun in between is waited for.
            self._give(parts, task, kept[1], task.operation, request.url)
        return None


_AFTER: Final = {
    RunState.DONE: TaskStatus.COMPLETED,
    RunState.STOPPED: TaskStatus.FAILED,
    RunState.FAILED: TaskStatus.FAILED,
}


def outdated(plan: Plan, snapshot: Snapshot, *, moving: bool = False) -> str:
    """Why a plan no longer fits the placement, naming the first changes; empty if it does.

    moving: whether its own run may have moved a part of its partitions already.
    """
    if plan.cluster_id != snapshot.header.cluster_id:
        return f"it is about the cluster {plan.cluster_id}"
    found = []
    for move in plan.moves:
        row = snapshot.find(move.id)
        if row is None:
            found.append(f"{move.id} no longer exists")
        elif snapshot.replicas(row) != move.replicas_before and not (
            moving and {*snapshot.replicas(row)} <= {*move.replicas_before, *move.replicas_after}
        ):
            found.append(f"{move.id} has other replicas")
    missing = sorted({*plan.live_brokers} - {*snapshot.broker})
    found += [f"broker {broker} is gone" for broker in missing]
    return listed(found, MOST_NAMED) if found else ""


def _is_order(task: UserTask) -> bool:
    """Also for a request of an earlier version, which had values that are refused now."""
    return dict(task.parameters).get("dryrun", "").strip().lower() == "false"


def _is_executing(task: UserTask) -> bool:
    return task.status is TaskStatus.EXECUTING


def _is_reviewed(task: UserTask) -> bool:
    """Whether a task is about a plan that was under review."""
    return REVIEW_ID in dict(task.parameters)


def _stop_waiting(files: TaskFiles, task_id: str, by: str) -> bool:
    """Stop a task on brokers unless it is worked on, or does not begin anyway; whether it was."""
    task = files.read(task_id)
    if not task.is_open or task.stopped_by or files.is_worked_on(task_id):
        return False
    files.change(task_id, lambda of: of.model_copy(update={"stopped_by": by}))
    return True


def _is_same_order(task: BrokerTask, operation: Operation, brokers: tuple[BrokerId, ...]) -> bool:
    """Whether a task was ordered by a client of this API, and does the same."""
    same = task.operation is operation and task.brokers == brokers
    return same and task.by.startswith(CLIENT)


def _is_stopped(
    files: TaskFiles, task: BrokerTask, operation: Operation, brokers: tuple[BrokerId, ...]
) -> bool:
    """Whether such a task was stopped, so that an order may replace it."""
    waits = task.is_open and bool(task.stopped_by) and _is_same_order(task, operation, brokers)
    return waits and not files.is_worked_on(task.task_id)


def _approved(task: BrokerTask, by: str, now_ms: int) -> BrokerTask:
    if task.plan is None:
        raise ConfigError(f"task {task.task_id} has no plan")
    approved = task.with_plan(approved_by=by, approved_at_ms=now_ms)
    return approved.entered(TaskPhase.APPROVED, now_ms, f"by {by}")


def _refuse_while_running(parts: ExecutionParts) -> None:
    loop = parts.actions.loop
    if loop is not None and loop.running:
        raise Failed(
            "a run is in progress; wait until it ends, or stop it with stop_proposal_execution",
            ONGOING,
        )

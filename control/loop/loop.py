"""The loop observe -> plan -> approve -> apply, for the screen and `--auto` alike.

Only the source of approval differs. The loop has one thread and each run another, so that the
cluster is observed while it changes. `control.loop.policy` decides what to do next.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from control.loop.cleanup_schedule import CleanupSchedule
from control.loop.day_limits import DAY_S, bytes_left, bytes_wait_s, runs_left, runs_wait_s
from control.loop.decision_file import DecisionFile, clock_text, record_of, when_text
from control.loop.decision_log import DecisionLog, run_lines
from control.loop.dependencies import (
    JournalledRuns,
    LoopParts,
    LoopSettings,
    Observer,
    OpenTask,
    TaskSite,
    WorkInterrupted,
)
from control.loop.holding_rule import holding_rule, long_wait_rule
from control.loop.load_shift import LoadShift, confidence_text, level_age_s, noise_of_objective
from control.loop.oscillation import sides_of
from control.loop.override import AutoRun, overriding
from control.loop.policy import (
    Decision,
    DecisionInputs,
    Status,
    after_decision,
    after_result,
    ahead_words,
    next_step,
    will_replace,
)
from control.loop.previous_runs import PreviousRuns
from control.loop.questions import PlanAnswer, Question, Questions
from control.loop.rebalancer_watch import RebalancerWatch
from control.loop.run_lag import followed
from control.loop.run_thread import RunEvents, Runner
from control.loop.state import LoopState
from control.loop.task_watch import TaskWatch
from control.loop.view import LoopView, Mode, Phase, Retry
from control.planning.efforts import goals_at
from control.planning.plan_inputs import AVERAGED_WINDOWS, Inputs, SolvedInputs, loads_of
from control.planning.plan_needs import plan_needs
from control.planning.planner_thread import Proposals
from control.planning.slow_brokers import relieving, slow_among, with_slow
from control.planning.staging import staged
from control.planning.validate import with_moves
from control.settings.auto_limits import AutoLimits, tightened
from control.settings.auto_policy import AutoPolicy, policy_changes
from control.settings.opening_times import closed_text, opens_in_s
from control.settings.solve_table import limits_at
from control.settings.trigger_table import Response, Trigger
from executor.run.operator_control import Steering
from model.closing import Closing
from model.errors import (
    ClusterUnreachable,
    ConfigError,
    ExecutionStopped,
    GuardrailRefused,
    PlanOutdated,
    PlimsollError,
    RightsMissing,
)
from model.evaluate import Evaluation, evaluate
from model.goals.goals import Goals
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId, PartitionId
from model.log_events import LogEvent, named
from model.plan.outages import dead_brokers, unavailable_text
from model.plan.plan import Plan
from model.plan.unplaceable import placeless_warnings
from model.plan.warnings import load_warning
from model.run import MoveState, RunProgress, RunReport, RunState
from model.snapshot.snapshot import Snapshot, StorageKind
from model.units import count_text, seconds_text
from solver.report.result import Result

if TYPE_CHECKING:
    from control.service.auto_watch import AutoWatch
    from control.tasks.operator_tasks import OperatorTasks
    from executor.journal.run_history import RunUsage
    from executor.schedule.estimate import Forecast

logger = logging.getLogger("plimsoll.control")

RETRY_S = 5.0
"""Time between two attempts to connect."""

LEFT_OUT_S: Final = 10.0
"""Only without loads for so long do samples that are left out count: those of another host may fill
a batch of their own."""

WATCH_RETRY_S = 60.0
"""The same after `--auto` failed for another reason, such as a missing right."""

SLOW_AGAIN_S: Final = 300.0
"""Time in which an observer finds slow brokers again that an earlier one had found."""

OBSERVE_S: Final = 1.0
"""Time after which a task that waits for loads looks whether it is stopped."""

SHOWN_S: Final = 5.0
"""Metadata may show moves of a run for so long after its end."""

BEAT_S: Final = 1.0
"""Time between two beats while the loop waits to reconnect."""


AFTER_WAITING: Final = {
    Response.ACT: "its replicas are moved",
    Response.ASK: "a plan to move its replicas is made",
    Response.OFF: "the others are balanced without it",
}
"""What follows once a dead broker is no longer waited for, by the response of its trigger."""

WITHDRAWING: Final = {
    Decision.PLAN: "the cluster, the trigger or the policy changed",
    Decision.HOLD: "the cluster, the trigger or the policy changed",
    Decision.APPROVE: "another trigger acts",
    Decision.REST: "no plan is needed any more",
    Decision.IGNORE: "its trigger no longer fires",
}
"""Decisions that withdraw the waiting plan, and why."""

OF_EARLIER: Final = WITHDRAWING | dict.fromkeys(
    (Decision.PLAN, Decision.HOLD), "run --auto has begun again and makes a new plan"
)
"""The same for a plan of an earlier process."""


RELOADED: Final = "the settings that it was made by changed"
"""Why a reload withdraws the waiting plan."""


class Loop(Closing):
    """Observe one cluster and keep it balanced until `close`.

    The lock guards the state. It is taken before that of `proposals`, never after. The
    parts get functions to call, and neither the loop nor its lock.
    """

    def __init__(self, settings: LoopSettings, parts: LoopParts) -> None:
        self.settings = settings
        self.error: PlimsollError | None = None
        """Error that ended the loop."""
        self.clock = parts.clock
        self._policy = settings.policy
        """As in the settings, until it is changed in their file."""
        self._parts = parts
        self._state = LoopState()
        self._changed = threading.Condition(threading.RLock())
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._log = DecisionLog(self._now_ms, self._plan_hash)
        self.proposals = Proposals(
            parts.planner,
            settings.goals,
            limits_at(settings.solve, settings.effort),
            clock=parts.clock,
            steady=parts.steady,
            wake=self._wake.set,
            warn=self._warner(LogEvent.PLAN_FAILED),
            acted=self.acted,
            background=parts.background,
        )
        self._records = parts.records or JournalledRuns(settings.journal_dir)
        recorded = settings.decisions_dir if settings.mode is Mode.AUTO else None
        self._decisions = None if recorded is None else DecisionFile(recorded)
        self._questions = None if recorded is None else Questions(recorded, self.warn)
        self._restored = False
        """Whether the question of an earlier process has been looked for."""
        self.leave_question = False
        """Let the waiting plan wait on after `close`, for the next process."""
        self.ending = "it was stopped"
        """Why the loop is closed, in words, unless it fails."""
        self.paused = ""
        """Who has paused `--auto`, and how it continues; empty without a pause."""
        self.resumes = settings.resume
        """Whether an interrupted run is still to be looked for and resumed."""
        self._slow_until_s = -math.inf
        """Until then, brokers that were slow for an earlier loop count as slow."""
        self._looked = False
        """Whether such a run has been looked for."""
        self._stood_by = parts.stands_by is not None
        """Whether another process led when it was asked last, or none was asked."""
        self._resuming = False
        """Whether the run in progress is one that is resumed for that reason."""
        self._cleanups = CleanupSchedule(settings.journal_dir)
        self._watcher = threading.Thread(target=self._main, name="loop", daemon=True)
        self._runner = Runner(
            parts.executor,
            RunEvents(
                progressed=self._run_progressed,
                ended=self._run_ended,
                failed=self._run_failed,
                task_ended=self._task_ended,
                cleaned_up=self._cleaned_up,
            ),
            journal_dir=settings.journal_dir,
            moves_in_flight=settings.limits.moves_in_flight,
            operator=settings.operator,
            background=parts.background,
        )
        self.previous_runs = PreviousRuns(
            self._runner,
            settings.journal_dir,
            begin=self._begin_run,
            warn=self._warner(LogEvent.RUN_WARNING),
        )
        self._rebalancers = RebalancerWatch(
            self._runner.rebalancers, self._found_rebalancers, parts.steady, parts.background
        )
        self._tasks = (
            None
            if parts.tasks is None or settings.mode is not Mode.AUTO
            else TaskWatch(
                parts.tasks, self._warner(LogEvent.TASK_FAILED), parts.steady, parts.background
            )
        )
        self._subscribers: list[Callable[[LoopView], None]] = [self.previous_runs]

    def __enter__(self) -> Self:
        self._watcher.start()
        return super().__enter__()

    def close(self) -> None:
        """Wait for in-flight moves, then stop everything."""
        if self.running:
            self.steering.leave()
        self._closing.set()
        self._wake.set()
        if self._watcher.is_alive():
            self._watcher.join()
        # After the watcher, which could start another solve or ask.
        if self._questions is not None and not self.leave_question:
            self._questions.withdraw("run --auto has ended")
        self.proposals.close()
        self._runner.join()
        if self._decisions is not None:
            waits = self._questions.waiting if self._questions is not None else None
            plan = "" if waits is None else waits.plan_hash[:12]
            on = f"; plimsoll approve {plan} lets the next one execute the plan" if plan else ""
            why = self.ending if self.error is None else f"it failed: {self.error}"
            self._decisions.end(f"run --auto has ended: {why}{on}", self._now_ms(), plan)

    def continue_from(self, before: Self) -> None:
        """Let the plan that waits for a person in an ended loop wait on; call before `start`.

        A plan that was rejected is not asked for again, either. Where the settings that decide
        which plan is made are other ones now, the plan is withdrawn instead.
        """
        mine, theirs = self._questions, before._questions
        plan, rejects = before.proposals.plan, theirs is not None and bool(theirs.rejected_by)
        if mine is None or theirs is None or plan is None:
            return
        waiting = theirs.waiting
        if not rejects and (waiting is None or waiting.plan_hash != plan.hash):
            # The question of an earlier process, or none.
            return
        if _makes_plans(self) != _makes_plans(before):
            if theirs.withdraw(RELOADED) and waiting is not None:
                self.note(
                    f"the waiting plan is withdrawn: {RELOADED}",
                    LogEvent.PLAN_WITHDRAWN,
                    plan_hash=waiting.plan_hash,
                )
            return
        self._restored = True
        mine.continue_from(theirs)
        self.proposals.continue_from(before.proposals)
        # What the decision to let it wait depends on. Other times begin again.
        state, earlier = self._state, before._state
        state.answered, state.planned_at_s = earlier.answered, earlier.planned_at_s
        state.made_for, state.held = earlier.made_for, earlier.held
        state.needed_since_s, state.was_balanced = earlier.needed_since_s, earlier.was_balanced
        state.membership, state.min_isr = earlier.membership, earlier.min_isr
        state.slow, self._slow_until_s = earlier.slow, self._parts.steady() + SLOW_AGAIN_S

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call `subscriber` with each new view, from any thread of the loop."""
        self._subscribers.append(subscriber)

    @property
    def view(self) -> LoopView:
        """The current state of the loop."""
        with self._changed:
            state = self._state
            plan, proposed = self.proposals.shown
            seen = state.snapshot
            cluster = seen.header.cluster_id[:8] if seen is not None else ""
            return LoopView(
                at_ms=self._now_ms(),
                phase=state.phase,
                mode=self.settings.mode,
                cluster_name=self.settings.name or cluster,
                bootstrap=self.settings.bootstrap,
                message=state.message,
                brokers=slow_among(state.brokers, state.slow),
                replication=state.replication,
                snapshot=state.snapshot,
                evaluation=state.evaluation,
                plan=plan,
                proposed=replace(proposed, rivals=state.rebalancers),
                run=state.run,
                log=self._log.lines,
                lag=state.lag,
                retry=state.retry,
                reconsidered=state.reconsidered,
            )

    @property
    def policy(self) -> AutoPolicy:
        """The policy in force, as in the settings until it is changed in their file."""
        return self._policy

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """Reports of the most recent runs, oldest first."""
        with self._changed:
            return tuple(self._state.reports)

    @property
    def result(self) -> Result | None:
        """Result of the last solve."""
        return self.proposals.result

    @property
    def failure(self) -> PlimsollError | None:
        """Error of the last attempt of `--auto`; None after a success."""
        return self._state.failure

    @property
    def held_up(self) -> str:
        """Why `--auto` starts no run for longer than a confirmation takes; empty where it may."""
        return self._state.held_up

    @property
    def question(self) -> Question | None:
        """The plan of `--auto` that waits for a person; None without one."""
        return None if self._questions is None else self._questions.waiting

    @property
    def running(self) -> bool:
        """Whether a run or a cleanup is in progress."""
        return self._runner.running

    @property
    def moving(self) -> bool:
        """Whether a run of moves is in progress, not a cleanup."""
        return self._runner.moving

    @property
    def may_resume(self) -> bool:
        """Whether this process resumes an interrupted run, or would once it leads."""
        # Read twice, since other threads set one before they reset another.
        return self.resumes or self._resuming or self._stood_by or self.resumes

    def pause(self, words: str, *, wait: bool = True) -> None:
        """Let `--auto` start no run until `unpause`; words: who paused it, and how it continues.

        A run in progress continues. wait: return once it is certain that no other one begins.
        """
        self.paused = words
        if wait:
            with self._changed:
                pass

    def await_turn(self, timeout_s: float) -> bool:
        """Wait until a run that has begun before the last pause is in progress, or ended.

        Returns whether that is so, which a busy loop may delay for longer than `timeout_s`.
        """
        if not self._changed.acquire(timeout=timeout_s):
            return False
        self._changed.release()
        return True

    def unpause(self) -> None:
        """End a pause."""
        self.paused = ""

    @property
    def held_back(self) -> str:
        """Why no run may start: another process leads, or a person has paused; empty if it may."""
        stands_by = self._parts.stands_by
        return (stands_by() if stands_by is not None else "") or self.paused

    @property
    def signed(self) -> Callable[[str], object] | None:
        """Raises where the plan with this hash lacks a signature; None if none is required."""
        return self._parts.signed

    def approve(self, plan_hash: str, by: str) -> None:
        """Start executing the plan with this hash; return at once.

        Raises
        ------
        GuardrailRefused
            plimsoll is read-only, the plan lacks a required signature, a run is in progress, or a
            newer plan exists or has been requested.
        PlanOutdated
            The cluster has changed since the plan was made.
        """
        self._start(plan_hash, by, None)

    def _start(self, plan_hash: str, by: str, check: Callable[[], None] | None) -> None:
        """As `approve`; check: called once no other machine can begin a run, and may raise."""
        with self._changed:
            plan, proposed = self.proposals.shown
            self._runner.check_allowed()
            self._refuse_while_running()
            if plan is None or plan.hash != plan_hash:
                raise GuardrailRefused(
                    "a newer plan has replaced this one; review and approve the newer plan"
                )
            if proposed.awaited:
                raise GuardrailRefused(
                    "another plan has been requested; review and approve that plan"
                )
            if proposed.changes:
                changes = "; ".join(proposed.changes)
                raise PlanOutdated(f"the cluster changed since this plan: {changes}")
            if self._parts.signed is not None:
                self._parts.signed(plan.hash)
            self._note_approved(plan, by)
            message = f"executing plan {plan.hash[:12]}"
            self._begin_run(message, lambda: self._runner.start(plan, by, check), plan.hash)

    def order(self, plan: Plan, by: str) -> None:
        """Start executing a plan that was approved elsewhere; return at once.

        Its run checks whether the cluster still fits. Raises GuardrailRefused where plimsoll is
        read-only or paused, or a run is in progress.
        """
        with self._changed:
            self._runner.check_allowed()
            self._refuse_while_running()
            if held_back := self.held_back:
                raise GuardrailRefused(held_back)
            self._note_approved(plan, by)
            # No trigger of `--auto` may end it as one of its own.
            self._state.auto_run = None
            message = f"executing plan {plan.hash[:12]}"
            self._begin_run(message, lambda: self._runner.start(plan, by), plan.hash)

    def _note_approved(self, plan: Plan, by: str) -> None:
        text = f"plan {plan.hash[:12]} approved by {by}"
        self.note(text, LogEvent.PLAN_APPROVED, plan_hash=plan.hash)

    def preview(self, plan: Plan) -> "Forecast":
        """Estimate what a plan will take; asks the cluster.

        Raises
        ------
        GuardrailRefused
            plimsoll is read-only.
        PlimsollError
            A check before the run fails.
        """
        return self._runner.preview(plan)

    @property
    def tasks(self) -> "OperatorTasks | None":
        """The tasks on brokers, for a person; None where there are none."""
        return self._parts.operator_tasks

    @property
    def auto_watch(self) -> "AutoWatch | None":
        """What another process decides about the cluster; None where none can."""
        return self._parts.auto_watch

    def work_on(self, task: OpenTask) -> None:
        """Start the work on a task because a person asks for it; return at once.

        Raises
        ------
        GuardrailRefused
            plimsoll is read-only, a run is in progress, or nothing has been measured yet.
        """
        self._runner.check_allowed()
        with self._changed:
            if self._state.snapshot is None:
                raise GuardrailRefused("no loads have been measured yet; wait a moment")
            self._begin_task(task, self._state.snapshot)

    def _refuse_while_running(self) -> None:
        if self.running:
            raise GuardrailRefused("a run is in progress; wait until it ends, or stop it")

    def _begin_run(self, message: str, start: Callable[[], None], plan_hash: str) -> None:
        """Enter the phase of a run and start it; GuardrailRefused while it may not.

        plan_hash: of its plan; empty where that is not known yet.
        """
        with self._changed:
            self._refuse_while_running()
            if held_back := self.held_back:
                raise GuardrailRefused(held_back)
            self._state.executing = plan_hash
            self._enter(Phase.RUNNING, message)
            self.proposals.give_up()
            try:
                start()
            except BaseException:
                self._state.executing = None
                raise

    def plan_again(self) -> None:
        """Make a new plan from the newest snapshot, even if the cluster is balanced."""
        self.acted("replan")
        self.proposals.want()

    @property
    def steering(self) -> Steering:
        """Operator control of the run in progress; without effect if there is none."""
        return self._runner.steering

    def wait(self, until: Callable[[LoopView], bool], timeout_s: float) -> bool:
        """Block until `until` accepts a view; False on failure or timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not until(self.view):
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self.error is not None:
                    return False
                self._changed.wait(min(left_s, 1.0))
            return True

    # ---- the loop's thread

    def _found_rebalancers(self, found: tuple[str, ...]) -> None:
        """Warn of each competing rebalancer once, however often it is found."""
        with self._changed:
            known, self._state.rebalancers = self._state.rebalancers, found
            for warning in found:
                if warning not in known:
                    self.note(warning, LogEvent.REBALANCER_FOUND, level="warning")
        if found != known:
            self._publish()

    def _search_rebalancers(self) -> None:
        plan = self.proposals.plan
        if plan is None or not plan.moves or self._parts.executor is None or self.running:
            return
        shared = any(move.storage is StorageKind.SHARED for move in plan.moves)
        self._rebalancers.search(plan.hash, shared)

    def _main(self) -> None:
        while not self._closing.is_set():
            try:
                self._watch()
            except ClusterUnreachable as exc:
                if not self._state.brokers and not self.settings.patient:
                    self._fail(exc)
                    return
                self._wait_to_retry(exc, RETRY_S)
            except PlimsollError as exc:
                # Only an operator can fix a first connection; later errors may pass.
                if not self._state.brokers or self.settings.mode is not Mode.AUTO:
                    self._fail(exc)
                    return
                self._wait_to_retry(exc, WATCH_RETRY_S)
            except Exception as exc:
                logger.exception("the loop ended", extra=named(LogEvent.LOOP_FAILED))
                self._fail(PlimsollError(f"internal error: {exc!r}"))
                return

    def _wait_to_retry(self, exc: PlimsollError, wait_s: float) -> None:
        with self._changed:
            state, now_ms = self._state, self._now_ms()
            attempt = state.retry.attempt + 1 if state.retry is not None else 2
            state.retry = Retry(attempt=attempt, since_ms=now_ms, wait_s=wait_s)
            self._enter(Phase.UNREACHABLE, str(exc), level="warning")
        if self._parts.failed is not None:
            self._parts.failed(exc)
        left_s = wait_s
        while left_s > 0 and not self._closing.wait(min(left_s, BEAT_S)):
            self._beat()
            left_s -= BEAT_S

    def _fail(self, exc: PlimsollError) -> None:
        self.error = exc
        self._enter(Phase.FAILED, str(exc), level="error")

    def _watch(self) -> None:
        # Loads measured before the connection was lost must not decide anything.
        self._state.seen = None
        with contextlib.closing(self._parts.observer()) as observer:
            observer.start()
            while self._next_tick():
                self.turn(observer)

    def turn(self, observer: Observer) -> None:
        """Observe, decide and act once.

        Only the loop's own thread may call it, or a caller that has not entered the loop, which
        then has no thread. Raises what the observer failed with.
        """
        if observer.failure is not None:
            raise observer.failure
        self._beat()
        self._note_steering()
        self._look(observer)
        self._follow_lag(observer)
        self._take_policy()
        self._act()
        self._search_rebalancers()
        self._publish()

    def _beat(self) -> None:
        if self._parts.beat is not None:
            self._parts.beat()

    def _take_policy(self) -> None:
        """Use the policy of the settings file once that has changed."""
        take = self._parts.new_policy
        after = None if take is None else take(self._policy, self._warner(LogEvent.POLICY_REJECTED))
        if after is None:
            return
        with self._changed:
            before, self._policy = self._policy, after
            for words in policy_changes(before, after):
                self.note(f"policy changed: {words}", LogEvent.POLICY_CHANGED, level="warning")
            self._runner.moves_in_flight = after.limits.moves_in_flight
            state = self._state
            if _planned_otherwise(before, after):
                # A plan that acts was made within other bounds; one that asks is left to a person.
                state.answered = None
                state.made_for = state.made_for and frozenset()
            if state.snapshot is not None:
                # Runs before the change count before another one begins.
                state.day = self._day(state.snapshot.header.cluster_id)

    def _next_tick(self) -> bool:
        """Wait for the next tick or wake-up; False when closing."""
        self._wake.wait(self.settings.tick_s)
        self._wake.clear()
        return not self._closing.is_set()

    def _look(self, observer: Observer) -> None:
        # In this order: newer loads than what is known of them are safe, older ones are not.
        steadiness = observer.steadiness()
        brokers, seen = observer.brokers(), observer.snapshot()
        with self._changed:
            state = self._state
            state.brokers, state.replication = brokers, observer.replication()
            state.steadiness = steadiness
            state.left_out_ahead_s = observer.ahead_s()
            if self._moving():
                state.copied_at_s = self._parts.steady()
            if brokers:
                state.retry = None
                self._enter_watched(seen)
            if seen is None or seen is state.seen:
                return
            state.seen, now_s = seen, self._parts.steady()
            state.seen_at_s = now_s
            state.loads_from_s = now_s - self._reach_s(seen)
            state.ahead_s = seen.header.taken_at_ms / 1000 - self._parts.clock()
            state.slow = self._slow(observer)
            known = with_moves(seen, self.settings.goals, self._records.moves_since)
            state.snapshot = with_slow(known, state.slow)
            state.day = self._day(seen.header.cluster_id)
            self.proposals.see(state.snapshot)
            goals = with_topic_placements(self.settings.goals, state.snapshot)
            state.evaluation = evaluate(state.snapshot, goals, ())
            if self._parts.modelled is not None:
                self._parts.modelled(self._parts.steady() - now_s)
            if state.answered is not None:
                state.answered = state.answered.seen(
                    loads_of(state.evaluation), now_s, _span_s(seen), goals
                )
            self._judge(state.snapshot, goals, state.evaluation)

    def _moving(self) -> int:
        """Partitions that are being moved outside of a run."""
        state, now_s = self._state, self._parts.steady()
        ended = state.ended_at_s is not None and now_s - state.ended_at_s < SHOWN_S
        known = state.replication is not None and not (self.running or ended)
        return state.replication.moving if known and state.replication is not None else 0

    def _slow(self, observer: Observer) -> Mapping[BrokerId, str]:
        """Slow brokers, where `--auto` treats them as such; notes those that are newly slow."""
        if self.settings.mode is not Mode.AUTO:
            return {}
        if self._policy.triggers.response(Trigger.SLOW_BROKER) is Response.OFF:
            return {}
        found = observer.slow()
        if self._parts.steady() < self._slow_until_s:
            found = {**self._state.slow, **found}
        for broker, words in found.items():
            if broker not in self._state.slow:
                self.note(
                    f"broker {broker} is slow: {words}", LogEvent.BROKER_SLOW, level="warning"
                )
        return found

    def _follow_lag(self, observer: Observer) -> None:
        """Update the lag of the topics that the run in progress moves."""
        run = self._state.run
        if run is None or not self._runner.moving:
            return
        lag = observer.consumer_lag({item.move.topic for item in run.moves})
        with self._changed:
            self._state.lag = followed(self._state.lag, run.run_id, lag)

    def _day(self, cluster_id: str) -> "tuple[RunUsage, ...]":
        """Runs of the last 24 hours; empty where no limit counts them."""
        limits = self._policy.limits
        counted = limits.runs_per_day is not None or limits.bytes_per_day is not None
        if self.settings.mode is not Mode.AUTO or not counted:
            return ()
        since_ms = self._now_ms() - int(1000 * DAY_S)
        return self._records.usage_since(cluster_id, since_ms)

    def _enter_watched(self, seen: Snapshot | None) -> None:
        """Enter the phase of a reachable cluster, with or without loads."""
        if self._runner.moving:
            if self._state.phase is Phase.UNREACHABLE:
                self._enter(Phase.RUNNING, "the cluster is reachable again")
        elif seen is None:
            message, ahead_s = "measuring the load of each partition", self._state.left_out_ahead_s
            if ahead_s > 0:
                message = f"{message}; {ahead_words(ahead_s)}"
            self._enter(Phase.MEASURING, message)

    def _judge(self, snapshot: Snapshot, goals: Goals, evaluation: Evaluation) -> None:
        """Update why the cluster needs a plan, and since when."""
        state, now_s = self._state, self._parts.steady()
        state.membership = state.membership.seen(snapshot.header.brokers, now_s)
        state.min_isr = state.min_isr.seen(state.replication, now_s)
        auto = self.settings.mode is Mode.AUTO
        after_s = self._policy.dead_broker_after_s if auto else 0.0
        state.needs = plan_needs(
            snapshot,
            goals,
            evaluation,
            given_up=state.membership.given_up(after_s, now_s),
            below=state.min_isr.rows(snapshot, now_s),
            slow=state.slow,
        )
        if state.ended_at_s is not None and state.loads_from_s >= state.ended_at_s:
            sides, after_s = sides_of(evaluation, goals), now_s - state.ended_at_s
            state.oscillation = state.oscillation.seen(sides, after_s)
        since, of_load_s = state.needed_since_s, now_s - self._level_age_s()
        state.needed_since_s = {
            n.reason: since.get(n.reason, now_s if n.repairs else of_load_s) for n in state.needs
        }
        if all(need.repairs for need in state.needs):
            state.was_balanced = True

    def _level_age_s(self) -> float:
        """Seconds for which loads have been as they are now; 0 where that is not known."""
        state = self._state
        return level_age_s(state.steadiness, self._now_ms(), was_balanced=state.was_balanced)

    def _act(self) -> None:
        with self._changed:
            state = self._state
            result = self._take_result()
            if state.snapshot is None or state.evaluation is None or self.running:
                self._interrupt()
                return
            if state.seen is None or self._is_standby(state.snapshot):
                # No loads have been measured since the connection was lost, or another acts.
                return
            if result is not None:
                self._hold_unless(result.best is not None and bool(result.best.moves))
                self._enter(*after_result(result))
                return
            if self.proposals.solving or self._resumes_interrupted() or self._continues_task():
                return
            facts = self._decision_inputs(state.snapshot)
            step, reason = self._next_step(facts)
            again, words = self._record(facts, step, reason)
            self._hold_unless(step is not Decision.REFUSE)
            if self._answered_by_a_person(facts, step, reason):
                return
            plan, result = self.proposals.plan, self.proposals.result
            if self._cleans_up(plan if step is Decision.APPROVE else None):
                return
        if step is Decision.PLAN:
            measured = confidence_text(state.steadiness)
            self._enter(Phase.SOLVING, "; ".join(filter(None, (reason, measured))))
            with self._changed:
                inputs = self._inputs(state.snapshot, state.evaluation)
                now_s = self._parts.steady()
                state.answered = SolvedInputs.of(inputs, now_s, state.answered)
                state.made_for, state.planned_at_s = facts.acts, now_s
                self.proposals.begin(self._adapted, self._noise(state.evaluation))
        elif step is Decision.APPROVE and plan is not None:
            self._approve(plan, "the limits of --auto", facts.acts)
        else:
            if step is Decision.REST:
                unknown = load_warning(state.snapshot, self.settings.goals)
                reason = "; ".join(filter(None, (reason, unknown)))
            status = after_decision(step, reason, state.evaluation, result)
            self._rule(status, again, (step, holding_rule(facts, step), words))
            state.held_up = status.message if long_wait_rule(facts, step) else ""

    def _rule(self, status: Status, again: str, ruled: tuple[Decision, str, str]) -> None:
        """Enter the phase of a decision; logs it where the rule is another within a phase.

        again: when the decision is reconsidered. ruled: the decision, its rule, and what tells its
        reason from others.
        """
        with self._changed:
            state = self._state
            before, state.ruled = state.ruled, ruled
            if state.phase is status.phase and ruled != before and again:
                text = f"{status.phase}: {status.message}; reconsidered {again}"
                self.note(text, LogEvent.LOOP_DECISION, level=status.level)
        self._enter(*status, reconsidered=again)

    def _next_step(self, facts: DecisionInputs) -> tuple[Decision, str]:
        """As `next_step`; where signatures are required, the limits of `--auto` approve nothing."""
        step, reason = next_step(facts)
        if step is Decision.APPROVE and self._parts.signed is not None:
            return Decision.ASK, "it needs a signature (require_signature)"
        return step, reason

    def _is_standby(self, snapshot: Snapshot) -> bool:
        """Whether another process leads; prepares for acting once this one does."""
        words = "" if self._parts.stands_by is None else self._parts.stands_by()
        if words:
            self._stood_by = True
            self._enter(Phase.STANDBY, words)
        elif self._stood_by:
            # The process that led before may have left a run, settings and used up limits.
            self.resumes, self._looked = True, False
            self._stood_by = False
            self.previous_runs.look_again()
            self._cleanups.leader_changed()
            if self._tasks is not None:
                self._tasks.look_again()
            self._state.day = self._day(snapshot.header.cluster_id)
        return bool(words)

    def _resumes_interrupted(self) -> bool:
        """Resume the run that an earlier process left, if that is due; whether it has begun."""
        if not self._looked:
            # A cleanup, which looks like a run in progress, must not begin before.
            self._looked = True
            self.previous_runs(self.view)
        if not self.resumes or self.paused or self._retry():
            return False
        if self.previous_runs.interrupted is None:
            self.resumes = False
            return False
        self._resuming, self.resumes = True, False
        try:
            self.previous_runs.resume("plimsoll service --resume")
        except GuardrailRefused as exc:
            self._resuming = False
            self._failed(exc)
        return True

    def _continues_task(self) -> bool:
        """Continue a task that no process works on; whether it has, or does not know yet."""
        state, watch = self._state, self._tasks
        if watch is None or state.snapshot is None:
            return False
        watch.look(state.snapshot.header.cluster_id)
        if watch.is_first:
            # A cleanup or a plan of the loop's own must not come before.
            return True
        if self.paused or (state.ended_at_s is not None and state.loads_from_s < state.ended_at_s):
            return False
        task = watch.take()
        if task is None:
            return False
        self._begin_task(task, state.snapshot)
        return True

    def _begin_task(self, task: OpenTask, snapshot: Snapshot) -> None:
        """Start the work on a task, as a run; GuardrailRefused as `_begin_run`."""
        title = task.title

        def work(steering: Steering) -> str:
            site = TaskSite(
                snapshot=snapshot,
                observe=lambda: self._observed_anew(steering),
                steering=steering,
                watch=self._run_progressed,
                planned=self._executes,
                say=lambda words: self.note(f"{title}: {words}", LogEvent.TASK_STATE),
                moves_in_flight=self._policy.limits.moves_in_flight,
            )
            return task.work(site)

        with self._changed:
            self._refuse_while_running()
            self.note(f"{title} is continued", LogEvent.TASK_STATE, plan_hash="")
            message = f"working on {title}"
            self._begin_run(message, lambda: self._runner.work(task.by, work), "")

    def _executes(self, plan_hash: str) -> None:
        """Remember which plan the run or task in progress executes."""
        with self._changed:
            self._state.executing = plan_hash

    def _observed_anew(self, steering: Steering) -> Snapshot:
        """Wait for a snapshot whose loads were all measured after the call; from a task's thread.

        Raises WorkInterrupted when the loop ends, or a person stops the work.
        """
        began_s = self._parts.steady()
        with self._changed:
            while not (self._closing.is_set() or steering.stopping.is_set()):
                snapshot = self._state.snapshot
                if snapshot is not None and self._state.loads_from_s >= began_s:
                    return snapshot
                self._changed.wait(OBSERVE_S)
        raise WorkInterrupted

    def _task_ended(self, ended: str | PlimsollError) -> None:
        """Report how the work on a task ended, and let loads settle."""
        self._note_steering()
        failed = isinstance(ended, PlimsollError)
        with self._changed:
            if failed:
                self._cleanups.run_failed(self._parts.steady())
            self._forget_plan()
            words, level = f"the work on a task ended: {ended}", "warning" if failed else "info"
            event = LogEvent.TASK_FAILED if failed else LogEvent.TASK_STATE
            self.note(words, event, level=level)
            self._enter(Phase.SETTLING, words, level)
            self._state.executing = None

    def _answered_by_a_person(self, facts: DecisionInputs, step: Decision, reason: str) -> bool:
        """Ask a person where a plan needs one; whether an approved plan has been started."""
        asked, plan = self._questions, facts.plan
        if asked is None or self._state.snapshot is None:
            return False
        if not self._restored:
            self._restored = True
            asked.restore(self._state.snapshot.header.cluster_id, self._now_ms(), answers=False)
        if asked.is_restored and asked.is_approved:
            # A pause holds back its run, and nothing else may take its place meanwhile.
            found = None if self.paused else asked.restored_approval()
            if found is not None:
                self._start_approved(*found)
            return found is not None
        question = asked.waiting
        if question is not None and (by := asked.rejection()):
            self.note(
                f"plan {question.plan_hash[:12]} rejected by {by}; it is not asked for again",
                LogEvent.PLAN_REJECTED,
                plan_hash=question.plan_hash,
            )
        self._withdraw_if_invalid(asked, facts, step)
        if step in (Decision.ASK, Decision.REFUSE) and plan is not None:
            trigger = next((need.trigger.value for need in facts.pursued), "")
            if asked.ask(plan, trigger, reason, self._now_ms()):
                self.note(
                    f"plan {plan.hash[:12]} waits for approval: {reason}",
                    LogEvent.PLAN_WAITING,
                    level="warning",
                    plan_hash=plan.hash,
                )
        if self.paused or asked.is_restored or plan is None:
            return False
        # In every step that leaves the plan valid: what a person approves waits for no rule.
        approval = asked.approval()
        if approval is not None:
            self._approve(plan, approval.by)
        return approval is not None

    def _withdraw_if_invalid(self, asked: Questions, facts: DecisionInputs, step: Decision) -> None:
        """Withdraw the waiting plan once it is outdated, replaced or no longer needed."""
        question, plan = asked.waiting, facts.plan
        if question is None:
            return
        if asked.is_restored:
            why = OF_EARLIER.get(step, "")
        elif plan is None:
            why = WITHDRAWING.get(step, "a run has begun since it was made")
        elif plan.hash != question.plan_hash:
            why = "a newer plan replaced it"
        elif facts.outdated and step not in (Decision.REST, Decision.IGNORE):
            why = f"the cluster changed: {'; '.join(self.proposals.shown[1].changes)}"
        else:
            why = WITHDRAWING[Decision.PLAN] if will_replace(facts) else WITHDRAWING.get(step, "")
        if why:
            asked.withdraw(why)
            self.note(
                f"the waiting plan is withdrawn: {why}",
                LogEvent.PLAN_WITHDRAWN,
                plan_hash=question.plan_hash,
            )

    def _start_approved(self, plan: Plan, approval: PlanAnswer) -> None:
        """Start an earlier process's plan that was approved; its run checks the cluster."""
        self._note_approved(plan, approval.by)
        # No trigger of `--auto` may end it as one of its own.
        self._state.auto_run = None
        message = f"executing plan {plan.hash[:12]}"
        try:
            self._begin_run(message, lambda: self._runner.start(plan, approval.by), plan.hash)
        except (ConfigError, GuardrailRefused) as exc:
            self._failed(exc)

    def _hold_unless(self, useful: bool) -> None:
        """Let triggers that ask have their plan if those that act have none of use."""
        if not useful:
            self._state.held = self._state.made_for or self._state.held

    def _record(self, facts: DecisionInputs, step: Decision, reason: str) -> tuple[str, str]:
        """Keep a decision of `--auto` for `plimsoll why`.

        Returns when it is reconsidered, in words, and what tells its reason from others; both are
        empty where no decisions are kept.
        """
        state, now_ms = self._state, self._now_ms()
        if self._parts.decided is not None:
            self._parts.decided(facts, step, reason)
        if self._decisions is None or state.snapshot is None:
            return "", ""
        record = record_of(
            facts, step, reason, cluster_id=state.snapshot.header.cluster_id, at_ms=now_ms
        )
        self._decisions.note(record)
        until_ms = record.until_ms
        again = when_text(record, "" if until_ms is None else clock_text(until_ms, now_ms))
        return again, record.rule_key

    def _cleans_up(self, plan: Plan | None) -> bool:
        """Start restoring settings that previous runs left, if that is due.

        plan: the plan to execute afterwards. Returns whether a cleanup has started.
        """
        seen, now_s = self._state.snapshot, self._parts.steady()
        if self.settings.mode is not Mode.AUTO or seen is None:
            return False
        plan_hash = plan.hash if plan is not None else ""
        due = self._cleanups.due(seen.header.cluster_id, now_s, plan_hash)
        if due:
            self._runner.clean_up()
        return due

    def _take_result(self) -> Result | None:
        try:
            return self.proposals.take()
        except PlimsollError as exc:
            if self.settings.mode is not Mode.AUTO:
                raise
            self._failed(exc)
            return None

    def _approve(self, plan: Plan, by: str, serves: frozenset[Trigger] = frozenset()) -> None:
        """serves: triggers that a run of `--auto` acts on; empty where a person approved it."""
        state = self._state
        began_s = self._parts.steady()
        state.auto_run = AutoRun(serves=serves, began_s=began_s) if serves else None
        check = partial(self._check_journals, plan) if serves else None
        try:
            self._start(plan.hash, by, check)
        except (ConfigError, GuardrailRefused, PlanOutdated) as exc:
            self._failed(exc)
            return
        if state.evaluation is not None:
            sides = sides_of(state.evaluation, self.settings.goals)
            state.oscillation = state.oscillation.began(sides)

    def _check_journals(self, plan: Plan) -> None:
        """Refuse a plan of `--auto` that runs of other machines, known only now, leave no room for.

        Raises GuardrailRefused where a limit per day is reached, PlanOutdated where a partition of
        the plan was moved since.
        """
        limits, now_ms, day = self._policy.limits, self._now_ms(), self._day(plan.cluster_id)
        wait_s = max(
            runs_wait_s(limits, day, now_ms),
            bytes_wait_s(limits, day, now_ms, plan.bytes_to_copy or 0),
        )
        if wait_s > 0:
            raise GuardrailRefused(
                "runs of other machines have reached a limit per day; the next run may start in "
                f"{seconds_text(math.ceil(wait_s))}"
            )
        known = self._state.snapshot
        if known is None:
            return
        now = with_moves(known, self.settings.goals, self._records.moves_since)
        new = {*now.header.recent_moves} - {*known.header.recent_moves}
        moved = {PartitionId(move.topic, move.partition) for move in new}
        for move in plan.moves:
            if move.id in moved:
                raise PlanOutdated(f"another machine has moved {move.id} since this plan was made")

    def _interrupt(self) -> None:
        """End the run of `--auto` after its in-flight moves if a more urgent trigger fires."""
        state = self._state
        if state.auto_run is None or not self._runner.moving:
            return
        since, now_s = state.needed_since_s, self._parts.steady()
        need = overriding(state.auto_run, state.needs, since, self._policy.triggers, now_s)
        if need is None:
            return
        state.auto_run = replace(state.auto_run, overridden_by=need.trigger)
        self.note(
            f"run overridden by {need.trigger}: {need.message}",
            LogEvent.RUN_OVERRIDDEN,
            level="warning",
        )
        # Not `stop`, which would be logged as the operator's.
        self.steering.stopping.set()

    def _failed(self, error: PlimsollError) -> None:
        """Make `--auto` retry later after any error."""
        with self._changed:
            state, now_s = self._state, self._parts.steady()
            # Time alone does not fix these.
            hard = isinstance(error, RightsMissing | ConfigError)
            failures = state.failures
            state.failures = failures.at_most(now_s) if hard else failures.again(now_s)
            state.failure, state.answered = error, None
            self._enter(Phase.NO_PLAN, _retry_words(error, state.failures.wait_s), level="error")
        if self._parts.failed is not None:
            self._parts.failed(error)

    def _adapted(self, snapshot: Snapshot, goals: Goals) -> Goals:
        """The goals for a solve: at its effort, and for `--auto` within its limits."""
        if self.settings.mode is not Mode.AUTO:
            return self._at_effort(snapshot, goals)
        state, now_s = self._state, self._parts.steady()
        allowed = self._allowed()
        given_up = state.membership.given_up(self._policy.dead_broker_after_s, now_s)
        dead = {broker.id for broker in dead_brokers(snapshot)}
        if Trigger.SLOW_BROKER in allowed:
            goals = relieving(snapshot, goals)
        goals, over = staged(
            snapshot,
            tightened(goals, self._policy.limits),
            waited=dead - given_up if Trigger.DEAD_BROKER in allowed else dead,
            hurried=state.min_isr.rows(snapshot, now_s) if Trigger.UNDER_MIN_ISR in allowed else (),
            repair_dirs=Trigger.DEAD_LOG_DIR in allowed,
            repair_rules=Trigger.RULE_VIOLATED in allowed,
        )
        for warning in placeless_warnings(snapshot, goals):
            self.warn(warning, LogEvent.CLUSTER_WARNING)
        if over:
            self.note(
                "the limits of --auto leave "
                f"{count_text(over, 'partition')} to repair for later runs",
                LogEvent.PLAN_PARTIAL,
            )
        return self._at_effort(snapshot, goals)

    def _at_effort(self, snapshot: Snapshot, goals: Goals) -> Goals:
        """The goals at the chosen or configured effort; warns of what that leaves."""
        found = goals_at(snapshot, goals, self.proposals.effort or self.settings.effort)
        for note in found.notes:
            self.warn(note, LogEvent.PLAN_PARTIAL)
        return found.goals

    def _allowed(self) -> frozenset[Trigger]:
        """Triggers that the next plan may serve: to act all set to `act`, to ask all not off."""
        served = {Response.ACT} if self._state.made_for else {Response.ACT, Response.ASK}
        response = self._policy.triggers.response
        return frozenset(t for t in Trigger if response(t) in served)

    def _inputs(self, snapshot: Snapshot, evaluation: Evaluation) -> Inputs:
        return Inputs.of(snapshot, self.settings.goals, evaluation, self._state.needs)

    def _is_answered(self, snapshot: Snapshot) -> bool:
        state = self._state
        if state.answered is None or state.evaluation is None:
            return False
        if self.proposals.solve_in_s > 0:
            return True
        now = self._inputs(snapshot, state.evaluation)
        goals, span_s = self.settings.goals, _span_s(snapshot)
        return not state.answered.differs(now, span_s, goals)

    def _retry(self) -> str:
        state = self._state
        left_s = state.failures.left_s(self._parts.steady())
        if state.failure is None or left_s <= 0:
            return ""
        return _retry_words(state.failure, math.ceil(left_s))

    def _reach_s(self, snapshot: Snapshot) -> float:
        """Seconds that the loads of a snapshot reach back from now."""
        header = snapshot.header
        newest_ms = max((s.newest_sample_ms for s in header.sources), default=0)
        newest_s = (newest_ms or header.taken_at_ms) / 1000
        return max(0.0, self._parts.clock() - newest_s) + _window_s(snapshot)

    def _ahead_s(self) -> float:
        """As in `DecisionInputs`; loads that have arrived are overtaken by the clock."""
        state = self._state
        silent_s = self._parts.steady() - state.seen_at_s
        left_out_s = state.left_out_ahead_s if silent_s > LEFT_OUT_S else 0.0
        return max(0.0, state.ahead_s - silent_s, left_out_s)

    def _decision_inputs(self, snapshot: Snapshot) -> DecisionInputs:
        state, now_s = self._state, self._parts.steady()
        plan, proposed = self.proposals.shown
        schedule, at_s = self._policy.schedule, self._parts.clock()
        wait_s = opens_in_s(schedule, at_s)
        answered = self._is_answered(snapshot)
        if not answered:
            state.held = frozenset()
        dead, after_s = {b.id for b in dead_brokers(snapshot)}, self._policy.dead_broker_after_s
        facts = DecisionInputs(
            now_s=now_s,
            mode=self.settings.mode,
            limits=self._policy.limits,
            loads_from_s=state.loads_from_s,
            needs=state.needs,
            triggers=self._policy.triggers,
            overridden_by=state.overridden_by,
            held=state.held,
            made_for=state.made_for,
            awaited=state.membership.awaited(
                dead, after_s, now_s, AFTER_WAITING[self._policy.triggers.dead_broker]
            ),
            awaited_s=tuple(sorted(state.membership.waits(dead, after_s, now_s).values())),
            unavailable=unavailable_text(snapshot),
            needed_since_s=None,
            was_balanced=state.was_balanced,
            shift=self._shift(snapshot),
            silent_s=now_s - state.seen_at_s,
            ahead_s=self._ahead_s(),
            ended_at_s=state.ended_at_s,
            copying=self._moving(),
            copied_at_s=state.copied_at_s,
            plan=plan,
            outdated=bool(proposed.changes),
            answered=answered,
            solve_in_s=self.proposals.solve_in_s,
            quiet_in_s=state.membership.quiet_in_s(now_s),
            retry=self._retry(),
            retry_s=state.failures.left_s(now_s) if state.failure is not None else 0.0,
            plan_wanted=self.proposals.wanted,
            oscillation=state.oscillation,
            closed=closed_text(schedule, at_s, wait_s),
            opens_in_s=wait_s,
            exempt=frozenset(schedule.exempt),
            runs_wait_s=runs_wait_s(self._policy.limits, state.day, self._now_ms()),
            bytes_wait_s=bytes_wait_s(
                self._policy.limits,
                state.day,
                self._now_ms(),
                (plan.bytes_to_copy or 0) if plan is not None else 0,
            ),
            runs_left=runs_left(self._policy.limits, state.day, self._now_ms()),
            bytes_left=bytes_left(self._policy.limits, state.day, self._now_ms()),
            paused=self.paused,
        )
        since = (state.needed_since_s.get(need.reason, now_s) for need in facts.pursued)
        needed_since_s = min(since, default=None)
        return replace(
            facts,
            needed_since_s=needed_since_s,
            shifted_since_plan=self._has_shifted_since_plan(now_s, needed_since_s),
        )

    def _shift(self, snapshot: Snapshot) -> LoadShift:
        evaluation = self._state.evaluation
        if evaluation is None or self.settings.mode is not Mode.AUTO:
            return LoadShift()
        goals = with_topic_placements(self.settings.goals, snapshot)
        return LoadShift.of(self._state.steadiness, evaluation, goals)

    def _noise(self, evaluation: Evaluation | None) -> float:
        """What the noise of the newest loads adds to F."""
        if evaluation is None:
            return 0.0
        return noise_of_objective(self._state.steadiness, evaluation, self.settings.goals)

    def _has_shifted_since_plan(self, now_s: float, needed_since_s: float | None) -> bool:
        """Whether the newest plan cannot have known the load that a plan is needed for."""
        state = self._state
        if state.planned_at_s is None:
            return False
        if needed_since_s is not None and needed_since_s > state.planned_at_s:
            return True
        steadiness = state.steadiness
        changed = steadiness is not None and steadiness.changed_ms is not None
        return changed and now_s - self._level_age_s() > state.planned_at_s

    # ---- events of runs, from their thread

    def _run_progressed(self, progress: RunProgress) -> None:
        """Log what changed in the run, and show it."""
        self._note_steering()
        self.previous_runs.saw(progress)
        self._executes(progress.plan_hash)
        with self._changed:
            for line in run_lines(self._state.run, progress):
                self.note(line.text, line.event, level=line.level, narrated=True)
            self._state.run = progress
        self._publish()

    def _run_ended(self, report: RunReport) -> None:
        """Record the report, and let loads settle."""
        self._note_steering()
        self._resuming = False
        message, complete = _ended_text(report), report.state is RunState.DONE
        with self._changed:
            state, now_s = self._state, self._parts.steady()
            state.reports.append(report)
            overridden = self._overridden(report)
            if overridden:
                message = f"{message}; overridden by {overridden}"
            self._forget_plan()
            if complete or overridden:
                state.failures, state.failure = state.failures.reset(), None
            else:
                self._cleanups.run_failed(now_s)
                if self.settings.mode is Mode.AUTO:
                    state.failure = ExecutionStopped(message)
                    state.failures = state.failures.again(now_s)
            level = "info" if complete or overridden else "warning"
            self._enter(Phase.SETTLING, message, level)
            state.executing = None

    def _overridden(self, report: RunReport) -> Trigger | None:
        """Remember which trigger interrupted the run that has ended; None for none."""
        state, stopped = self._state, report.state is RunState.STOPPED
        ended, state.auto_run = state.auto_run, None
        state.overridden_by = ended.overridden_by if ended is not None and stopped else None
        return state.overridden_by

    def _run_failed(self, error: PlimsollError) -> None:
        """Report why the run could not start or continue, and drop its plan."""
        self._note_steering()
        # Whether the run can be resumed is not known before the cluster answers.
        self.resumes = self._resuming and isinstance(error, ClusterUnreachable)
        self._resuming = False
        if self.resumes:
            self.previous_runs.look_again()
            self._looked = False
        with self._changed:
            self._cleanups.run_failed(self._parts.steady())
            run, plan = self._state.run, self.proposals.plan
            began = (
                run is not None
                and (plan is None or run.plan_hash == plan.hash)
                and run.state is not RunState.CHECKING
            )
            self._forget_plan(ended=began)
            if run is not None and run.state is RunState.CHECKING:
                refused = replace(run, state=RunState.REFUSED, reason=str(error))
                # An interrupted run still waits to be resumed; show that instead.
                interrupted = self.previous_runs.interrupted
                self._state.run = refused if interrupted is None else None
            if self.settings.mode is Mode.AUTO:
                self._failed(error)
            else:
                self._enter(Phase.NO_PLAN, str(error), level="error")
            self._state.executing = None

    def _cleaned_up(self, done: Sequence[str], error: PlimsollError | None) -> None:
        """Log the settings restored after previous runs, and what prevented more."""
        for line in done:
            self.note(line, LogEvent.RUN_SETTINGS, level="warning")
        if error is not None:
            self.note(
                f"cannot restore the settings left by previous runs yet: {error}",
                LogEvent.RUN_SETTINGS,
                level="warning",
            )
        self._wake.set()

    def _forget_plan(self, *, ended: bool = True) -> None:
        """Drop the plan, so that the loop makes another.

        ended: partitions may have moved, so earlier loads no longer count.
        """
        state = self._state
        self.proposals.forget(ended=ended)
        state.answered = None
        if ended:
            state.ended_at_s = self._parts.steady()
            state.needed_since_s, state.was_balanced = {}, False

    def _enter(
        self, phase: Phase, message: str, level: str = "info", *, reconsidered: str = ""
    ) -> None:
        """reconsidered: when the decision of `--auto` behind it is, in words."""
        with self._changed:
            if phase is not self._state.phase:
                again = f"; reconsidered {reconsidered}" if reconsidered else ""
                text = f"{phase}: {message}{again}"
                self.note(text, LogEvent.LOOP_PHASE, level=level, narrated=True)
            self._state.phase, self._state.message = phase, message
            self._state.reconsidered = reconsidered
        self._publish()

    def note(
        self,
        text: str,
        event: LogEvent,
        *,
        level: str = "info",
        narrated: bool = False,
        plan_hash: str | None = None,
    ) -> None:
        """Write a line to the log; everything as `DecisionLog.note` has it.

        plan_hash: by default that of the run or task in progress, or else of the newest plan.
        """
        self._log.note(text, event, level=level, narrated=narrated, plan_hash=plan_hash)

    def warn(self, text: str, event: LogEvent = LogEvent.LOOP_WARNING) -> None:
        """Write a warning to the log, unless it repeats a competing rebalancer's."""
        # The checks of a run find them again after the plan became ready.
        if text not in self._state.rebalancers:
            self.note(text, event, level="warning")

    def _warner(self, event: LogEvent) -> Callable[[str], None]:
        return lambda text: self.warn(text, event)

    def acted(self, words: str) -> None:
        """Write to the log what the operator did."""
        self.note(f"{self.settings.operator}: {words}", LogEvent.OPERATOR_ACTION)

    def _note_steering(self) -> None:
        with self._changed:
            for line in self.steering.recorded():
                self.note(line, LogEvent.RUN_STEERED)

    def _publish(self) -> None:
        view = self.view
        with self._changed:
            self._changed.notify_all()
        for subscriber in tuple(self._subscribers):
            subscriber(view)

    def _plan_hash(self) -> str:
        """Hash of the plan that a line is about which names none; empty without one."""
        executing = self._state.executing
        if executing is not None:
            return executing
        plan = self.proposals.plan
        return plan.hash if plan else ""

    def _now_ms(self) -> int:
        return int(1000 * self._parts.clock())


def _window_s(snapshot: Snapshot) -> float:
    """Seconds that each load of a snapshot is averaged over."""
    return max((s.window_s for s in snapshot.header.sources), default=0.0)


def _span_s(snapshot: Snapshot) -> float:
    """Seconds that loads are averaged over before they can require another solve."""
    return AVERAGED_WINDOWS * _window_s(snapshot)


def _planned_otherwise(before: AutoPolicy, after: AutoPolicy) -> bool:
    """Whether plans under one policy may differ from those under another."""
    waiting = after.dead_broker_after_s != before.dead_broker_after_s
    return waiting or _of_plans(before.limits) != _of_plans(after.limits)


def _makes_plans(loop: Loop) -> tuple[object, ...]:
    """The settings of a loop of `--auto` that decide which plan is made."""
    settings, policy = loop.settings, loop.policy
    waits_s = policy.dead_broker_after_s
    return settings.goals, settings.solve, settings.effort, waits_s, _of_plans(policy.limits)


def _of_plans(limits: AutoLimits) -> tuple[object, ...]:
    """The limits that decide which plan is made, and whether it may be executed."""
    return limits.budgets, limits.min_gain


def _ended_text(report: RunReport) -> str:
    """How a run ended, as one line: `run R stopped: 3 of 5 moves; a broker is dead`."""
    done = sum(move.state is MoveState.DONE for move in report.moves)
    moves = count_text(len(report.moves), "move")
    made = moves if done == len(report.moves) else f"{done} of {moves}"
    reason = f"; {report.reason}" if report.reason else ""
    return f"run {report.run_id} {report.state}: {made}{reason}"


def _retry_words(error: PlimsollError, left_s: float) -> str:
    """Why an attempt failed, and when the next one follows."""
    return f"{str(error).removesuffix('.')}; retrying in {seconds_text(left_s)}"

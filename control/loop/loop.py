"""The loop observe -> plan -> approve -> apply, driven by screen and `--auto` alike.

Two front ends, one engine: only the source of approval differs. The loop has a thread
of its own, and a run has another, so that the cluster is watched while it changes.
What to do next is decided in `control.loop.policy`.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from control.loop.cleanup_schedule import CleanupSchedule
from control.loop.decision_log import run_lines
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.phase import Status, after_answer, after_step
from control.loop.policy import Facts, Step, next_step
from control.loop.ports import Observer
from control.loop.previous_runs import Past
from control.loop.rebalancer_watch import Rivals
from control.loop.run_thread import Runner
from control.loop.state import LoopState
from control.loop.view import LogLine, LoopView, Mode, Phase, Retry
from control.planning.plan_inputs import (
    AVERAGED_WINDOWS,
    Answered,
    Inputs,
    loads_of,
)
from control.planning.plan_needs import plan_needs
from control.planning.planner_thread import Proposals
from control.planning.staging import staged
from control.planning.validate import with_recent_moves
from control.settings.auto_limits import tightened
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
from model.plan.outages import dead_brokers
from model.plan.plan import Plan
from model.plan.unplaceable import placeless_warnings
from model.plan.warnings import load_warning
from model.run import MoveState, RunProgress, RunReport, RunState
from model.snapshot.snapshot import Snapshot, StorageKind
from model.units import count_text, seconds_text
from solver.report.result import Result

if TYPE_CHECKING:
    from executor.schedule.estimate import Forecast

logger = logging.getLogger("plimsoll.control")

RETRY_S = 5.0
"""Time between two attempts to connect."""


WATCH_RETRY_S = 60.0
"""The same after `--auto` could not watch for another reason, such as a right."""


class Loop(Closing):
    """One cluster, watched and kept level until `close`."""

    def __init__(self, settings: LoopSettings, parts: LoopParts) -> None:
        self.settings = settings
        self.error: PlimsollError | None = None
        """What ended the loop, or refused what a policy had approved."""
        self.clock = parts.clock
        self._parts = parts
        self._state = LoopState()
        self._changed = threading.Condition(threading.RLock())
        self._closing = threading.Event()
        self._wake = threading.Event()
        self.proposals = Proposals(
            parts.planner,
            settings.goals,
            settings.solve,
            clock=parts.clock,
            steady=parts.steady,
            lock=self._changed,
            wake=self._wake.set,
            note=self.warn,
            acted=self.acted,
        )
        self._leftovers = CleanupSchedule(settings.journal_dir)
        self._watcher = threading.Thread(target=self._main, name="loop", daemon=True)
        self._runner = self._make_runner()
        self.past = Past(self, self._runner, settings.journal_dir)
        self._rivals = None if self._runner is None else self._make_rivals(self._runner)
        self._subscribers: list[Callable[[LoopView], None]] = [self.past]

    def __enter__(self) -> Self:
        self._watcher.start()
        return super().__enter__()

    def close(self) -> None:
        """Let moves that run finish, then stop everything."""
        if self.running:
            self.steering.stop()
        self._closing.set()
        self._wake.set()
        if self._watcher.is_alive():
            self._watcher.join()
        # After the watcher, which could start another solve.
        self.proposals.close()
        if self._runner is not None:
            self._runner.join()

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call `subscriber`, from a thread of the loop's, with each new view."""
        self._subscribers.append(subscriber)

    @property
    def view(self) -> LoopView:
        """The loop as it stands."""
        with self._changed:
            state = self._state
            seen = state.snapshot
            cluster = seen.header.cluster_id[:8] if seen is not None else ""
            return LoopView(
                at_ms=self._now_ms(),
                phase=state.phase,
                mode=self.settings.mode,
                cluster_name=self.settings.name or cluster,
                bootstrap=self.settings.bootstrap,
                message=state.message,
                brokers=state.brokers,
                replication=state.replication,
                snapshot=state.snapshot,
                evaluation=state.evaluation,
                plan=self.proposals.plan,
                proposed=self.proposals.view,
                run=state.run,
                log=tuple(state.log),
                retry=state.retry,
            )

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """Reports of the newest runs that ended, oldest first."""
        with self._changed:
            return tuple(self._state.reports)

    @property
    def result(self) -> Result | None:
        """The answer of the last solve."""
        with self._changed:
            return self.proposals.result

    @property
    def failure(self) -> PlimsollError | None:
        """Why the last attempt of `--auto` failed; None after one that did not."""
        return self._state.failure

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self._runner is not None and self._runner.running

    def approve(self, plan_hash: str, by: str) -> None:
        """Carry out the plan with this hash.

        Raises
        ------
        GuardrailRefused
            Read-only, a run goes on, or the plan is not the newest one.
        PlanOutdated
            The cluster is no longer the one that was planned for.
        """
        with self._changed:
            plan, changes = self.proposals.plan, self.proposals.view.changes
            if self._runner is None:
                raise GuardrailRefused(
                    "plimsoll is read-only; start it with --allow-changes"
                )
            if self.running:
                raise GuardrailRefused("a run goes on; wait for its end or stop it")
            if plan is None or plan.hash != plan_hash:
                raise GuardrailRefused(
                    "this plan was replaced by a newer one: look at that, approve that"
                )
            if self.proposals.awaited:
                raise GuardrailRefused(
                    "another plan was asked for: look at that, approve that"
                )
            if changes:
                words = "; ".join(changes)
                raise PlanOutdated(f"the cluster changed since this plan: {words}")
            self.note(f"plan {plan.hash[:12]} approved by {by}")
            self._enter(Phase.RUNNING, f"carrying out plan {plan.hash[:12]}")
            self.proposals.give_up()
            self._runner.start(plan, by)

    def preview(self, plan: Plan) -> "Forecast":
        """What a plan will take; asks the cluster, and raises as a run would."""
        if self._runner is None:
            raise GuardrailRefused(
                "plimsoll is read-only; start it with --allow-changes"
            )
        return self._runner.preview(plan)

    def begin(self, words: str, start: Callable[[], None]) -> None:
        """Let another run begin than that of the newest plan; as `past.Host` says."""
        with self._changed:
            if self.running:
                raise GuardrailRefused("a run goes on; wait for its end or stop it")
            self._enter(Phase.RUNNING, words)
            self.proposals.give_up()
            start()

    def plan_again(self) -> None:
        """Make a new plan from the newest snapshot, level or not."""
        self.acted("plan again")
        self.proposals.want()

    @property
    def steering(self) -> Steering:
        """Of the run that goes on; where none does, nobody looks at it."""
        return Steering() if self._runner is None else self._runner.steering

    def wait(self, until: Callable[[LoopView], bool], timeout_s: float) -> bool:
        """Block until a view fits; False if the loop failed or the time is over."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not until(self.view):
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self.error is not None:
                    return False
                self._changed.wait(min(left_s, 1.0))
            return True

    # ---- the loop's thread

    def _make_runner(self) -> Runner | None:
        connect = self._parts.executor
        if connect is None:
            return None
        return Runner(
            connect,
            self,
            journal_dir=self.settings.journal_dir,
            moves_in_flight=self.settings.limits.moves_in_flight,
            operator=self.settings.operator,
        )

    def _make_rivals(self, runner: Runner) -> Rivals:
        return Rivals(runner.rebalancers, self._found_rebalancers, self._parts.steady)

    def _found_rebalancers(self, found: tuple[str, ...]) -> None:
        """Say each once, however often it is found."""
        with self._changed:
            known, self.proposals.rivals = self.proposals.rivals, found
            for words in found:
                if words not in known:
                    self.note(words, level="warning")
        if found != known:
            self._publish()

    def _search_rebalancers(self) -> None:
        plan, snapshot = self.proposals.plan, self._state.snapshot
        if self._rivals is None or plan is None or snapshot is None or self.running:
            return
        shared = any(move.storage is StorageKind.SHARED for move in plan.moves)
        if plan.moves:
            self._rivals.look(plan.hash, shared)

    def _main(self) -> None:
        while not self._closing.is_set():
            try:
                self._watch()
            except ClusterUnreachable as exc:
                if not self._state.brokers and not self.settings.patient:
                    self._fail(exc)
                    return
                self._wait_to_retry(exc)
            except PlimsollError as exc:
                # Only an operator can fix a first connection; later errors may pass.
                if not self._state.brokers or self.settings.mode is not Mode.AUTO:
                    self._fail(exc)
                    return
                self._wait_to_retry(exc, WATCH_RETRY_S)
            except Exception as exc:
                logger.exception("the loop ended")
                self._fail(PlimsollError(f"internal error: {exc!r}"))
                return

    def _wait_to_retry(self, exc: PlimsollError, wait_s: float | None = None) -> None:
        with self._changed:
            wait_s = RETRY_S if wait_s is None else wait_s
            state, now_ms = self._state, self._now_ms()
            attempt = state.retry.attempt + 1 if state.retry is not None else 2
            state.retry = Retry(attempt=attempt, since_ms=now_ms, wait_s=wait_s)
            self._enter(Phase.UNREACHABLE, str(exc), level="warning")
        self._closing.wait(wait_s)

    def _fail(self, exc: PlimsollError) -> None:
        self.error = exc
        self._enter(Phase.FAILED, str(exc), level="error")

    def _watch(self) -> None:
        # Loads measured before the connection was lost must not decide anything.
        self._state.seen = None
        with contextlib.closing(self._parts.observer()) as observer:
            observer.start()
            while self._next_tick():
                if observer.failure is not None:
                    raise observer.failure
                self._note_steering()
                self._look(observer)
                self._act()
                self._search_rebalancers()
                self._publish()

    def _next_tick(self) -> bool:
        """Wait until there is something to do; whether to do it."""
        self._wake.wait(self.settings.tick_s)
        self._wake.clear()
        return not self._closing.is_set()

    def _look(self, observer: Observer) -> None:
        brokers, seen = observer.brokers(), observer.snapshot()
        with self._changed:
            state = self._state
            state.brokers, state.replication = brokers, observer.replication()
            state.retry = None if brokers else state.retry
            if brokers:
                self._enter_watched(seen)
            if seen is None or seen is state.seen:
                return
            state.seen, now_s = seen, self._parts.steady()
            state.loads_from_s = now_s - self._reach_s(seen)
            state.snapshot = with_recent_moves(
                seen, self.settings.goals, self._parts.recent_moves
            )
            self.proposals.see(state.snapshot)
            goals = with_topic_placements(self.settings.goals, state.snapshot)
            state.evaluation = evaluate(state.snapshot, goals, ())
            if state.answered is not None:
                state.answered = state.answered.seen(
                    loads_of(state.evaluation), now_s, _span_s(seen), goals
                )
            self._judge(state.snapshot, goals, state.evaluation)

    def _enter_watched(self, seen: Snapshot | None) -> None:
        """Enter the phase of a cluster that answers, with or without loads."""
        if self._runner is not None and self._runner.moving:
            if self._state.phase is Phase.UNREACHABLE:
                self._enter(Phase.RUNNING, "the cluster is reachable again")
        elif seen is None:
            self._enter(Phase.MEASURING, "measuring the load of each partition")

    def _judge(self, snapshot: Snapshot, goals: Goals, evaluation: Evaluation) -> None:
        """Note why the cluster needs a plan, and since when."""
        state, now_s = self._state, self._parts.steady()
        state.membership = state.membership.seen(snapshot.header.brokers, now_s)
        auto = self.settings.mode is Mode.AUTO
        after_s = self.settings.dead_broker_after_s if auto else 0.0
        state.needs = plan_needs(
            snapshot,
            goals,
            evaluation,
            given_up=state.membership.given_up(after_s, now_s),
        )
        if not state.needs:
            state.needed_since_s, state.was_level = None, True
        elif state.needed_since_s is None:
            state.needed_since_s = now_s

    def _act(self) -> None:
        with self._changed:
            state = self._state
            answer = self._answer()
            if state.snapshot is None or state.evaluation is None or self.running:
                return
            if state.seen is None:
                # Since the connection was lost, no loads have been measured.
                return
            if answer is not None:
                self._enter_status(after_answer(answer))
            if answer is not None or self.proposals.solving:
                return
            step, why = next_step(self._facts(state.snapshot))
            plan, result = self.proposals.plan, self.proposals.result
            if self._cleans_up(plan if step is Step.APPROVE else None):
                return
        if step is Step.PLAN:
            self._enter(Phase.SOLVING, why)
            with self._changed:
                inputs = self._inputs(state.snapshot, state.evaluation)
                now_s = self._parts.steady()
                state.answered = Answered.of(inputs, now_s, state.answered)
                self.proposals.begin(self._adapted)
        elif step is Step.APPROVE and plan is not None:
            self._approve_by_limits(plan)
        else:
            if step is Step.REST:
                unknown = load_warning(state.snapshot, self.settings.goals)
                why = "; ".join(filter(None, (why, unknown)))
            self._enter_status(after_step(step, why, state.evaluation, result))

    def _cleans_up(self, plan: Plan | None) -> bool:
        """Whether settings that previous runs have left are being restored.

        plan: the one that is to be carried out after that.
        """
        seen, now_s = self._state.snapshot, self._parts.steady()
        auto = self.settings.mode is Mode.AUTO
        if not auto or self._runner is None or seen is None:
            return False
        plan_hash = plan.hash if plan is not None else ""
        due = self._leftovers.due(seen.header.cluster_id, now_s, plan_hash)
        if due:
            self._runner.clean_up()
        return due

    def _answer(self) -> Result | None:
        try:
            return self.proposals.take()
        except PlimsollError as exc:
            if self.settings.mode is not Mode.AUTO:
                raise
            self._failed(exc)
            return None

    def _approve_by_limits(self, plan: Plan) -> None:
        try:
            self.approve(plan.hash, by="the limits of --auto")
        except (GuardrailRefused, PlanOutdated) as exc:
            self._failed(exc)

    def _failed(self, error: PlimsollError) -> None:
        """Let `--auto` try again later, whatever happened."""
        with self._changed:
            state, now_s = self._state, self._parts.steady()
            # Time alone does not fix these.
            hard = isinstance(error, RightsMissing | ConfigError)
            failures = state.failures
            state.failures = failures.at_most(now_s) if hard else failures.again(now_s)
            state.failure, state.answered = error, None
            self._enter(
                Phase.NO_PLAN, _retry_words(error, state.failures.wait_s), level="error"
            )

    def _adapted(self, snapshot: Snapshot, goals: Goals) -> Goals:
        """The goals that `--auto` plans by: within its limits."""
        if self.settings.mode is not Mode.AUTO:
            return goals
        state, now_s = self._state, self._parts.steady()
        given_up = state.membership.given_up(self.settings.dead_broker_after_s, now_s)
        dead = {broker.id for broker in dead_brokers(snapshot)}
        goals, over = staged(
            snapshot,
            tightened(goals, self.settings.limits),
            waited=dead - given_up,
        )
        for words in placeless_warnings(snapshot, goals):
            self.warn(words)
        if over:
            self.note(
                f"{count_text(over, 'partition')} to repair left for later runs by "
                "the limits of --auto"
            )
        return goals

    def _inputs(self, snapshot: Snapshot, evaluation: Evaluation) -> Inputs:
        return Inputs.of(snapshot, self.settings.goals, evaluation, self._state.needs)

    def _is_answered(self, snapshot: Snapshot) -> bool:
        state = self._state
        if state.answered is None or state.evaluation is None:
            return False
        if self.proposals.solves.left_s(self._parts.steady()) > 0:
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
        """How far back the loads of a snapshot reach that has just arrived."""
        header = snapshot.header
        newest_ms = max((s.newest_sample_ms for s in header.sources), default=0)
        newest_s = (newest_ms or header.taken_at_ms) / 1000
        return max(0.0, self._parts.clock() - newest_s) + _window_s(snapshot)

    def _facts(self, snapshot: Snapshot) -> Facts:
        state, proposals = self._state, self.proposals
        now_s = self._parts.steady()
        return Facts(
            now_s=now_s,
            mode=self.settings.mode,
            limits=self.settings.limits,
            loads_from_s=state.loads_from_s,
            needs=state.needs,
            awaited=self._awaited(snapshot),
            needed_since_s=state.needed_since_s,
            was_level=state.was_level,
            ended_at_s=state.ended_at_s,
            plan=proposals.plan,
            outdated=proposals.outdated,
            answered=self._is_answered(snapshot),
            solve_in_s=proposals.solves.left_s(now_s),
            quiet_in_s=state.membership.quiet_in_s(now_s),
            retry=self._retry(),
            plan_wanted=proposals.wanted,
        )

    def _awaited(self, snapshot: Snapshot) -> str:
        """What is waited for before the replicas of a dead broker are moved."""
        return self._state.membership.awaited(
            {b.id for b in dead_brokers(snapshot)},
            self.settings.dead_broker_after_s,
            self._parts.steady(),
        )

    def _enter_status(self, standing: Status) -> None:
        self._enter(standing.phase, standing.message, level=standing.level)

    # ---- what the runner tells, from its thread

    def run_progressed(self, progress: RunProgress) -> None:
        """Something in the run changed."""
        self._note_steering()
        with self._changed:
            for level, text in run_lines(self._state.run, progress):
                self.note(text, level=level, narrated=True)
            self._state.run = progress
        self._publish()

    def run_ended(self, report: RunReport) -> None:
        """The run came to an end, done or stopped."""
        self._note_steering()
        done = sum(move.state is MoveState.DONE for move in report.moves)
        moves = count_text(len(report.moves), "move")
        made = moves if done == len(report.moves) else f"{done} of {moves}"
        words = f"run {report.run_id} {report.state}: {made}"
        if report.reason:
            words += f"; {report.reason}"
        with self._changed:
            self._state.reports.append(report)
            self._forget_plan()
            done = report.state is RunState.DONE
            if not done:
                self._leftovers.expect(self._parts.steady())
            self._enter(Phase.SETTLING, words, level="info" if done else "warning")
            state = self._state
            if done:
                state.failures, state.failure = state.failures.reset(), None
            elif self.settings.mode is Mode.AUTO:
                state.failure = ExecutionStopped(words)
                state.failures = state.failures.again(self._parts.steady())

    def run_failed(self, error: PlimsollError) -> None:
        """The run could not begin or go on: say why; plan anew from what is now."""
        self._note_steering()
        with self._changed:
            self._leftovers.expect(self._parts.steady())
            run, plan = self._state.run, self.proposals.plan
            began = (
                run is not None
                and (plan is None or run.plan_hash == plan.hash)
                and run.state is not RunState.CHECKING
            )
            self._forget_plan(ended=began)
            if run is not None and run.state is RunState.CHECKING:
                told = replace(run, state=RunState.REFUSED, reason=str(error))
                # One that was cut off still waits to be gone on with.
                self._state.run = told if self.past.cut_off is None else None
            if self.settings.mode is Mode.AUTO:
                self._failed(error)
            else:
                self._enter(Phase.NO_PLAN, str(error), level="error")

    def cleaned_up(self, done: Sequence[str], error: PlimsollError | None) -> None:
        """Settings of previous runs were restored, or not all of them."""
        for words in done:
            self.note(words, level="warning")
        if error is not None:
            self.note(
                f"settings that previous runs have left stay for now: {error}",
                level="warning",
            )
        self._wake.set()

    def _forget_plan(self, *, ended: bool = True) -> None:
        """Let another plan be made.

        ended: partitions may have moved, so loads of before say nothing any more.
        """
        state = self._state
        self.proposals.forget()
        state.answered = None
        if ended:
            state.ended_at_s = self._parts.steady()
            state.needed_since_s, state.was_level = None, False
            self.proposals.solves = self.proposals.solves.reset()

    def _enter(self, phase: Phase, message: str, *, level: str = "info") -> None:
        with self._changed:
            if phase is not self._state.phase:
                self.note(f"{phase}: {message}", level=level, narrated=True)
            self._state.phase, self._state.message = phase, message
        self._publish()

    def note(self, text: str, *, level: str = "info", narrated: bool = False) -> None:
        """Say something in the log; shown with the next view.

        narrated: the view's phase or run tells it, too.
        """
        with self._changed:
            plan, log = self.proposals.plan, self._state.log
            log.append(LogLine(at_ms=self._now_ms(), level=level, text=text))
        plan_hash = plan.hash[:12] if plan else None
        getattr(logger, level)(
            text, extra={"plan_hash": plan_hash, "narrated": narrated}
        )

    def warn(self, text: str) -> None:
        """Say in the log what came to nothing, or what another part warns of."""
        # A run's checks find again what was said when its plan became ready.
        if text not in self.proposals.rivals:
            self.note(text, level="warning")

    def acted(self, words: str) -> None:
        """Say in the log what the operator did."""
        self.note(f"{self.settings.operator}: {words}")

    def _note_steering(self) -> None:
        with self._changed:
            for line in self.steering.recorded():
                self.note(line)

    def _publish(self) -> None:
        view = self.view
        with self._changed:
            self._changed.notify_all()
        for subscriber in tuple(self._subscribers):
            subscriber(view)

    def _now_ms(self) -> int:
        return int(1000 * self._parts.clock())


def _window_s(snapshot: Snapshot) -> float:
    """Time that each load of a snapshot is averaged over."""
    return max((s.window_s for s in snapshot.header.sources), default=0.0)


def _span_s(snapshot: Snapshot) -> float:
    """Time that loads are averaged over before they call for another solve."""
    return AVERAGED_WINDOWS * _window_s(snapshot)


def _retry_words(error: PlimsollError, left_s: float) -> str:
    """Why an attempt failed, and when the next one is made."""
    return f"{str(error).removesuffix('.')}; trying again in {seconds_text(left_s)}"

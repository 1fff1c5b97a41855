"""Runs in a thread beside the loop: their steering, their progress and their end."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from control.loop.dependencies import PlanExecutor
from control.planning.background_call import Background, InBackground, in_thread, outcome
from executor.run.operator_control import Steering
from model.errors import GuardrailRefused, PlimsollError
from model.log_events import LogEvent, named
from model.plan.plan import Plan
from model.run import RunProgress, RunReport

if TYPE_CHECKING:
    from executor.schedule.estimate import Forecast

logger = logging.getLogger("plimsoll.control")

T = TypeVar("T")


def _read_only() -> PlanExecutor:
    raise GuardrailRefused("plimsoll is read-only; start it with --allow-changes")


@dataclass(frozen=True, kw_only=True)
class RunEvents:
    """Calls that report a run; each comes from the run's thread."""

    progressed: Callable[[RunProgress], None]
    """The state of the run or of one of its moves changed."""
    ended: Callable[[RunReport], None]
    """The run ended, complete or stopped."""
    failed: Callable[[PlimsollError], None]
    """The run could not start, or could not continue."""
    task_ended: Callable[[str | PlimsollError], None]
    """The work on a task ended: how, in words, or why it failed."""
    cleaned_up: Callable[[Sequence[str], PlimsollError | None], None]
    """Settings restored after previous runs, and why others could not be."""


class Runner:
    """Execute one plan at a time in a thread of its own.

    It has no lock: only the loop starts runs, and does so while it holds its own.
    """

    def __init__(
        self,
        connect: Callable[[], PlanExecutor] | None,
        events: RunEvents,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        operator: str = "",
        background: InBackground = in_thread,
    ) -> None:
        """Set up without connecting yet.

        connect: None when plimsoll is read-only. operator: user name logged for pauses,
        aborts and throttle changes. background: where runs and cleanups run.
        """
        self._operator = operator
        self._background = background
        self._connect = connect or _read_only
        self._events = events
        self._journal_dir = journal_dir
        self.moves_in_flight = moves_in_flight
        """Moves in progress at once, of the runs that are still to start."""
        self.steering = Steering()
        """Operator control of the current run, or of the last one."""
        self._thread: Background | None = None
        self._cleaning = False

    @property
    def running(self) -> bool:
        """Whether a run or a cleanup is in progress."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def moving(self) -> bool:
        """Whether a run of moves is in progress, not a cleanup."""
        return self.running and not self._cleaning

    def check_allowed(self) -> None:
        """Raise GuardrailRefused when plimsoll is read-only."""
        if self._connect is _read_only:
            _read_only()

    def start(self, plan: Plan, by: str, check: Callable[[], None] | None = None) -> None:
        """Start executing a plan that `by` approved; return at once. check: as of `execute`."""
        self._start_run(by, lambda executor: self._execute(executor, plan, check))

    def resume(self, by: str) -> None:
        """Start resuming the most recent run; return at once."""
        self._start_run(by, self._resume)

    def roll_back(self, plan: Plan, by: str) -> None:
        """Start executing the plan that undoes a run, then restore its settings."""

        def undo(executor: PlanExecutor) -> RunReport:
            report = self._execute(executor, plan)
            for line in executor.clean_up(self._journal_dir):
                logger.info("%s", line, extra=named(LogEvent.RUN_SETTINGS))
            return report

        self._start_run(by, undo)

    def work(self, by: str, work: Callable[[Steering], str]) -> None:
        """Start the work on a task, which returns how it ended; return at once."""
        self.steering = steering = Steering(by, self._operator)
        self._cleaning = False

        def end() -> None:
            self._events.task_ended(outcome(lambda: work(steering), "the task"))

        self._start_thread(end, "task")

    def clean_up(self) -> None:
        """Start restoring settings that previous runs left; return at once.

        The executor restores nothing while partitions are being moved, since the
        throttle of these moves may be among the settings.
        """
        self._cleaning = True
        self._start_thread(self._clean_up, "cleanup")

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """Return the plan that undoes a run, and what it cannot undo, in words.

        Asks the cluster, and raises the executor's errors.
        """
        return self._connected(lambda e: e.plan_rollback(self._journal_dir, run_id))

    def preview(self, plan: Plan) -> "Forecast":
        """Estimate duration and traffic of a plan, after the checks before a run.

        Asks the cluster, and raises the executor's errors: also when another
        rebalancer is active.
        """
        with contextlib.closing(self._connect()) as executor:
            executor.dry_run(plan, self._journal_dir)
            return executor.forecast(plan, self._journal_dir, self.moves_in_flight)

    def rebalancers(self, shared: bool) -> tuple[str, ...]:
        """Ask the cluster for competing rebalancers; one sentence each.

        shared: whether the plan moves partitions on shared storage, where AutoMQ's
        own balancer competes.
        """
        return self._connected(lambda executor: executor.rebalancers(shared=shared))

    def join(self) -> None:
        """Wait until the run has ended, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _start_run(self, by: str, work: Callable[[PlanExecutor], RunReport]) -> None:
        self.steering = Steering(by, self._operator)
        self._cleaning = False
        self._start_thread(lambda: self._run(work), "run")

    def _start_thread(self, target: Callable[[], None], name: str) -> None:
        self._thread = self._background(target, name)
        self._thread.start()

    def _execute(
        self, executor: PlanExecutor, plan: Plan, check: Callable[[], None] | None = None
    ) -> RunReport:
        return executor.execute(
            plan,
            journal_dir=self._journal_dir,
            moves_in_flight=self.moves_in_flight,
            observe=self._events.progressed,
            steering=self.steering,
            check=check,
        )

    def _resume(self, executor: PlanExecutor) -> RunReport:
        return executor.resume(
            journal_dir=self._journal_dir,
            moves_in_flight=self.moves_in_flight,
            observe=self._events.progressed,
            steering=self.steering,
        )

    def _connected(self, work: Callable[[PlanExecutor], T]) -> T:
        with contextlib.closing(self._connect()) as executor:
            return work(executor)

    def _clean_up(self) -> None:
        result = outcome(
            lambda: self._connected(lambda e: e.clean_up(self._journal_dir, idle=True)),
            "the cleanup",
        )
        if isinstance(result, PlimsollError):
            self._events.cleaned_up((), result)
        else:
            self._events.cleaned_up(result, None)

    def _run(self, work: Callable[[PlanExecutor], RunReport]) -> None:
        result = outcome(lambda: self._connected(work), "the run")
        if isinstance(result, PlimsollError):
            self._events.failed(result)
        else:
            self._events.ended(result)

"""A run beside the loop: its thread, its progress, how it ended."""

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from control.loop.memory import give_back
from control.loop.ports import Executor
from executor.run.operator_control import Steering
from model.errors import PlimsollError
from model.plan.plan import Plan
from model.run import RunProgress, RunReport

if TYPE_CHECKING:
    from executor.schedule.estimate import Forecast

logger = logging.getLogger("plimsoll.control")


class RunEvents(Protocol):
    """Who is told of a run, from the run's thread."""

    def run_progressed(self, progress: RunProgress) -> None:
        """Something in the run changed."""

    def run_ended(self, report: RunReport) -> None:
        """The run came to an end, done or stopped."""

    def run_failed(self, error: PlimsollError) -> None:
        """The run could not begin, or could not go on."""

    def cleaned_up(self, done: Sequence[str], error: PlimsollError | None) -> None:
        """What was restored of previous runs, and why no more could be."""


class Runner:
    """Carries out one plan at a time, in a thread of its own."""

    def __init__(
        self,
        connect: Callable[[], Executor],
        listener: RunEvents,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        operator: str = "",
    ) -> None:
        """operator: who steers runs."""
        self._operator = operator
        self._connect = connect
        self._listener = listener
        self._journal_dir = journal_dir
        self._moves_in_flight = moves_in_flight
        self.steering = Steering()
        """Of the run that goes on, or of the last one."""
        self._thread: threading.Thread | None = None
        self._cleaning = False

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def moving(self) -> bool:
        """Whether a run of moves is in progress, not a cleanup."""
        return self.running and not self._cleaning

    def start(self, plan: Plan, by: str) -> None:
        """Begin to carry out a plan that somebody approved; returns at once."""
        self._begin(by, lambda executor: self._execute(executor, plan))

    def resume(self, by: str) -> None:
        """Begin to go on with the newest run; returns at once."""
        self._begin(by, self._resume)

    def roll_back(self, plan: Plan, by: str) -> None:
        """Begin to carry out the plan that undoes a run, and what that left set."""

        def undo(executor: Executor) -> RunReport:
            report = self._execute(executor, plan)
            for words in executor.clean_up(self._journal_dir):
                logger.info("%s", words)
            return report

        self._begin(by, undo)

    def clean_up(self) -> None:
        """Begin to restore what previous runs have left set; returns at once.

        While partitions are being moved nothing is: their throttle may be among it.
        """
        self._cleaning = True
        self._thread = threading.Thread(
            target=self._clean_up, name="cleanup", daemon=True
        )
        self._thread.start()

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """The plan that undoes a run, and what it leaves alone; asks the cluster.

        Raises as the executor does.
        """
        with contextlib.closing(self._connect()) as executor:
            return executor.plan_rollback(self._journal_dir, run_id)

    def preview(self, plan: Plan) -> "Forecast":
        """What a plan will take, after the checks that a run begins with.

        Raises as the executor does, also where another rebalancer is active.
        """
        with contextlib.closing(self._connect()) as executor:
            executor.dry_run(plan, self._journal_dir)
            return executor.forecast(plan, self._journal_dir, self._moves_in_flight)

    def rebalancers(self, shared: bool) -> tuple[str, ...]:
        """Others that move partitions, as the executor finds them; asks the cluster."""
        with contextlib.closing(self._connect()) as executor:
            return executor.rebalancers(shared=shared)

    def join(self) -> None:
        """Wait for the end of the run, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _begin(self, by: str, work: Callable[[Executor], RunReport]) -> None:
        self.steering = Steering(by, self._operator)
        self._cleaning = False
        self._thread = threading.Thread(
            target=self._run, args=(work,), name="run", daemon=True
        )
        self._thread.start()

    def _execute(self, executor: Executor, plan: Plan) -> RunReport:
        return executor.execute(
            plan,
            journal_dir=self._journal_dir,
            moves_in_flight=self._moves_in_flight,
            observe=self._listener.run_progressed,
            steering=self.steering,
        )

    def _resume(self, executor: Executor) -> RunReport:
        return executor.resume(
            journal_dir=self._journal_dir,
            moves_in_flight=self._moves_in_flight,
            observe=self._listener.run_progressed,
            steering=self.steering,
        )

    def _clean_up(self) -> None:
        done: list[str] = []
        error: PlimsollError | None = None
        try:
            with contextlib.closing(self._connect()) as executor:
                done = executor.clean_up(self._journal_dir, idle=True)
        except PlimsollError as exc:
            error = exc
        except Exception as exc:
            logger.exception("the cleanup ended")
            error = PlimsollError(f"internal error: {exc!r}")
        self._listener.cleaned_up(done, error)

    def _run(self, work: Callable[[Executor], RunReport]) -> None:
        try:
            with contextlib.closing(self._connect()) as executor:
                report = work(executor)
        except PlimsollError as exc:
            self._listener.run_failed(exc)
        except Exception as exc:
            logger.exception("the run ended")
            self._listener.run_failed(PlimsollError(f"internal error: {exc!r}"))
        else:
            self._listener.run_ended(report)
        finally:
            give_back()

"""A run beside the loop: its thread, its progress, how it ended."""

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from control.ports import Executor
from executor.steering import Steering
from model.errors import PlimsollError
from model.plan import Plan
from model.run import RunProgress, RunReport

logger = logging.getLogger("plimsoll.control")


class RunListener(Protocol):
    """Who is told of a run, from the run's thread."""

    def run_progressed(self, progress: RunProgress) -> None:
        """Something in the run changed."""

    def run_ended(self, report: RunReport) -> None:
        """The run came to an end, done or stopped."""

    def run_failed(self, error: PlimsollError) -> None:
        """The run could not begin, or could not go on."""


class Runner:
    """Carries out one plan at a time, in a thread of its own."""

    def __init__(
        self,
        connect: Callable[[], Executor],
        listener: RunListener,
        *,
        journal_dir: Path,
        moves_in_flight: int,
    ) -> None:
        self._connect = connect
        self._listener = listener
        self._journal_dir = journal_dir
        self._moves_in_flight = moves_in_flight
        self.steering = Steering()
        """Of the run that goes on, or of the last one."""
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, plan: Plan) -> None:
        """Begin to carry out a plan; returns at once."""
        self.steering = Steering()
        self._thread = threading.Thread(
            target=self._run, args=(plan,), name="run", daemon=True
        )
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the run, if there is one."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, plan: Plan) -> None:
        try:
            with contextlib.closing(self._connect()) as executor:
                report = executor.execute(
                    plan,
                    journal_dir=self._journal_dir,
                    moves_in_flight=self._moves_in_flight,
                    observe=self._listener.run_progressed,
                    steering=self.steering,
                )
        except PlimsollError as exc:
            self._listener.run_failed(exc)
        except Exception as exc:
            logger.exception("the run ended")
            self._listener.run_failed(PlimsollError(f"internal error: {exc!r}"))
        else:
            self._listener.run_ended(report)

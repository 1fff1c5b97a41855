"""Calls in the background, usually in threads of their own, so that nothing waits for them."""

import ctypes
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Generic, Protocol, TypeVar

from control.planning.plan_view import Solving
from model.errors import PlimsollError
from model.log_events import LogEvent, named
from solver.search.observer import SolveObserver

logger = logging.getLogger("plimsoll.control")

SOLVE: Final = "solve"
"""Name of the threads that solve; interrupted ones may be in compiled code for long."""

T = TypeVar("T")


class Background(Protocol):
    """Work beside the loop, as of a thread."""

    def start(self) -> None:
        """Begin; called once."""

    def is_alive(self) -> bool:
        """Whether the work has begun and not ended."""
        ...

    def join(self) -> None:
        """Wait until the work has ended."""


InBackground = Callable[[Callable[[], None], str], Background]
"""Prepares work, under a name, for the background; it begins with `start`."""


def in_thread(work: Callable[[], None], name: str) -> Background:
    """Prepare work for a thread of its own, which does not keep the process alive."""
    return threading.Thread(target=work, name=name, daemon=True)


class AtOnce:
    """Work that whoever starts it does at once: time passes only inside it, if at all."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        del name
        self._work, self._active = work, False

    def start(self) -> None:
        """Do the work."""
        self._active = True
        try:
            self._work()
        finally:
            self._active = False

    def is_alive(self) -> bool:
        """Whether the work is being done, seen from inside it."""
        return self._active

    def join(self) -> None:
        """Do nothing: whoever could wait has done the work."""


def in_daemon_thread(call: Callable[[], T]) -> Future[T]:
    """Start a call in a thread of its own, since only the main thread receives signals."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as exc:  # noqa: BLE001  # raised where it is waited for
            future.set_exception(exc)

    # A daemon thread, so that interrupting need not wait for the solver.
    threading.Thread(target=run, name=SOLVE, daemon=True).start()
    return future


def outcome(call: Callable[[], T], name: str) -> T | PlimsollError:
    """Return the result of a call in a thread, or the error it raised.

    An unexpected error is logged with its traceback under `name` and returned as an
    internal error. Memory that the call freed goes back to the system.
    """
    try:
        return call()
    except PlimsollError as exc:
        return exc
    except Exception as exc:
        logger.exception("%s failed", name, extra=named(LogEvent.LOOP_FAILED))
        return PlimsollError(f"internal error: {exc!r}")
    finally:
        _return_freed_memory()


def _return_freed_memory() -> None:
    """Call `malloc_trim`, where the C library has it.

    glibc gives each thread a heap of its own and keeps the pages freed in it; without
    this, a process that runs for months of solves and runs grows.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class SolveProgress(SolveObserver):
    """Record the progress of a solve, and end it early on request; thread-safe."""

    def __init__(self, started_at_ms: int) -> None:
        """started_at_ms: start of the solve, milliseconds since the epoch."""
        self._started_at_ms = started_at_ms
        self._best: tuple[float, int] | None = None
        self._bound: float | None = None
        self._stopping = threading.Event()

    def on_solution(self, objective: float, moves: int) -> None:
        self._best = objective, moves

    def on_bound(self, bound: float) -> None:
        self._bound = bound

    def stops(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Make the solver return the best plan found so far."""
        self._stopping.set()

    @property
    def now(self) -> Solving:
        """Best plan and bound found so far."""
        objective, moves = self._best or (None, 0)
        return Solving(
            started_at_ms=self._started_at_ms,
            objective=objective,
            moves=moves,
            bound=self._bound,
            stopping=self.stops(),
        )


class SolveTask(Generic[T]):
    """A solve in the background; `take` returns its result."""

    def __init__(
        self,
        call: Callable[[SolveProgress], T],
        started_at_ms: int,
        done: Callable[[], None],
        background: InBackground = in_thread,
    ) -> None:
        """Start `call`; `done` is called from the background when it has returned."""
        self._call, self._done = call, done
        self._progress = SolveProgress(started_at_ms)
        self._outcome: T | PlimsollError | None = None
        self._thread = background(self._run, SOLVE)
        self._thread.start()

    @property
    def now(self) -> Solving | None:
        """Progress; None once the solve has ended."""
        return self._progress.now if self._thread.is_alive() else None

    def stop(self) -> None:
        """Make the solve return the best result so far at its next check."""
        self._progress.stop()

    def join(self) -> None:
        """Wait until the solve has ended."""
        self._thread.join()

    def take(self) -> T | None:
        """Wait for the end, then return the result.

        Raises
        ------
        PlimsollError
            Whatever the solve raised; unexpected errors as internal errors.
        """
        self._thread.join()
        if isinstance(self._outcome, PlimsollError):
            raise self._outcome
        return self._outcome

    def _run(self) -> None:
        self._outcome = outcome(lambda: self._call(self._progress), "a solve")
        self._done()

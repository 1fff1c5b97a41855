"""A progress line on the terminal while a command plans, and Ctrl-C to stop."""

import contextlib
import logging
import shutil
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Final, Self, TypeVar

from control.cli.console import handling
from control.cli.output import drawn
from control.planning.background_call import SolveProgress, in_daemon_thread
from control.planning.plan_view import Solving
from model.units import count_text
from solver.search.observer import SolveObserver

T = TypeVar("T")

QUIET_S: Final = 0.5
"""A search that ends within this time shows no line."""
_STEP_S: Final = 0.2

PLAN: Final = "it"
"""The best plan so far."""
FRONTIER: Final = "the points so far"
STAGES: Final = "the stages so far"
GRID: Final = "the answers so far"
PROVED: Final = "the bound proved so far"
LISTS: Final = "the assignment so far"
CAUSES: Final = "the answer so far"


def shown(call: Callable[[SolveObserver], T], *, kept: str | None = None) -> T:
    """Run a search; if stderr is a terminal, show its progress there.

    On a terminal the first Ctrl-C ends the search with its best result so far, the
    second one interrupts. Elsewhere, and without `kept`, the first one interrupts at
    once, even in compiled code.

    kept: noun phrase for the result of a stopped search; None if there is none.
    """
    if not sys.stderr.isatty():
        return in_daemon_thread(lambda: call(SolveObserver())).result()
    follower = SolveProgress(0)

    def on_ctrl_c() -> None:
        again = follower.stops()
        follower.stop()
        if again or kept is None:
            raise KeyboardInterrupt

    running = in_daemon_thread(lambda: call(follower))
    with _Line(kept) as line, handling({signal.SIGINT: on_ctrl_c}):
        while not wait([running], _STEP_S).done:
            line.show(follower.now)
    return running.result()


class _Line(logging.Handler):
    """The last line of the terminal, cleared before each log line."""

    def __init__(self, kept: str | None) -> None:
        super().__init__()
        self._kept = kept
        self._begun_s = time.monotonic()
        self._width = 0

    def __enter__(self) -> Self:
        # It must precede the handler that writes to stderr.
        logging.getLogger("plimsoll").handlers.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("plimsoll").removeHandler(self)
        self._clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Clear the line; the next handler writes the record."""
        self._clear()

    def show(self, solving: Solving) -> None:
        """Draw the line again."""
        elapsed_s = time.monotonic() - self._begun_s
        if elapsed_s < QUIET_S:
            return
        columns = shutil.get_terminal_size().columns
        text = progress_text(solving, elapsed_s, self._kept, columns - 1)
        with self.lock or contextlib.nullcontext():
            self._write("\r" + text.ljust(min(self._width, columns - 1)))
            self._width = len(text)

    def _clear(self) -> None:
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            terminal = drawn(sys.stderr)
            terminal.write(text)
            terminal.flush()


def progress_text(solving: Solving, elapsed_s: float, kept: str | None, width: int) -> str:
    """Elapsed time, best plan, bound and how to stop, in a line of `width` cells.

    Parts that do not fit are omitted as a whole, so that no number is truncated: from
    the right, but the last part and the time after all others.
    """
    minutes, seconds = divmod(int(elapsed_s), 60)
    parts = [f"{minutes}:{seconds:02d}"]
    if kept == PLAN and solving.objective is not None:
        parts.append(f"best {solving.objective:.4g}")
        parts.append(count_text(solving.moves, "move"))
    if kept == PLAN and solving.bound is not None:
        parts.append(f"bound {solving.bound:.4g}")
    if solving.stopping:
        parts.append("stopping; Ctrl-C again quits")
    elif kept is None:
        parts.append("Ctrl-C quits")
    elif kept == PLAN and solving.objective is None:
        parts.append("no plan yet; Ctrl-C stops")
    else:
        parts.append(f"Ctrl-C keeps {kept}")
    while parts and len("  ".join(parts)) > width:
        del parts[-2 if len(parts) > 2 else -1]
    return "  ".join(parts)

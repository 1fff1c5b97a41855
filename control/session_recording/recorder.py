"""Record what the screen of a loop shows."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from control.loop.loop import Loop
from control.loop.view import LoopView
from control.session_recording.format import RecordingHeader, RecordingWriter
from model.closing import Closing
from model.errors import ConfigError
from model.log_events import LogEvent
from model.run import RunReport

EVERY_S: Final = 1.0
"""Least time between two views with the same phase and run state."""


class ScreenRecorder(Closing):
    """Record the views of a loop until closed.

    Raises ConfigError if the file cannot be written at the start. A later failure ends
    the recording with a warning in the loop's log; the loop continues.
    """

    def __init__(
        self, loop: Loop, path: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._clock = clock
        header = RecordingHeader.model_validate(loop.settings, from_attributes=True)
        self._writer = RecordingWriter(path, header)
        self._lock = threading.Lock()
        self._began_s = clock()
        self._wrote_at_s = float("-inf")
        self._wrote: LoopView | None = None
        self._last_report: RunReport | None = None
        self._closed = False
        self._see(loop.view)
        loop.subscribe(self._see)

    def close(self) -> None:
        """Write the last view, and close the file."""
        view, run_state = self._loop.view, self._run_state()
        with self._lock:
            if not self._closed:
                self._closed = True
                self._write(view, *run_state)
                self._writer.close()

    def _see(self, view: LoopView) -> None:
        # The loop's lock is taken before the recorder's, never after: a thread that
        # holds the loop's lock may be about to publish a view.
        run_state, fault = self._run_state(), None
        with self._lock:
            if self._closed or not self._is_worth(view):
                return
            try:
                self._write(view, *run_state)
            except ConfigError as exc:
                self._closed, fault = True, exc
        if fault is not None:
            self._loop.note(
                f"the recording has stopped: {fault}", LogEvent.LOOP_WARNING, level="warning"
            )

    def _run_state(self) -> tuple[RunReport | None, bool]:
        """The newest report, and whether a run is in progress."""
        return next(reversed(self._loop.reports), None), self._loop.running

    def _is_worth(self, view: LoopView) -> bool:
        last = self._wrote
        if last is None or self._clock() - self._wrote_at_s >= EVERY_S:
            return True
        states = [None if of.run is None else of.run.state for of in (last, view)]
        return last.phase is not view.phase or states[0] is not states[1]

    def _write(self, view: LoopView, newest: RunReport | None, running: bool) -> None:
        report = None if newest is self._last_report else newest
        self._last_report = newest
        self._wrote, self._wrote_at_s = view, self._clock()
        self._writer.add(
            view, after_s=self._wrote_at_s - self._began_s, running=running, report=report
        )

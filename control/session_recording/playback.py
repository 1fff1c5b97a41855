"""Play a recorded session back in place of a loop; nothing is executed."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn, Self

from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import LogLine, LoopView, Mode
from control.session_recording.format import RecordingHeader
from control.session_recording.reader import RecordedView, read_recording
from control.settings.auto_limits import EAGER
from control.settings.settings import Settings
from model.errors import ConfigError, PlimsollError
from model.goals.goals import SolveLimits
from model.run import RunReport

NOWHERE: Final = Path("/nonexistent")
"""A recording has no journals."""


class Playback(Loop):
    """A loop that shows what another one showed, `speed` times as fast.

    Theme and keys come from the current settings. Entering the context starts the
    playback in a thread. The constructor raises ConfigError, naming the line, if the
    file is not a recording; a later error ends the playback and is in `error`.
    """

    def __init__(self, path: Path, looks: Settings, *, speed: float) -> None:
        header, self._views = read_recording(path)
        super().__init__(_settings(header, looks), _PARTS)
        self.clock = lambda: self.view.at_ms / 1000
        first = next(self._views, None)
        if first is None:
            raise ConfigError(f"the recording {path} has no views")
        self._speed = speed
        self._current = _marked(first)
        self._reports: tuple[RunReport, ...] = ()
        self._player = threading.Thread(target=self._play, name="play", daemon=True)

    def __enter__(self) -> Self:
        self._player.start()
        return self

    def close(self) -> None:
        """Stop playing."""
        self._closing.set()
        if self._player.is_alive():
            self._player.join()

    @property
    def view(self) -> LoopView:
        """The recorded view."""
        return self._current.view

    @property
    def running(self) -> bool:
        """Whether a run was in progress."""
        return self._current.running

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """Reports of the runs that had ended."""
        return self._reports

    def _play(self) -> None:
        try:
            for recorded in self._views:
                wait_s = max(0.0, recorded.after_s - self._current.after_s) / self._speed
                if self._closing.wait(wait_s):
                    return
                self._show(_marked(recorded))
        except PlimsollError as exc:
            self.error = exc
            self._end(str(exc), "error")
        else:
            self._end("the recording ends here", "info")

    def _show(self, recorded: RecordedView) -> None:
        self._current = recorded
        if recorded.report is not None:
            self._reports = (*self._reports, recorded.report)
        self._publish()

    def _end(self, message: str, level: str) -> None:
        """Add a line to the log, and keep showing the last view."""
        view = self._current.view
        line = LogLine(at_ms=view.at_ms, level=level, text=message)
        last = replace(view, message=message, log=(*view.log, line))
        self._show(replace(self._current, view=last, report=None))


def _marked(recorded: RecordedView) -> RecordedView:
    return replace(recorded, view=replace(recorded.view, mode=Mode.RECORDING))


def _settings(header: RecordingHeader, looks: Settings) -> LoopSettings:
    return LoopSettings(
        bootstrap=header.bootstrap,
        name=header.name,
        mode=Mode.RECORDING,
        goals=header.goals,
        solve=SolveLimits(),
        limits=EAGER,
        journal_dir=NOWHERE,
        throttle=header.throttle,
        stop_rules=header.stop_rules,
        screen=looks.screen,
        keys=looks.keys,
    )


def _no_part(*_: object) -> NoReturn:
    raise ConfigError("a recording cannot observe a cluster or make plans")


_PARTS: Final = LoopParts(observer=_no_part, planner=_no_part, executor=None)
"""Parts that refuse to observe, plan or change anything."""

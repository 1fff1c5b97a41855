"""`plimsoll`: the screen."""

import contextlib
from pathlib import Path

from control import compose
from control.cli import console as terminal
from control.cli import logs
from control.cli.exit_codes import Exit, exit_of
from control.loop.loop import Loop
from control.loop.view import Mode
from control.settings.settings import Settings
from model.errors import ConfigError


def show(settings: Settings, *, allow_changes: bool, record: Path | None) -> int:
    """Show the cluster until the user leaves, and write down what was shown.

    Raises
    ------
    ConfigError
        There is no terminal, or no cluster is named.
    """
    compose.bootstrap_of(settings)
    _require_terminal()
    mode = Mode.APPROVE if allow_changes else Mode.READ_ONLY
    loop = compose.loop(settings, mode=mode, patient=True)
    logs.silence_stderr()
    logs.pass_warnings(loop.warn)
    with loop, recorded(loop, record):
        compose.front_end()(loop)
    return exit_of(loop.error) if loop.error is not None else Exit.DONE


def play(file: Path, settings: Settings, *, speed: float) -> int:
    """Show a recorded screen until the user leaves.

    Raises
    ------
    ConfigError
        There is no terminal, or the file is no recording.
    """
    from control.session_recording.playback import Playback

    playback = Playback(file, settings, speed=speed)
    _require_terminal()
    logs.silence_stderr()
    with playback:
        compose.front_end()(playback)
    if playback.error is not None:
        raise playback.error
    return Exit.DONE


def recorded(
    loop: Loop, file: Path | None
) -> contextlib.AbstractContextManager[object]:
    """While entered, what the loop shows is written down, if a file is named."""
    if file is None:
        return contextlib.nullcontext()
    from control.session_recording.recorder import ScreenRecorder

    return ScreenRecorder(loop, file)


def _require_terminal() -> None:
    if not terminal.is_there():
        raise ConfigError(
            "the screen needs a terminal; without one, use `plimsoll status` or "
            "`plimsoll run --auto`"
        )

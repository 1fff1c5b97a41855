"""`plimsoll` without a command: the screen, live or from a recording."""

import contextlib
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from control.cli.command_group import pass_options
from control.cli.console import can_show_screen
from control.cli.exit_codes import Exit, exit_of, guarded
from control.cli.invocation import offering, with_overrides, with_settings
from control.cli.options import AllowChanges, Capacity, RecordScreen
from model import __version__
from model.errors import ConfigError

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.settings.settings import Settings


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"plimsoll {__version__}\n")
        raise typer.Exit(0)


def _screen(
    *,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    capacity: Capacity = None,
    record: RecordScreen = None,
    play: Annotated[
        Path | None, typer.Option("--play", metavar="FILE", help="Show a recorded screen.")
    ] = None,
    speed: Annotated[
        float,
        typer.Option(min=0.1, max=1000, metavar="FACTOR", help="With --play: speed-up factor."),
    ] = 1.0,
) -> int:
    if play is not None:
        return _play(play, settings, speed=speed)
    settings = with_overrides(settings, capacity=capacity)
    return _live(settings, allow_changes=allow_changes, record=record)


_shown: Final = with_settings(_screen)


def screen(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    **options: Any,
) -> None:
    """Show the screen unless a command follows, which then gets the options."""
    del version
    if context.invoked_subcommand is not None:
        pass_options(context)
        return
    guarded(_shown)(**options)


_own, _shown_options = (inspect.signature(f).parameters.values() for f in (screen, _shown))
offering(screen, [*list(_own)[:2], *_shown_options])


def _live(settings: "Settings", *, allow_changes: bool, record: Path | None) -> int:
    """Show the cluster until the user quits; record what was shown if asked to.

    Raises ConfigError without a terminal or a cluster.
    """
    from control import compose
    from control.cli import logs
    from control.loop.view import Mode

    compose.bootstrap_of(settings)
    _require_terminal()
    mode = Mode.APPROVE if allow_changes else Mode.READ_ONLY
    loop = compose.loop(settings, mode=mode, patient=True)
    logs.silence_stderr()
    logs.pass_warnings(loop.warn)
    # Before the loop begins, whose thread loads what it needs: each would wait for the other.
    show = compose.front_end()
    with loop, recorded(loop, record):
        show(loop)
    return exit_of(loop.error) if loop.error is not None else Exit.DONE


def _play(file: Path, settings: "Settings", *, speed: float) -> int:
    """Show a recorded screen until the user quits.

    Raises ConfigError without a terminal, or where the file is not a recording.
    """
    from control import compose
    from control.cli import logs
    from control.session_recording.playback import Playback

    playback = Playback(file, settings, speed=speed)
    _require_terminal()
    logs.silence_stderr()
    with playback:
        compose.front_end()(playback)
    if playback.error is not None:
        raise playback.error
    return 0


def recorded(loop: "Loop", file: Path | None) -> contextlib.AbstractContextManager[object]:
    """A context that records what the loop shows to a file, if one is named."""
    if file is None:
        return contextlib.nullcontext()
    from control.session_recording.recorder import ScreenRecorder

    return ScreenRecorder(loop, file)


def _require_terminal() -> None:
    if not can_show_screen():
        raise ConfigError(
            "the screen needs a terminal; without one, use `plimsoll status` or "
            "`plimsoll run --auto`"
        )

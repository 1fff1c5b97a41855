"""`plimsoll`: the screen."""

import sys

from control import compose, logs
from control.exits import Exit
from control.settings import Settings
from control.view import Mode
from model.errors import ConfigError


def show(settings: Settings, *, allow_changes: bool) -> int:
    """Show the cluster until the user leaves.

    Raises
    ------
    ConfigError
        There is no terminal, or no cluster is named.
    """
    compose.bootstrap_of(settings)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "the screen needs a terminal; without one, use `plimsoll status` or "
            "`plimsoll run --auto`"
        )
    logs.silence_stderr()
    mode = Mode.APPROVE if allow_changes else Mode.READ_ONLY
    with compose.loop(settings, mode=mode, patient=True) as loop:
        compose.front_end()(loop)
    return Exit.DONE

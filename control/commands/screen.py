"""`plimsoll`: the screen."""

from control import compose, logs, terminal
from control.exits import Exit, exit_of
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
    if not terminal.is_there():
        raise ConfigError(
            "the screen needs a terminal; without one, use `plimsoll status` or "
            "`plimsoll run --auto`"
        )
    logs.silence_stderr()
    mode = Mode.APPROVE if allow_changes else Mode.READ_ONLY
    with compose.loop(settings, mode=mode, patient=True) as loop:
        compose.front_end()(loop)
    return exit_of(loop.error) if loop.error is not None else Exit.DONE

"""`plimsoll serve`: the screen in a browser."""

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Ascii, Output, Theme
from control.cli.output import Form
from lab.local_cluster.tcp_ports import HOST, claim
from model.errors import ConfigError

MAIN: Final = "from control.cli.main import main; main()"
WHY: Final = (
    "plimsoll listens on {host} only and is read-only, since there is no login: anyone "
    "who reaches the port can connect. From another machine, use "
    "ssh -L {port}:{host}:{port} HOST and open http://{host}:{port} there."
)


def serve(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- ARGUMENTS]",
            help="What to show: options of the screen, or demo --simulated.",
        ),
    ] = None,
    *,
    ascii_only: Ascii = False,
    theme: Theme = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="PORT", help="Port on this machine (loopback).")
    ] = 8000,
    sessions: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="Greatest number of open windows.")
    ] = 4,
    output: Output = Form.TABLE,
) -> int:
    """Serve the screen until interrupted; each window runs a plimsoll of its own.

    Raises ConfigError where textual-serve is missing, the port is taken, or the arguments do
    not open a screen, or open one that may change a cluster.
    """
    shown = [*(arguments or []), *(["--ascii"] if ascii_only else [])]
    shown += ["--theme", theme] if theme is not None else []
    _refuse(shown)
    try:
        from control.cli.web import OwnPage
    except ImportError as exc:
        raise ConfigError(
            "serve needs textual-serve, which is not installed; run make web in a "
            "clone, or pip install 'WHEEL[web]' with the wheel of plimsoll"
        ) from exc
    claim(port, "the screen in a browser")
    sys.stderr.write(WHY.format(port=port, host=HOST) + "\n")
    served = command(shown)
    page = OwnPage(served, port=port, title="plimsoll", sessions=sessions, output=output)
    page.serve()
    return Exit.DONE


def command(arguments: Sequence[str]) -> str:
    """The shell command that each window starts."""
    return shlex.join([sys.executable, "-P", "-c", MAIN, *arguments])


def _refuse(arguments: Sequence[str]) -> None:
    if "--allow-changes" in arguments:
        raise ConfigError(
            "the screen in a browser is read-only, since anyone who reaches the port "
            "can connect; omit --allow-changes, and approve in a terminal"
        )
    simulated = arguments[:1] == ["demo"] and "--simulated" in arguments
    if arguments and not arguments[0].startswith("-") and not simulated:
        raise ConfigError(
            f"{arguments[0]!r} does not open a screen; give options of the screen, "
            "such as -b HOST:PORT or --play FILE, or demo --simulated"
        )

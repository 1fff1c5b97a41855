"""`plimsoll serve`: the screen in a browser."""

import shlex
import sys
from collections.abc import Sequence
from typing import Final

from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from lab.local_cluster.tcp_ports import HOST, claim
from model.errors import ConfigError

MAIN: Final = "from control.cli.main import main; main()"
WHY: Final = (
    "plimsoll listens on {host} alone, and shows without changing anything: whoever "
    "reaches the port is let in, since it asks nobody for a name. From another "
    "machine, use ssh -L {port}:{host}:{port} HOST and open http://{host}:{port} there."
)


def show(
    arguments: Sequence[str], *, port: int, sessions: int = 4, output: Form = Form.TABLE
) -> int:
    """Serve the screen until interrupted; each browser gets a plimsoll of its own.

    Raises
    ------
    ConfigError
        textual-serve is missing, the port is taken, or what is to be shown is no
        screen, or one that changes a cluster.
    """
    _refuse(arguments)
    try:
        from control.cli.web import OwnPage
    except ImportError as exc:
        raise ConfigError(
            "the browser needs textual-serve, which is not installed; say make web in "
            "a clone, else pip install 'WHEEL[web]' with the wheel of plimsoll"
        ) from exc
    claim(port, "the screen in a browser")
    sys.stderr.write(WHY.format(port=port, host=HOST) + "\n")
    served = command(arguments)
    page = OwnPage(
        served, port=port, title="plimsoll", sessions=sessions, output=output
    )
    page.serve()
    return Exit.DONE


def command(arguments: Sequence[str]) -> str:
    """What each browser starts, for a shell."""
    return shlex.join([sys.executable, "-P", "-c", MAIN, *arguments])


def _refuse(arguments: Sequence[str]) -> None:
    if "--allow-changes" in arguments:
        raise ConfigError(
            "in a browser nothing is changed, since whoever reaches the port could do "
            "so; leave --allow-changes away, and approve in a terminal"
        )
    simulated = arguments[:1] == ["demo"] and "--simulated" in arguments
    if arguments and not arguments[0].startswith("-") and not simulated:
        raise ConfigError(
            f"{arguments[0]!r} opens no screen; say options of the screen, such as "
            "-b HOST:PORT or --play FILE, or demo --simulated"
        )

"""`plimsoll fleet`: the clusters that one service keeps balanced, as a screen or a table."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from control.cli.console import can_show_screen
from control.cli.exit_codes import Exit
from control.cli.options import Ascii, Theme, output_option
from control.cli.output import Form
from model.errors import ConfigError

if TYPE_CHECKING:
    from control.cli.fleet_source import FleetSource
    from control.cli.output_types import FleetAnswer
    from control.settings.fleet_file import FleetFile


def fleet(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file that the service was started with.")
    ],
    *,
    ascii_only: Ascii = False,
    theme: Theme = None,
    output: Annotated[
        Form | None, output_option("--output", "-o", help="Print the table once, in this format.")
    ] = None,
) -> int:
    """Show a row for each cluster of the service: on a terminal as a screen, else as a table.

    Exits with 3 where no such service runs.
    """
    from control.cli.fleet_source import FleetSource
    from control.render.fleet_text import fleet_text
    from control.render.text import answer_text
    from control.settings.fleet_file import read_fleet

    found = read_fleet(file)
    source = FleetSource(file, found.state_dir)
    first = source.table()
    if output is None and can_show_screen():
        show(_with_looks(found, theme, ascii_only=ascii_only), source, first, file.name)
        return Exit.DONE
    sys.stdout.write(answer_text(first, fleet_text, output or Form.TABLE))
    return Exit.DONE


def _with_looks(fleet: "FleetFile", theme: str | None, *, ascii_only: bool) -> "FleetFile":
    """The fleet's file, with what the options say of the screen."""
    given: dict[str, Any] = {"ascii": True} if ascii_only else {}
    given |= {} if theme is None else {"theme": theme}
    return fleet.model_copy(update={"screen": fleet.screen.model_copy(update=given)})


def show(looks: "FleetFile", source: "FleetSource", first: "FleetAnswer", name: str) -> None:
    """Show the screen until the user leaves, by its entry point, as `compose.front_end`."""
    from importlib.metadata import entry_points

    from control.cli import logs

    found = [*entry_points(group="plimsoll.front_ends", name="fleet")]
    if not found:
        # A clone that was updated without its installation.
        raise ConfigError(
            "this installation has no screen of a fleet: run make setup in the clone, or install "
            "plimsoll again; -o table prints the table"
        )
    logs.silence_stderr()
    run = cast("Callable[[FleetFile, FleetSource, FleetAnswer, str], None]", found[0].load())
    run(looks, source, first, name)

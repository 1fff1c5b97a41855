"""`plimsoll fleet`: the table of the clusters that one service keeps balanced."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form


def fleet(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file that the service was started with.")
    ],
    *,
    output: Output = Form.TABLE,
) -> int:
    """Print a row for each cluster of the service. Exits with 3 where none runs."""
    from control.cli.control_client import ControlClient
    from control.cli.output_types import FleetAnswer
    from control.render.fleet_text import fleet_text
    from control.render.text import answer_text
    from control.settings.fleet_file import read_fleet

    found = ControlClient(read_fleet(file).state_dir).get("/control/v1/fleet", FleetAnswer)
    sys.stdout.write(answer_text(found, fleet_text, output))
    return Exit.DONE

"""`plimsoll journal`: commands on the journals in the state folder."""

from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.command_errors import guarded
from control.cli.command_group import Command, Commands
from control.cli.options import Output, looks, with_settings
from control.cli.output_format import Form

if TYPE_CHECKING:
    from control.settings.settings import Settings

journal = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check and repair the journals of runs.",
)
journal.callback()(looks)


@journal.command(cls=Command)
@guarded
@with_settings
def verify(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="The run, or the beginning of its id; by default all."
        ),
    ] = None,
    *,
    settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Report damage in journals and plans with its lines; exit code 2 where any is."""
    from control.cli.commands.journal import verify as verify_all

    return verify_all(settings, run, output=output)


@journal.command(cls=Command)
@guarded
@with_settings
def repair(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run, or the beginning of its id.")
    ],
    *,
    settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Keep the intact records of a damaged journal; the original stays beside it."""
    from control.cli.commands.journal import repair as repair_one

    return repair_one(settings, run, output=output)

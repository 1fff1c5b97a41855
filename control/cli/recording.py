"""The commands that record a cluster, and replay what was recorded.

Heavy imports wait until a command needs them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.command_group import OUTPUT
from control.cli.options import (
    Ascii,
    Config,
    LogFile,
    Output,
    Profile,
    SparkMaster,
    Theme,
    Verbose,
    load_settings,
    with_settings,
)
from control.cli.output_format import Form
from model.units import span_of

if TYPE_CHECKING:
    from control.settings.settings import Settings


def parsed_span(text: str) -> float:
    """Seconds from a time span that was typed."""
    try:
        return span_of(text)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


Span = Annotated[
    float,
    typer.Option(
        "--for",
        help="How long, counted from the first loads: 60s, 5m, 1h30m.",
        parser=parsed_span,
        metavar="TIME",
    ),
]
StateOut = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder to write; by default one named after the time.",
        rich_help_panel=OUTPUT,
    ),
]
Anonymise = Annotated[
    bool,
    typer.Option(
        "--anonymise", help="Replace names of topics, racks and paths by pseudonyms."
    ),
]
AnonymiseKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --anonymise: a file with the key, instead of the stored one.",
    ),
]
SnapshotOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the snapshot here (.json, .json.gz) instead of printing it.",
        rich_help_panel=OUTPUT,
    ),
]


@with_settings
def record(
    *,
    settings: "Settings",
    span: Span = "60s",  # type: ignore[assignment]  # the parser reads defaults, too
    out: StateOut = None,
    anonymise: Anonymise = False,
    anonymise_key: AnonymiseKey = None,
    output: Output = Form.TABLE,
) -> int:
    """Watch a cluster for a while and write down what was observed."""
    from control.cli.commands.record import watch

    return watch(
        settings,
        span_s=span,
        out=out,
        anonymise=anonymise,
        key_file=anonymise_key,
        output=output,
    )


def replay(
    state: Annotated[
        Path, typer.Argument(metavar="STATE", help="A folder that record wrote.")
    ],
    *,
    out: SnapshotOut = None,
    output: Output = Form.TABLE,
    spark_master: SparkMaster = None,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    ascii_only: Ascii = False,
    theme: Theme = None,
) -> int:
    """Make loads of a recorded state again, as if it were observed now."""
    from control.cli.commands.replay import show

    settings = load_settings(
        spark_master=spark_master,
        config=config,
        profile=profile,
        log_file=log_file,
        verbose=verbose,
        ascii_only=ascii_only,
        theme=theme,
    )
    return show(settings, state, out=out, output=output)


COMMANDS: Final[dict[str, Callable[..., int]]] = {"record": record, "replay": replay}
"""By the name that is typed."""

"""Options that several commands share. Nothing heavy is loaded for them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control.form import Form

if TYPE_CHECKING:
    from control.settings import Settings

Bootstrap = Annotated[
    str | None,
    typer.Option("--bootstrap-server", "-b", help="Kafka's host:port list."),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="Configuration file (TOML).")
]
Profile = Annotated[
    str | None, typer.Option("--profile", help="Profile of the configuration file.")
]
AllowChanges = Annotated[
    bool,
    typer.Option(
        "--allow-changes/--read-only",
        help="Build a client that can change the cluster; read-only by default.",
    ),
]
Output = Annotated[Form, typer.Option("--output", "-o", help="Form of stdout.")]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", help="Write log lines here, as JSON.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log more, and show tracebacks.")
]
SnapshotFile = Annotated[
    Path | None,
    typer.Option("--snapshot", help="A recorded snapshot, instead of a live cluster."),
]
Describe = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="DESCRIBE",
        help="Output of kafka-topics --describe, instead of a live cluster.",
    ),
]
Loads = Annotated[
    Path | None,
    typer.Option("--loads", help="With --from: loads per partition (CSV)."),
]
Brokers = Annotated[
    Path | None,
    typer.Option("--brokers", help="With --from: ids, racks, states (CSV, JSON)."),
]
Storage = Annotated[
    str | None,
    typer.Option("--storage", help="With --from: replicated, tiered or shared."),
]
Capacity = Annotated[
    Path | None,
    typer.Option("--capacity", help="Cruise Control's capacity file (JSON)."),
]
GoalsFile = Annotated[
    Path | None,
    typer.Option("--goals", help="Goals of this plan (TOML, JSON)."),
]


def load_settings(
    config: Path | None,
    profile: str | None,
    verbose: bool,
    log_file: Path | None,
    **flags: Any,
) -> "Settings":
    """The settings that the common options and some typed flags lead to."""
    # pydantic-settings costs a tenth of a second, which --help need not pay.
    from control import logs, settings

    logs.configure(verbose=verbose, file=log_file)
    return settings.load(flags, config=config, profile=profile)

"""Options that several commands share. Nothing heavy is loaded for them."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector.spark.deployment import master_of
from control.cli.command_group import (
    CLUSTER,
    COMMON,
    EXECUTION,
    OUTPUT,
    pass_appearance,
)
from control.cli.output_format import Form
from model.units import throttle_of

if TYPE_CHECKING:
    from control.cli.input_source import Origin
    from control.settings.settings import Settings


def _throttle(text: str) -> str:
    try:
        throttle_of(text)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc
    return text


def _master(text: str) -> str:
    try:
        return master_of(text)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


def _theme(text: str) -> str:
    from control.settings.screen_settings import theme_of

    try:
        return theme_of(text)
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        help="Kafka's bootstrap servers, separated by commas.",
        rich_help_panel=CLUSTER,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Kafka's client.properties (TLS, SASL).",
        rich_help_panel=CLUSTER,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration file (TOML).",
        rich_help_panel=COMMON,
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Profile of the configuration file.",
        rich_help_panel=COMMON,
    ),
]
AllowChanges = Annotated[
    bool,
    typer.Option(
        "--allow-changes/--read-only",
        help="Build a client that can change the cluster.",
        rich_help_panel=EXECUTION,
    ),
]
Throttle = Annotated[
    str | None,
    typer.Option(
        help="Limit what moves may copy into a broker, and out of it: bytes/s, 50MB/s "
        "or 50MiB/s; auto follows what clients leave free.",
        parser=_throttle,
        metavar="RATE",
        rich_help_panel=EXECUTION,
    ),
]
StandDown = Annotated[
    bool,
    typer.Option(
        "--stand-down-balancer",
        help="Suspend AutoMQ's own balancer during the run.",
        rich_help_panel=EXECUTION,
    ),
]
Shorten = Annotated[
    bool,
    typer.Option(
        "--shorten-segments",
        help="Lower segment.bytes and local retention of tiered topics for the run.",
        rich_help_panel=EXECUTION,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        help="Print the requests that would be sent, and send none.",
        rich_help_panel=EXECUTION,
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes", help="Do not ask for confirmation.", rich_help_panel=EXECUTION
    ),
]
SparkMaster = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs: local[*], spark://HOST:PORT, yarn, k8s://HOST:PORT.",
        parser=_master,
        metavar="MASTER",
        rich_help_panel=COMMON,
    ),
]
Ascii = Annotated[
    bool,
    typer.Option("--ascii", help="Draw with ASCII only.", rich_help_panel=COMMON),
]
Theme = Annotated[
    str | None,
    typer.Option(
        "--theme",
        metavar="NAME",
        help="Colours of the screen.",
        parser=_theme,
        rich_help_panel=COMMON,
    ),
]
Output = Annotated[
    Form,
    typer.Option("--output", "-o", help="Format of stdout.", rich_help_panel=OUTPUT),
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log-file",
        metavar="FILE",
        help="Append log lines to this file, as JSON.",
        rich_help_panel=COMMON,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Log more, and show tracebacks.",
        rich_help_panel=COMMON,
    ),
]
SnapshotFile = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="Read a recorded snapshot instead of a live cluster.",
        rich_help_panel=CLUSTER,
    ),
]
Describe = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Read the output of kafka-topics --describe instead of a live cluster.",
        rich_help_panel=CLUSTER,
    ),
]
Loads = Annotated[
    Path | None,
    typer.Option(
        "--loads",
        metavar="FILE",
        help="With --from: loads per partition (CSV).",
        rich_help_panel=CLUSTER,
    ),
]
Brokers = Annotated[
    Path | None,
    typer.Option(
        "--brokers",
        metavar="FILE",
        help="With --from: broker ids, racks and states (CSV, JSON).",
        rich_help_panel=CLUSTER,
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="KIND",
        help="With --from: replicated, tiered or shared.",
        rich_help_panel=CLUSTER,
    ),
]
RecordScreen = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Record what the screen shows (.jsonl, .jsonl.gz), for --play.",
        rich_help_panel=OUTPUT,
    ),
]
Capacity = Annotated[
    Path | None,
    typer.Option(
        "--capacity",
        metavar="FILE",
        help="Cruise Control's capacity file (JSON).",
        rich_help_panel=CLUSTER,
    ),
]
NoRacks = Annotated[
    bool,
    typer.Option("--no-racks", help="Plan without racks; switches the rack rule off."),
]
Placement = Annotated[
    list[str] | None,
    typer.Option(
        "--placement",
        metavar="[TOPICS=]FILE",
        help="Confluent's replica placement (JSON), for the topics that a regular "
        "expression matches; may be repeated.",
    ),
]
GoalsFile = Annotated[
    Path | None,
    typer.Option("--goals", metavar="FILE", help="Goals of this plan (TOML, JSON)."),
]


def load_settings(
    *,
    spark_master: SparkMaster = None,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    ascii_only: Ascii = False,
    theme: Theme = None,
    **flags: Any,
) -> "Settings":
    """The settings that the common options and some typed flags lead to."""
    # pydantic-settings costs a tenth of a second, which --help need not pay.
    from control.cli import logs
    from control.settings import settings
    from model import private

    private.begin()
    logs.configure(verbose=verbose, file=log_file)
    found = settings.load(
        flags | {"spark_master": spark_master}, config=config, profile=profile
    )
    if found.spark_shared_state:
        # Spark's workers, which may be another user's, read what lies there.
        private.end()
    else:
        private.tighten(found.state_dir)
    return _drawn(found, ascii_only=ascii_only, theme=theme)


def looks(
    context: typer.Context, ascii_only: Ascii = False, theme: Theme = None
) -> None:
    """Callback of a group of commands, which take these options from it."""
    del ascii_only, theme  # The context has them, and knows which were typed.
    pass_appearance(context)


def throttled(settings: "Settings", throttle: str | None) -> "Settings":
    """The settings with the throttle that was typed, if any."""
    if throttle is None:
        return settings
    return settings.model_copy(update={"throttle": throttle_of(throttle)})


def consenting(settings: "Settings", **consents: bool) -> "Settings":
    """The settings with what was typed that the run may do."""
    typed = {name: True for name, given in consents.items() if given}
    return settings.model_copy(update=typed)


def sized(settings: "Settings", capacity: Path | None) -> "Settings":
    """The settings with the capacity file that was typed, if any."""
    if capacity is None:
        return settings
    return settings.model_copy(update={"capacity_file": capacity})


def _drawn(settings: "Settings", *, ascii_only: bool, theme: str | None) -> "Settings":
    """The settings with what was typed of how the screen looks."""
    typed: dict[str, Any] = {"ascii": True} if ascii_only else {}
    typed |= {"theme": theme} if theme is not None else {}
    looks = settings.screen.model_copy(update=typed)
    return settings.model_copy(update={"screen": looks})


def _origin_of(
    *,
    bootstrap_server: Bootstrap = None,
    command_config: CommandConfig = None,
    snapshot: SnapshotFile = None,
    describe: Describe = None,
    loads: Loads = None,
    brokers: Brokers = None,
    storage: Storage = None,
    capacity: Capacity = None,
    no_racks: NoRacks = False,
    placement: Placement = None,
) -> "Origin":
    from control.cli.input_source import Origin

    origin = Origin(
        snapshot=snapshot,
        describe=describe,
        loads=loads,
        brokers=brokers,
        storage=storage,
        capacity=capacity,
        no_racks=no_racks,
        placement=tuple(placement or ()),
    )
    origin.check(bootstrap_server, command_config)
    return origin


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Hand a command its `settings` and, where it asks for one, its `origin`.

    Offered instead are the options that lead to them: in their place those that name
    the cluster, after all others those that every command takes.
    """
    own = inspect.signature(command).parameters
    from_files = "origin" in own
    cluster = _options(_origin_of) if from_files else _options(_origin_of)[:2]
    common = _options(load_settings)

    @functools.wraps(command)
    def run(**typed: Any) -> int:
        named = {p.name: typed.pop(p.name) for p in cluster}
        shared = {p.name: typed.pop(p.name) for p in common}
        if from_files:
            typed["origin"] = _origin_of(**named)
        live = load_settings(
            **shared,
            bootstrap_server=named["bootstrap_server"],
            client_properties=named["command_config"],
        )
        return command(settings=live, **typed)

    place = list(own).index("settings")
    others = [p for p in own.values() if p.name not in ("settings", "origin")]
    told = [*others[:place], *cluster, *others[place:], *common]
    run.__signature__ = inspect.Signature(told)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in told}
    return run


def _options(template: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(template).parameters.values()
    return [p for p in found if p.kind is p.KEYWORD_ONLY]

"""Options that several commands share. Importing them loads nothing heavy."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from control.cli import completion
from control.cli.output import Form, LogFormat
from model.goals.effort import Effort
from model.ids import is_broker_id
from model.units import throttle_of

T = TypeVar("T")

CLUSTER: Final = "Cluster"
EXECUTION: Final = "Execution"
OUTPUT: Final = "Output"
COMMON: Final = "Settings, logging and appearance"


def parsed(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` as a parser of an option: its ValueError becomes a usage error."""

    def value(text: str) -> T:
        try:
            return parse(text)
        except ValueError as exc:
            raise typer.BadParameter(str(exc)) from exc

    return value


def _broker_id(text: str) -> int:
    if not is_broker_id(text):
        raise ValueError(
            f"{text!r} is not a broker id, a whole number such as 4; plimsoll status lists them"
        )
    return int(text)


def _throttle(text: str) -> str:
    throttle_of(text)
    return text


def _master(text: str) -> str:
    from collector.spark.deployment import master_of

    return master_of(text)


def _theme(text: str) -> str:
    from control.settings.screen_settings import theme_of

    return theme_of(text)


cluster_option: Final = partial(typer.Option, rich_help_panel=CLUSTER)
execution_option: Final = partial(typer.Option, rich_help_panel=EXECUTION)
output_option: Final = partial(typer.Option, rich_help_panel=OUTPUT)
common_option: Final = partial(typer.Option, rich_help_panel=COMMON)
cluster_file: Final = partial(cluster_option, metavar="FILE")
output_file: Final = partial(output_option, metavar="FILE")
common_file: Final = partial(common_option, metavar="FILE")

run_argument: Final = partial(typer.Argument, metavar="RUN", autocompletion=completion.run_ids)
broker_argument: Final = partial(typer.Argument, parser=parsed(_broker_id))
task_argument: Final = partial(typer.Argument, metavar="TASK", autocompletion=completion.task_ids)
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.")]

# ---- the cluster

Bootstrap = Annotated[
    str | None,
    cluster_option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        help="Kafka's bootstrap servers, separated by commas.",
    ),
]
CommandConfig = Annotated[
    Path | None, cluster_file("--command-config", help="Kafka's client.properties (TLS, SASL).")
]
FleetFile = Annotated[
    Path | None, cluster_file("--fleet", help="With --cluster: the file of a fleet.")
]
FleetCluster = Annotated[
    str | None,
    cluster_option("--cluster", metavar="NAME", help="The service of this cluster of the fleet."),
]
SnapshotFile = Annotated[
    Path | None,
    cluster_file("--snapshot", help="Read a recorded snapshot instead of a live cluster."),
]
Describe = Annotated[
    Path | None,
    cluster_file(
        "--from", help="Read the output of kafka-topics --describe instead of a live cluster."
    ),
]
Loads = Annotated[
    Path | None, cluster_file("--loads", help="With --from: loads per partition (CSV).")
]
Brokers = Annotated[
    Path | None,
    cluster_file("--brokers", help="With --from: broker ids, racks and states (CSV, JSON)."),
]
Storage = Annotated[
    str | None,
    cluster_option(
        "--storage",
        metavar="KIND",
        help="With --from: replicated, tiered or shared.",
        autocompletion=completion.storage_kinds,
    ),
]
Capacity = Annotated[
    Path | None, cluster_file("--capacity", help="Cruise Control's capacity file (JSON).")
]

# ---- goals

NoRacks = Annotated[
    bool, typer.Option("--no-racks", help="Plan without racks; switches the rack rule off.")
]
Placement = Annotated[
    list[str] | None,
    typer.Option(
        "--placement",
        metavar="[TOPICS=]FILE",
        help="Confluent's replica placement (JSON) for topics that match a regular "
        "expression. Repeatable.",
    ),
]
PlanEffort = Annotated[
    Effort | None,
    typer.Option(
        "--effort",
        help="How far plans go: quick changes leaders only, in about a second, and copies "
        "nothing; good is the default; best searches until proved optimal, or ten times as long.",
        show_default=False,
    ),
]
GoalsFile = Annotated[
    Path | None, typer.Option("--goals", metavar="FILE", help="Goals of this plan (TOML, JSON).")
]

# ---- execution

AllowChanges = Annotated[
    bool, execution_option("--allow-changes/--read-only", help="Allow changes to the cluster.")
]
Throttle = Annotated[
    str | None,
    execution_option(
        help="Limit replication traffic into and out of each broker: bytes/s, 50MB/s "
        "or 50MiB/s; auto adapts to the bandwidth that clients leave free.",
        parser=parsed(_throttle),
        autocompletion=completion.throttle_rates,
        metavar="RATE",
    ),
]
SuspendBalancer = Annotated[
    bool,
    execution_option(
        "--suspend-balancer",
        "--stand-down-balancer",
        help="Suspend AutoMQ's own balancer during the run.",
    ),
]
LowerSegmentBytes = Annotated[
    bool,
    execution_option(
        "--lower-segment-bytes",
        "--shorten-segments",
        help="Lower segment.bytes and local retention of tiered topics for the run.",
    ),
]
DryRun = Annotated[bool, execution_option(help="Print the requests without sending any.")]
Yes = Annotated[bool, execution_option("--yes", help="Do not ask for confirmation.")]

# ---- the loop without a screen

Auto = Annotated[bool, typer.Option("--auto", help="Approve plans within the limits.")]
Limits = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completion.limit_names,
        help="Limits of --auto: conservative, eager, or a [limits.NAME] table.",
    ),
]

# ---- synthetic loads

Growth = Annotated[float, typer.Option(min=-0.5, max=0.5, help="Mean growth per week, as a share.")]
Bursts = Annotated[float, typer.Option(min=0, max=7, help="Bursts of a topic per week.")]

# ---- output

Output = Annotated[Form, output_option("--output", "-o", help="Format of stdout.")]
RecordScreen = Annotated[
    Path | None, output_file("--record", help="Record the screen (.jsonl, .jsonl.gz) for --play.")
]

# ---- settings, logging and appearance

Config = Annotated[Path | None, common_file("--config", help="Configuration file (TOML).")]
Profile = Annotated[
    str | None,
    common_option(
        "--profile",
        metavar="NAME",
        help="Profile of the configuration file.",
        autocompletion=completion.profile_names,
    ),
]
SparkMaster = Annotated[
    str | None,
    common_option(
        help="Where Spark runs: local[*], spark://HOST:PORT, yarn, k8s://HOST:PORT.",
        parser=parsed(_master),
        autocompletion=completion.spark_masters,
        metavar="MASTER",
    ),
]
Ascii = Annotated[bool, common_option("--ascii", help="Draw with ASCII only.")]
Theme = Annotated[
    str | None,
    common_option(
        "--theme",
        metavar="NAME",
        help="Colours of the screen.",
        parser=parsed(_theme),
        autocompletion=completion.theme_names,
    ),
]
LogFile = Annotated[
    Path | None, common_file("--log-file", help="Append log lines to this file, as JSON.")
]
LogForm = Annotated[
    LogFormat,
    common_option("--log-format", help="Write log lines and messages to stderr in this format."),
]
Verbose = Annotated[bool, common_option("--verbose", "-v", help="Log more, and show tracebacks.")]

"""The commands that make, judge and explain plans; none changes a cluster.

Heavy imports wait until a command needs them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.command_group import OUTPUT
from control.cli.exit_codes import Exit
from control.cli.options import GoalsFile, Output, with_settings
from control.cli.output_format import Form
from model.units import rate_of

if TYPE_CHECKING:
    from control.cli.input_source import Origin
    from control.settings.settings import Settings


def _rate(text: str) -> float:
    try:
        return float(text) if text.strip() == "0" else float(rate_of(text))
    except ValueError as exc:
        raise typer.BadParameter(str(exc)) from exc


Topic = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC", help="Move only this topic's partitions; may be repeated."
    ),
]
LeadersOnly = Annotated[
    bool,
    typer.Option(
        "--leaders-only", help="Change leaders only: no replica moves, nothing copied."
    ),
]
PlanOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the plan here (.json, .json.gz).",
        rich_help_panel=OUTPUT,
    ),
]
ReassignmentJson = Annotated[
    Path | None,
    typer.Option(
        "--reassignment-json",
        metavar="DIR",
        help="Write the plan here as Kafka reassignment JSON, with its rollback.",
        rich_help_panel=OUTPUT,
    ),
]
Stock = Annotated[Path | None, typer.Option("--stock", hidden=True)]
"""The name of `--reassignment-json` until 1.3."""
DetailedExitcode = Annotated[
    bool,
    typer.Option(
        "--detailed-exitcode/--no-detailed-exitcode",
        help="Exit with 10 when moves are proposed.",
        rich_help_panel=OUTPUT,
    ),
]
AddBroker = Annotated[
    list[str] | None,
    typer.Option(metavar="COUNT[:RACK]", help="Add this many brokers."),
]
RemoveBroker = Annotated[
    list[int] | None,
    typer.Option(metavar="ID", help="Remove this broker."),
]
Traffic = Annotated[
    list[str] | None,
    typer.Option(metavar="FACTOR[:PATTERN]", help="Multiply the traffic of topics."),
]
LoseRack = Annotated[
    list[str] | None,
    typer.Option(metavar="RACK", help="Lose this rack."),
]
FewestBrokers = Annotated[
    bool,
    typer.Option(
        "--fewest-brokers", help="Find the smallest sufficient number of brokers."
    ),
]
WhatIfOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the answer here (.json, .json.gz).",
        rich_help_panel=OUTPUT,
    ),
]
FrontierOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the frontier here (.json, .json.gz).",
        rich_help_panel=OUTPUT,
    ),
]
Svg = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw the frontier here (.svg).",
        rich_help_panel=OUTPUT,
    ),
]
Partitions = Annotated[
    int,
    typer.Option("--partitions", "-p", metavar="COUNT", help="Number of partitions."),
]
ReplicationFactor = Annotated[
    int,
    typer.Option(
        "--replication-factor", "-r", metavar="COUNT", help="Replicas of each."
    ),
]
NetIn = Annotated[
    float | None,
    typer.Option(
        metavar="RATE",
        parser=_rate,
        help="Expected rate into one partition: bytes/s, 2MB/s, 2MiB/s.",
    ),
]
NetOut = Annotated[
    float | None,
    typer.Option(metavar="RATE", parser=_rate, help="Expected rate to its consumers."),
]
PlaceOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the assignment here, as Kafka reassignment JSON.",
        rich_help_panel=OUTPUT,
    ),
]
PlanFile = Annotated[Path | None, typer.Argument(metavar="PLAN", help="A plan file.")]
Reassignment = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Judge this kafka-reassign-partitions JSON instead."
    ),
]
Election = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --reassignment: the kafka-leader-election JSON after it.",
    ),
]
Prove = Annotated[
    bool,
    typer.Option("--prove", help="Prove again bounds that prices alone do not show."),
]
Work = Annotated[
    float | None,
    typer.Option(
        metavar="UNITS",
        min=0.001,
        # `MOST` of the goals, whose import would slow every command down.
        max=1e9,
        help="With --prove: search budget, in units of about a second.",
    ),
]
Move = Annotated[
    str | None,
    typer.Argument(metavar="MOVE", help="Its number, or a partition: orders-7."),
]
To = Annotated[
    int | None,
    typer.Option(metavar="BROKER", help="Ask why the partition is not there."),
]


@with_settings
def plan(
    *,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    topic: Topic = None,
    leaders_only: LeadersOnly = False,
    out: PlanOut = None,
    reassignment_json: ReassignmentJson = None,
    stock: Stock = None,
    detailed_exitcode: DetailedExitcode = False,
    output: Output = Form.TABLE,
) -> int:
    """Make a plan and say how good it is; changes nothing."""
    from control.cli.commands.plan import make

    code = make(
        settings,
        origin,
        goals_file=goals,
        topics=topic or (),
        leaders_only=leaders_only,
        out=out,
        reassignment_json=reassignment_json or stock,
        output=output,
    )
    proposed = code == Exit.MOVES_PROPOSED and not detailed_exitcode
    return Exit.DONE if proposed else code


@with_settings
def what_if(
    *,
    add_broker: AddBroker = None,
    remove_broker: RemoveBroker = None,
    traffic: Traffic = None,
    lose_rack: LoseRack = None,
    fewest_brokers: FewestBrokers = False,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    out: WhatIfOut = None,
    output: Output = Form.TABLE,
) -> int:
    """Plan a cluster that is only supposed; changes nothing."""
    from control.cli.commands.what_if import make
    from control.planning.scenario_flags import Question

    question = Question(
        add_broker=add_broker or (),
        remove_broker=remove_broker or (),
        traffic=traffic or (),
        lose_rack=lose_rack or (),
        fewest_brokers=fewest_brokers,
    )
    return make(settings, origin, question, goals_file=goals, out=out, output=output)


@with_settings
def frontier(
    *,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    out: FrontierOut = None,
    svg: Svg = None,
    output: Output = Form.TABLE,
) -> int:
    """Show what balance can be had for how many moves; changes nothing."""
    from control.cli.commands.frontier import make

    return make(settings, origin, goals_file=goals, out=out, svg=svg, output=output)


@with_settings
def place(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    *,
    partitions: Partitions,
    replication_factor: ReplicationFactor,
    net_in: NetIn = None,
    net_out: NetOut = None,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    out: PlaceOut = None,
    output: Output = Form.TABLE,
) -> int:
    """Place the partitions of a topic about to be created; changes nothing."""
    from control.cli.commands.assign import make
    from model.ids import TopicName
    from solver.new_topic.topic_problem import NewTopic

    new = NewTopic(
        name=TopicName(topic),
        partitions=partitions,
        replication_factor=replication_factor,
        net_in=net_in,
        net_out=net_out,
    )
    return make(settings, origin, new, goals_file=goals, out=out, output=output)


@with_settings
def verify(
    plan_file: PlanFile = None,
    *,
    reassignment: Reassignment = None,
    election: Election = None,
    prove: Prove = False,
    work: Work = None,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    output: Output = Form.TABLE,
) -> int:
    """Judge a plan by code that shares nothing with the one that made it."""
    from control.cli.commands.verify import make
    from control.cli.input_source import goals_of

    return make(
        settings.model_copy(update={"goals": goals_of(settings, goals, origin)}),
        plan_file,
        origin,
        reassignment=reassignment,
        election=election,
        goals_given=goals is not None or origin.no_racks or bool(origin.placement),
        prove=prove,
        work=work,
        output=output,
    )


@with_settings
def explain(
    plan_file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.")],
    move: Move = None,
    *,
    to: To = None,
    settings: "Settings",
    origin: "Origin",
    output: Output = Form.TABLE,
) -> int:
    """Say why each move is made, and why another is not."""
    from control.cli.commands.explain import make

    return make(settings, plan_file, origin, move=move, to=to, output=output)


def schema(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="A kind of file (plan, snapshot, goals ...), or what a command prints "
            "with -o json (plan-output, status-output ...).",
        ),
    ],
    *,
    output: Output = Form.JSON,
) -> int:
    """Print a JSON schema; there is no other form of it."""
    from control.cli.commands.schema import show

    return show(name)


COMMANDS: Final[dict[str, Callable[..., int]]] = {
    "plan": plan,
    "verify": verify,
    "explain": explain,
    "frontier": frontier,
    "what-if": what_if,
    "place": place,
    "schema": schema,
}
"""By the name that is typed."""

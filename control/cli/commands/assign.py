"""`plimsoll assign`: brokers for the partitions of a new topic."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.options import GoalsFile, Output, output_file, parsed
from control.cli.output import Form
from model.units import rate_of

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.settings.settings import Settings


def _rate(text: str) -> float:
    return 0.0 if text.strip() == "0" else float(rate_of(text))


_rate_option: Final = partial(typer.Option, metavar="RATE", parser=parsed(_rate))


def assign(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    *,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", metavar="COUNT", help="Number of partitions.")
    ],
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", metavar="COUNT", help="Replicas of each.")
    ],
    net_in: Annotated[
        float | None,
        _rate_option(help="Expected rate into each partition: bytes/s, 2MB/s, 2MiB/s."),
    ] = None,
    net_out: Annotated[
        float | None, _rate_option(help="Expected rate from each partition to its consumers.")
    ] = None,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    out: Annotated[
        Path | None, output_file(help="Write the assignment here, as Kafka reassignment JSON.")
    ] = None,
    output: Output = Form.TABLE,
) -> int:
    """Assign the partitions of a new topic to brokers; print or write the lists."""
    from control.cli.input_source import (
        check_racks,
        goals_of,
        snapshot_of,
        warn_of_ignored,
        warn_of_placements,
    )
    from control.cli.output_files import KAFKA, check_file
    from control.cli.progress_line import LISTS, shown
    from control.render.assignment import assignment_text, reassignment_document
    from model.files import write_document
    from model.ids import TopicName
    from solver.new_topic.assign_topic import assign_replicas
    from solver.new_topic.topic_problem import NewTopic

    new = NewTopic(
        name=TopicName(topic),
        partitions=partitions,
        replication_factor=replication_factor,
        net_in=net_in,
        net_out=net_out,
    )
    check_file(out, KAFKA)
    wanted = goals_of(settings, goals, origin)
    snapshot = snapshot_of(settings, origin)
    given = wanted.placements[: len(origin.placement or ())]
    warn_of_placements(given, [new.name], f"does not match topic {topic}")
    warn_of_ignored(snapshot, wanted)
    exported = out or ("the assignment" if output is Form.JSON else None)
    check_racks(snapshot, wanted, exported, most_replicas=replication_factor)
    found = shown(
        lambda observer: assign_replicas(snapshot, wanted, new, settings.solve.limits, observer),
        kept=LISTS,
    )
    if found.replicas and out is not None:
        write_document(out, reassignment_document(found))
    sys.stdout.write(assignment_text(snapshot, found, output))
    return Exit.DONE if found.replicas else Exit.INFEASIBLE

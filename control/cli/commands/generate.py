"""`plimsoll generate`: a synthetic cluster, as a recorded state and a load history."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Bursts, Growth, Output, Verbose, parsed
from control.cli.output import Form
from model.units import count_text, span_of

if TYPE_CHECKING:
    from control.cli.output_types import GenerateAnswer
    from lab.synthetic.shape import ClusterShape

_DEFAULT: Final = 3
"""Racks, and replicas, unless given; fewer on fewer brokers."""


def generate(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")],
    brokers: Annotated[int, typer.Option(min=1, max=10_000, help="Number of brokers.")] = 6,
    partitions: Annotated[
        int, typer.Option(min=1, max=2_000_000, help="Number of partitions.")
    ] = 300,
    racks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of racks; brokers are assigned to them in turn.  [default: 3, or fewer]",
        ),
    ] = None,
    rf: Annotated[
        int | None,
        typer.Option("--rf", min=1, help="Replication factor.  [default: 3, or fewer; shared: 1]"),
    ] = None,
    storage: Annotated[
        Literal["replicated", "tiered", "shared"],
        typer.Option("--storage", help="Storage of the topics."),
    ] = "replicated",
    unequal: Annotated[
        bool, typer.Option("--unequal", help="Give brokers 1, 1.5 and 2 times a base capacity.")
    ] = False,
    topic_skew: Annotated[
        float, typer.Option(min=0, max=5, help="Zipf exponent of topics' rates.")
    ] = 0.9,
    partition_skew: Annotated[
        float, typer.Option(min=0, max=5, help="Zipf exponent of partitions' rates in a topic.")
    ] = 0.4,
    growth: Growth = 0.02,
    bursts: Bursts = 0.5,
    days: Annotated[int, typer.Option(min=0, max=366, help="Days of history.")] = 14,
    step: Annotated[
        float,
        typer.Option(
            help="Time between two loads of the history: 15m, 1h.",
            parser=parsed(span_of),
            metavar="TIME",
        ),
    ] = "1h",  # type: ignore[assignment]  # the parser reads defaults, too
    seed: Annotated[int, typer.Option(min=0, help="Seed of the cluster.")] = 1,
    output: Output = Form.TABLE,
    verbose: Verbose = False,
) -> int:
    """Write a synthetic cluster and summarise it."""
    from control.cli.output_types import GenerateAnswer
    from control.render.text import answer_text
    from lab.synthetic.load_curves import Rhythm
    from lab.synthetic.observe import Order
    from lab.synthetic.write import write_synthetic
    from model.snapshot.snapshot import StorageKind

    del verbose  # Tracebacks are shown by the caller.
    shape = shape_of(
        brokers=brokers,
        partitions=partitions,
        racks=racks,
        rf=1 if storage == "shared" and rf is None else rf,
        topic_skew=topic_skew,
        partition_skew=partition_skew,
        unequal=unequal,
    )
    order = Order(
        shape=shape,
        storage=StorageKind(storage),
        rhythm=Rhythm(growth=growth, bursts=bursts),
        seed=seed,
        days=days,
        step_ms=round(1000 * step),
    )
    snapshot = write_synthetic(out, order)
    answer = GenerateAnswer.of(
        folder=out, brokers=len(snapshot.header.brokers), partitions=len(snapshot), days=days
    )
    sys.stdout.write(answer_text(answer, _text, output))
    return Exit.DONE


def _text(answer: "GenerateAnswer") -> str:
    counts = [
        count_text(answer.brokers, "broker"),
        count_text(answer.partitions, "partition"),
        count_text(answer.days, "day"),
    ]
    return f"{answer.folder}: {', '.join(counts)} of history\n"


def shape_of(*, brokers: int, racks: int | None, rf: int | None, **other: Any) -> "ClusterShape":
    """The shape asked for, with new brokers if each rack also has an old one.

    Raises ConfigError for an impossible shape.
    """
    from lab.synthetic.shape import ClusterShape, young_brokers

    racks = racks or min(_DEFAULT, brokers)
    return ClusterShape(
        brokers=brokers,
        racks=racks,
        rf=rf or min(_DEFAULT, racks),
        young=brokers - young_brokers(brokers) >= racks,
        **other,
    )

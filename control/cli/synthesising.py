"""The command that makes up a cluster.

Heavy imports wait until a command needs them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from control.cli.options import Output, Verbose
from control.cli.output_format import Form
from control.cli.recording import parsed_span

Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder to write.")]
Brokers = Annotated[int, typer.Option(min=1, max=10_000, help="Number of brokers.")]
PartitionCount = Annotated[
    int, typer.Option(min=1, max=2_000_000, help="Number of partitions.")
]
Racks = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of racks, which take brokers in turn.  [default: 3, or fewer]",
    ),
]
Replicas = Annotated[
    int | None,
    typer.Option(
        "--rf", min=1, help="Replication factor.  [default: 3, or fewer; shared: 1]"
    ),
]
Kind = Annotated[
    Literal["replicated", "tiered", "shared"],
    typer.Option("--storage", help="Storage of the topics."),
]
Unequal = Annotated[
    bool, typer.Option("--unequal", help="Give brokers 1, 1.5 and 2 times a capacity.")
]
TopicSkew = Annotated[
    float, typer.Option(min=0, max=5, help="Zipf exponent of topics' rates.")
]
PartitionSkew = Annotated[
    float,
    typer.Option(min=0, max=5, help="Zipf exponent of partitions' rates in a topic."),
]
Growth = Annotated[
    float, typer.Option(min=-0.5, max=0.5, help="Mean growth a week, as a share.")
]
Bursts = Annotated[
    float, typer.Option(min=0, max=7, help="Bursts of a topic per week.")
]
Days = Annotated[int, typer.Option(min=0, max=366, help="Days of history.")]
Step = Annotated[
    float,
    typer.Option(
        help="Time between two loads of the history: 15m, 1h.",
        parser=parsed_span,
        metavar="TIME",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the cluster.")]


def synthesise(
    *,
    out: Out,
    brokers: Brokers = 6,
    partitions: PartitionCount = 300,
    racks: Racks = None,
    rf: Replicas = None,
    storage: Kind = "replicated",
    unequal: Unequal = False,
    topic_skew: TopicSkew = 0.9,
    partition_skew: PartitionSkew = 0.4,
    growth: Growth = 0.02,
    bursts: Bursts = 0.5,
    days: Days = 14,
    step: Step = "1h",  # type: ignore[assignment]  # the parser reads defaults, too
    seed: Seed = 1,
    output: Output = Form.TABLE,
    verbose: Verbose = False,
) -> int:
    """Make up a cluster: a recorded state, and the history of its loads."""
    from control.cli.commands.generate import make, shape_of
    from lab.synthetic.load_curves import Rhythm
    from lab.synthetic.observe import Order
    from model.snapshot.snapshot import StorageKind

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
    return make(order, out, output)


COMMANDS: Final[dict[str, Callable[..., int]]] = {"synthesise": synthesise}
"""By the name that is typed."""

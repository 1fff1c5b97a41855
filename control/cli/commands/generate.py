"""`plimsoll synthesise`: the state and the history of a cluster that nobody has."""

import sys
from pathlib import Path
from typing import Any, Final

from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.render.plan_text import json_text
from lab.synthetic.observe import Order
from lab.synthetic.shape import ClusterShape, young_brokers
from lab.synthetic.write import write_synthetic
from model.units import count_text

_MOST: Final = 3
"""Racks, and replicas, where nothing else is asked for."""


def shape_of(
    *, brokers: int, racks: int | None, rf: int | None, **other: Any
) -> ClusterShape:
    """As asked for; with young brokers where each rack has an old one, too.

    Raises ConfigError where it cannot be.
    """
    racks = racks or min(_MOST, brokers)
    return ClusterShape(
        brokers=brokers,
        racks=racks,
        rf=rf or min(_MOST, racks),
        young=brokers - young_brokers(brokers) >= racks,
        **other,
    )


def make(order: Order, out: Path, output: Form) -> int:
    """Write it, and say what it is."""
    snapshot = write_synthetic(out, order)
    if output is Form.JSON:
        answer = {
            "folder": str(out),
            "brokers": len(snapshot.header.brokers),
            "partitions": len(snapshot),
            "days": order.days,
        }
        sys.stdout.write(json_text(answer))
        return Exit.DONE
    brokers = count_text(len(snapshot.header.brokers), "broker")
    partitions = count_text(len(snapshot), "partition")
    days = count_text(order.days, "day")
    sys.stdout.write(f"{out}: {brokers}, {partitions}, {days} of history\n")
    return Exit.DONE

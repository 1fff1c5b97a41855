"""Rates of topics over time from a CSV file: `time,topic,rate`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from lab.time_lapse.varying_loads import TabledLoads, rate_columns
from model.errors import ConfigError
from model.exchange.text_files import amount, fault, nearest, read_table
from model.snapshot.snapshot import Floats, Resource, Snapshot

COLUMNS: Final = ("time", "topic", "rate")
LATEST_S: Final = 32_503_680_000.0
"""The year 3000, seconds since the epoch."""


def read_load_table(path: Path, snapshot: Snapshot) -> TabledLoads:
    """Read rates (bytes/s from producers, per topic) for the cluster of a snapshot.

    Partitions keep their shares of their topic; what consumers read follows. A topic keeps its
    rate until its next time, and that of the snapshot before its first.

    Raises ConfigError, naming the line: a time is not valid or before the one above, a rate is
    negative or not a number, the cluster has no such topic, or the topic has no load to scale.
    """
    topics = {str(t.name): at for at, t in enumerate(snapshot.header.topics)}
    usual = _usual_rates(snapshot)
    _, rows = read_table(path, required=COLUMNS, known=COLUMNS)
    times: list[float] = []
    factors: list[Floats] = []
    for line, row in rows:
        at_s = _time(path, line, row["time"])
        if times and at_s < times[-1]:
            raise fault(path, line, f"the time {row['time']} is before the one above; sort by time")
        topic = _topic(path, line, row["topic"], topics)
        if not row["rate"]:
            raise fault(path, line, "rate is empty; give bytes per second")
        rate = amount(path, line, "rate", row["rate"])
        if rate and not usual[topic]:
            raise fault(
                path, line, f"the topic {row['topic']} has no load in the snapshot to scale"
            )
        if not times or at_s > times[-1]:
            times.append(at_s)
            factors.append(factors[-1].copy() if factors else np.ones(len(topics)))
        factors[-1][topic] = rate / usual[topic] if rate else 0.0
    if not times:
        raise ConfigError(f"{path} has no rows below its header; add rates of topics")
    return TabledLoads(
        loads=snapshot.partitions.loads,
        rates=rate_columns(snapshot),
        topic=snapshot.partitions.topic,
        times_ms=np.array([round(1000 * at_s) for at_s in times], np.int64),
        factors=np.array(factors),
    )


def _usual_rates(snapshot: Snapshot) -> Floats:
    """(topics,) bytes/s from producers in the snapshot."""
    header = snapshot.header
    if Resource.NET_IN not in header.resources:
        raise ConfigError("the snapshot has no net_in, which rates of a file could replace")
    column = header.resources.index(Resource.NET_IN)
    rates = np.nan_to_num(snapshot.partitions.loads[:, column])
    found: Floats = np.bincount(snapshot.partitions.topic, rates, len(header.topics)).astype(
        np.float64
    )
    return found


def _time(path: Path, line: int, cell: str) -> float:
    """Seconds since the epoch: of such a number, or of ISO 8601, in UTC unless it says so."""
    try:
        at_s = float(cell)
    except ValueError:
        try:
            at = datetime.fromisoformat(cell)
        except ValueError:
            at_s = -1.0
        else:
            at_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if not 0 <= at_s <= LATEST_S:
        raise fault(
            path,
            line,
            f"time is {cell!r}; give seconds since the epoch, or ISO 8601 such as "
            "2026-01-05T00:00:00Z",
        )
    return at_s


def _topic(path: Path, line: int, name: str, topics: Mapping[str, int]) -> int:
    if name not in topics:
        raise fault(path, line, f"the cluster has no topic {name!r}{nearest(name, topics)}")
    return topics[name]

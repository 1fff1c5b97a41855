"""What files may not say although it has the right shape: ids, names, sizes, shares."""

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from model.errors import InvalidCluster
from model.ids import MOST_ID, NO_BROKER, is_legal
from model.snapshot.snapshot import Snapshot, SnapshotHeader, Source


def check_header(header: SnapshotHeader) -> None:
    """Refuse brokers, topics and sources that no cluster can have.

    Raises
    ------
    InvalidCluster
        Names the first offender.
    """
    for broker in header.brokers:
        _check_id("a broker", broker.id)
    for topic in header.topics:
        _check_name(topic.name)
    _check_once("topic", (t.name for t in header.topics))
    _check_once("resource", (r.value for r in header.resources))
    for source in header.sources:
        _check_source(source)
    for move in header.recent_moves:
        _check_name(move.topic)
        _check_id("a partition of recent_moves", move.partition)


def check_ranges(snapshot: Snapshot) -> None:
    """Refuse partitions whose numbers or sizes cannot be.

    Raises
    ------
    InvalidCluster
        Names the first offender.
    """
    columns = snapshot.partitions
    for name, column, least, most in (
        ("number", columns.partition, 0, MOST_ID),
        ("leader", columns.leader, NO_BROKER, MOST_ID),
        ("size_bytes", columns.size_bytes, -1, None),
        ("local_bytes", columns.local_bytes, -1, None),
    ):
        bad = column < least
        if most is not None:
            bad |= column > most
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidCluster(
                f"{snapshot.id(row)} has the {name} {int(column[row])}, which cannot be"
            )


def _check_source(source: Source) -> None:
    good = (
        source.samples >= 0
        and 0 <= source.measured_share <= 1
        and source.window_s >= 0
        and math.isfinite(source.window_s)
    )
    if not good:
        raise InvalidCluster(
            f"the source {source.name!r} has a share, a window or a number of samples "
            "that cannot be"
        )


def _check_id(what: str, number: int) -> None:
    if not 0 <= number <= MOST_ID:
        raise InvalidCluster(
            f"{what} has the number {number}; Kafka's are from 0 to {MOST_ID}"
        )


def _check_name(topic: str) -> None:
    if not is_legal(topic):
        raise InvalidCluster(
            f"{topic!r} is not the name of a topic: Kafka allows up to 249 letters, "
            "digits, dots, underscores and hyphens"
        )


def _check_once(what: str, names: Iterable[str]) -> None:
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise InvalidCluster(f"the {what} {name} is listed {count} times")

"""Checks of a snapshot: consistent columns and brokers, plausible ids, names, sizes."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from model.errors import InvalidCluster
from model.ids import MOST_ID, NO_BROKER, is_legal
from model.snapshot.snapshot_parts import (
    Broker,
    Partitions,
    SnapshotHeader,
    Source,
    partition_id,
    replica_list,
)

MOST_SLOTS: Final = 7
"""Hours besides now; more than eight make plans no better, only slower."""

MOST_LOAD: Final = 1e30
"""Bytes/s or bytes; squares and sums of larger loads overflow a double."""

MOST_TIMES: Final = 1e6
"""Largest plausible ratio of two brokers' capacities; beyond it a unit is wrong."""


def check_snapshot(header: SnapshotHeader, columns: Partitions) -> None:
    """Refuse a snapshot that contradicts itself; NaN, an unknown load, is allowed.

    Raises InvalidCluster: a column has the wrong shape or order, a load is negative, infinite or
    above `MOST_LOAD`, slots are repeated or too many, brokers are not sorted by id, a topic,
    replica, leader or log directory does not exist, a partition or replica is listed twice, a
    partition has no replica, or capacities are impossible. The message names the first offender
    where there is one.
    """
    _check_columns(header, columns)
    _check_slots(header, columns)
    _check_brokers(header, columns)
    check_capacities(header.brokers)
    _check_replicas(header, columns)
    _check_directories(header, columns)


def check_header(header: SnapshotHeader) -> None:
    """Refuse a header with the right shape that cannot come from a Kafka cluster.

    For snapshots read from files; the collector's own cannot fail these checks.

    Raises InvalidCluster: a broker id or topic name that Kafka does not allow, a topic or resource
    listed twice, or an implausible load source; the message names the first offender.
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


def check_ranges(header: SnapshotHeader, columns: Partitions) -> None:
    """Refuse partition numbers, leaders and sizes (bytes) out of Kafka's range.

    Raises InvalidCluster, which names the first offender.
    """
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
                f"{partition_id(header, columns, row)} has the {name} "
                f"{int(column[row])}, which is impossible"
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
            f"the source {source.name!r} has an impossible share, window or number of samples"
        )


def _check_id(subject: str, number: int) -> None:
    if not 0 <= number <= MOST_ID:
        raise InvalidCluster(f"{subject} has the number {number}; Kafka's are from 0 to {MOST_ID}")


def _check_name(topic: str) -> None:
    if not is_legal(topic):
        raise InvalidCluster(
            f"{topic!r} is not a legal topic name: Kafka allows up to 249 letters, "
            "digits, dots, underscores and hyphens"
        )


def _check_once(kind: str, names: Iterable[str]) -> None:
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise InvalidCluster(f"the {kind} {name} is listed {count} times")


def _check_columns(header: SnapshotHeader, columns: Partitions) -> None:
    n, width = len(columns.topic), len(header.resources)
    slot_loads = np.empty((n, 0, width)) if columns.slot_loads is None else columns.slot_loads
    shapes = {
        "partition": (columns.partition, (n,)),
        "replica_start": (columns.replica_start, (n + 1,)),
        "leader": (columns.leader, (n,)),
        "loads": (columns.loads, (n, width)),
        "measured": (columns.measured, (n, width)),
        "size_bytes": (columns.size_bytes, (n,)),
        "local_bytes": (columns.local_bytes, (n,)),
        "slot_loads": (slot_loads, (n, len(header.slots), width)),
        "replica_dir": (columns.replica_dir, columns.replica_broker.shape),
    }
    for name, (column, shape) in shapes.items():
        if column is not None and column.shape != shape:
            raise InvalidCluster(f"the column {name} has the shape {column.shape}, not {shape}")
    if n and not 0 <= columns.topic.min() <= columns.topic.max() < len(header.topics):
        raise InvalidCluster("a partition belongs to a topic that is not listed")
    _check_order(header, columns)
    _check_loads(header, columns)


def _check_order(header: SnapshotHeader, columns: Partitions) -> None:
    order = np.lexsort((columns.partition, columns.topic))
    if not np.array_equal(order, np.arange(len(order))):
        raise InvalidCluster("partitions are not sorted by topic and number")
    same = (np.diff(columns.topic) == 0) & (np.diff(columns.partition) == 0)
    if same.any():
        partition = partition_id(header, columns, int(same.argmax()))
        raise InvalidCluster(f"{partition} is listed twice")


def _check_loads(header: SnapshotHeader, columns: Partitions) -> None:
    negative = ~np.isnan(columns.loads) & ~(columns.loads >= 0)
    negative |= np.isinf(columns.loads)
    for bad, fault in (
        (negative, "a negative or infinite load"),
        (columns.loads > MOST_LOAD, f"a load over {MOST_LOAD:.0e}; check its unit"),
    ):
        if bad.any():
            row = int(bad.any(axis=1).argmax())
            raise InvalidCluster(f"{partition_id(header, columns, row)} has {fault}")


def _check_slots(header: SnapshotHeader, columns: Partitions) -> None:
    if len(header.slots) > MOST_SLOTS or len(set(header.slots)) != len(header.slots):
        raise InvalidCluster(
            f"the slots {list(header.slots)} must be at most {MOST_SLOTS}, each once"
        )
    if columns.slot_loads is not None:
        known = ~np.isnan(columns.slot_loads)
        fits = (columns.slot_loads >= 0) & (columns.slot_loads <= MOST_LOAD)
        if (known & ~fits).any():
            raise InvalidCluster(
                f"slot_loads holds a load that is negative or over {MOST_LOAD:.0e}"
            )


def _check_brokers(header: SnapshotHeader, columns: Partitions) -> None:
    ids = [b.id for b in header.brokers]
    if ids != sorted(set(ids)):
        raise InvalidCluster(f"brokers are not sorted by id, each listed once: {ids}")
    start = columns.replica_start
    if start[0] or (np.diff(start) < 0).any():
        raise InvalidCluster("the column replica_start must rise from 0")
    if start[-1] != len(columns.replica_broker):
        raise InvalidCluster("replica_start does not match the length of replica_broker")
    unknown = sorted(set(columns.replica_broker.tolist()) - set(ids))
    if unknown:
        raise InvalidCluster(
            f"replicas on unknown brokers {unknown}; list them as dead if they are gone"
        )


def check_capacities(brokers: Sequence[Broker]) -> None:
    """Refuse capacities so far apart that their units must differ.

    Raises InvalidCluster: one broker has more than `MOST_TIMES` the capacity of another; both are
    named.
    """
    for resource in sorted({r for b in brokers for r in b.capacity}):
        known = [(b.capacity[resource], b.id) for b in brokers if resource in b.capacity]
        (least, small), (most, large) = min(known), max(known)
        if most > MOST_TIMES * least:
            raise InvalidCluster(
                f"broker {large} has {most / least:.0e} times the {resource} capacity "
                f"of broker {small}; check their units"
            )


def _check_replicas(header: SnapshotHeader, columns: Partitions) -> None:
    n = len(columns.topic)
    lengths = np.diff(columns.replica_start)
    row = np.repeat(np.arange(n), lengths)
    order = np.lexsort((columns.replica_broker, row))
    broker = columns.replica_broker[order]
    twice = (np.diff(row[order]) == 0) & (np.diff(broker) == 0)
    bad = [*np.flatnonzero(lengths == 0), *row[order][1:][twice]]
    if bad:
        first = int(bad[0])
        raise InvalidCluster(
            f"{partition_id(header, columns, first)} has the replicas "
            f"{replica_list(columns, first)}; it needs at least one, on distinct brokers"
        )
    led = np.zeros(n, np.bool_)
    led[row[columns.replica_broker == columns.leader[row]]] = True
    odd = np.flatnonzero(~led & (columns.leader != NO_BROKER))
    if len(odd):
        first = int(odd[0])
        raise InvalidCluster(
            f"{partition_id(header, columns, first)} is led by broker "
            f"{int(columns.leader[first])}, which holds no replica of it; its replicas "
            f"are {replica_list(columns, first)}"
        )


def _check_directories(header: SnapshotHeader, columns: Partitions) -> None:
    if columns.replica_dir is None:
        return
    ids = np.array([b.id for b in header.brokers], np.int64)
    count = np.array([len(b.log_dirs) for b in header.brokers], np.int64)
    most = count[np.searchsorted(ids, columns.replica_broker)]
    bad = (columns.replica_dir < -1) | (columns.replica_dir >= most)
    if bad.any():
        at = int(bad.argmax())
        row = int(np.searchsorted(columns.replica_start, at, "right")) - 1
        raise InvalidCluster(
            f"{partition_id(header, columns, row)} is in log directory {columns.replica_dir[at]} "
            f"of broker {columns.replica_broker[at]}, which lists {most[at]}"
        )

"""What a snapshot refuses: columns and brokers that contradict themselves."""

from typing import TYPE_CHECKING, Final

import numpy as np

from model.errors import InvalidCluster
from model.ids import NO_BROKER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.snapshot.snapshot import Broker, Snapshot

MOST_SLOTS: Final = 7
"""Hours besides now; more than eight make plans no better, only slower."""


MOST_LOAD: Final = 1e30
"""Sums and squares of more than this are no numbers any more."""

MOST_TIMES: Final = 1e6
"""No broker has so many times the capacity of another; one of the units is wrong."""


def check_snapshot(snapshot: "Snapshot") -> None:
    """Refuse what contradicts itself.

    Raises
    ------
    InvalidCluster
        Names the first offender.
    """
    _check_columns(snapshot)
    _check_slots(snapshot)
    _check_brokers(snapshot)
    check_capacities(snapshot.header.brokers)
    _check_replicas(snapshot)
    _check_directories(snapshot)


def _check_columns(snapshot: "Snapshot") -> None:
    columns, header = snapshot.partitions, snapshot.header
    n = len(columns.topic)
    shapes = {
        "partition": (columns.partition, (n,)),
        "replica_start": (columns.replica_start, (n + 1,)),
        "leader": (columns.leader, (n,)),
        "loads": (columns.loads, (n, len(header.resources))),
        "measured": (columns.measured, (n, len(header.resources))),
        "size_bytes": (columns.size_bytes, (n,)),
        "local_bytes": (columns.local_bytes, (n,)),
    }
    for name, (column, shape) in shapes.items():
        if column.shape != shape:
            raise InvalidCluster(
                f"the column {name} has the shape {column.shape}, not {shape}"
            )
    if n and not 0 <= columns.topic.min() <= columns.topic.max() < len(header.topics):
        raise InvalidCluster("a partition belongs to a topic that is not listed")
    order = np.lexsort((columns.partition, columns.topic))
    if not np.array_equal(order, np.arange(n)):
        raise InvalidCluster("partitions are not sorted by topic and number")
    same = (np.diff(columns.topic) == 0) & (np.diff(columns.partition) == 0)
    if same.any():
        raise InvalidCluster(
            f"{snapshot.id(int(same.argmax()))} stands in the snapshot twice"
        )
    bad = ~np.isnan(columns.loads) & ~(columns.loads >= 0)
    bad |= np.isinf(columns.loads)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        raise InvalidCluster(f"{snapshot.id(row)} has a negative or infinite load")
    if (columns.loads > MOST_LOAD).any():
        row = int((columns.loads > MOST_LOAD).any(axis=1).argmax())
        raise InvalidCluster(
            f"{snapshot.id(row)} has a load over {MOST_LOAD:.0e}; check its unit"
        )


def _check_slots(snapshot: "Snapshot") -> None:
    columns, header = snapshot.partitions, snapshot.header
    if len(header.slots) > MOST_SLOTS or len(set(header.slots)) != len(header.slots):
        raise InvalidCluster(
            f"the slots {list(header.slots)} must be at most {MOST_SLOTS}, each once"
        )
    shape = (len(columns.topic), len(header.slots), len(header.resources))
    found = (shape[0], 0, shape[2])
    if columns.slot_loads is not None:
        found = columns.slot_loads.shape
        known = ~np.isnan(columns.slot_loads)
        fits = (columns.slot_loads >= 0) & (columns.slot_loads <= MOST_LOAD)
        if (known & ~fits).any():
            raise InvalidCluster(
                f"slot_loads holds a load that is negative or over {MOST_LOAD:.0e}"
            )
    if found != shape:
        raise InvalidCluster(
            f"the column slot_loads has the shape {found}, not {shape}"
        )


def _check_brokers(snapshot: "Snapshot") -> None:
    ids = [b.id for b in snapshot.header.brokers]
    if ids != sorted(set(ids)):
        raise InvalidCluster(f"brokers are not listed once each by id: {ids}")
    start = snapshot.partitions.replica_start
    if start[0] or (np.diff(start) < 0).any():
        raise InvalidCluster("the column replica_start must rise from 0")
    if start[-1] != len(snapshot.partitions.replica_broker):
        raise InvalidCluster("replica_start and replica_broker do not fit together")
    unknown = sorted(set(snapshot.partitions.replica_broker.tolist()) - set(ids))
    if unknown:
        raise InvalidCluster(
            f"replicas on unknown brokers {unknown}; list them as dead if they are gone"
        )


def check_capacities(brokers: "Sequence[Broker]") -> None:
    """Refuse capacities that cannot be of one unit.

    Raises
    ------
    InvalidCluster
        Names the smallest and the largest.
    """
    for resource in sorted({r for b in brokers for r in b.capacity}):
        known = [
            (b.capacity[resource], b.id) for b in brokers if resource in b.capacity
        ]
        (least, small), (most, large) = min(known), max(known)
        if most > MOST_TIMES * least:
            raise InvalidCluster(
                f"broker {large} has {most / least:.0e} times the {resource} capacity "
                f"of broker {small}; check their units"
            )


def _check_replicas(snapshot: "Snapshot") -> None:
    columns = snapshot.partitions
    lengths = np.diff(columns.replica_start)
    row = np.repeat(np.arange(len(snapshot)), lengths)
    order = np.lexsort((columns.replica_broker, row))
    broker = columns.replica_broker[order]
    twice = (np.diff(row[order]) == 0) & (np.diff(broker) == 0)
    bad = [*np.flatnonzero(lengths == 0), *row[order][1:][twice]]
    if bad:
        first = int(bad[0])
        raise InvalidCluster(
            f"{snapshot.id(first)} has the replicas {snapshot.replicas(first)}"
        )
    led = np.zeros(len(snapshot), np.bool_)
    led[row[columns.replica_broker == columns.leader[row]]] = True
    odd = np.flatnonzero(~led & (columns.leader != NO_BROKER))
    if len(odd):
        first = int(odd[0])
        raise InvalidCluster(
            f"{snapshot.id(first)} is led by broker {int(columns.leader[first])}, "
            f"which holds no replica of it; its replicas are {snapshot.replicas(first)}"
        )


def _check_directories(snapshot: "Snapshot") -> None:
    columns = snapshot.partitions
    if columns.replica_dir is None:
        return
    shape, wanted = columns.replica_dir.shape, columns.replica_broker.shape
    if shape != wanted:
        raise InvalidCluster(
            f"the column replica_dir has the shape {shape}, not {wanted}"
        )
    brokers = snapshot.header.brokers
    ids = np.array([b.id for b in brokers], np.int64)
    count = np.array([len(b.log_dirs) for b in brokers], np.int64)
    most = count[np.searchsorted(ids, columns.replica_broker)]
    bad = (columns.replica_dir < -1) | (columns.replica_dir >= most)
    if bad.any():
        at = int(bad.argmax())
        row = int(np.searchsorted(columns.replica_start, at, "right")) - 1
        raise InvalidCluster(
            f"{snapshot.id(row)} lies in log directory {columns.replica_dir[at]} of "
            f"broker {columns.replica_broker[at]}, which lists {most[at]}"
        )

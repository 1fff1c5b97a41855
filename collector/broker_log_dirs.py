"""Log directories of brokers, and the one that each replica is in (JBOD, KIP-113)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from collector.brokers.response_layout import FUTURE, PARTITION, LogDirEntry, ResponseLayout
from collector.metadata import ClusterState
from model.snapshot.capacities import Capacities
from model.snapshot.checks import check_capacities
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    CapacitySource,
    Ints,
    LogDir,
    Resource,
    StorageKind,
)

MOST_BYTES: Final = 10**18
"""No disk has more; a network file system without a limit reports 2^63 - 1."""
STORAGE_ERROR: Final = 56
"""Kafka's code for a directory whose disk has failed (`KAFKA_STORAGE_ERROR`)."""
SAME_ROOM: Final = 2**24
"""Bytes by which the free space of one file system may change while a broker reads it
for one directory after the other."""

Place = tuple[str, int]
"""A topic's name and a partition's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogDirs:
    """The log directories of one broker, and the directory of each replica."""

    listed: tuple[LogDir, ...]
    """By path."""
    home: Mapping[Place, int]
    """Position in `listed` of each replica, if there are several; copies in progress
    are left out."""
    total_bytes: float | None
    """Of the disks of all working directories; None where any does not report it."""


def read_directories(layout: ResponseLayout) -> BrokerLogDirs:
    """Read one broker's directories from its response to DescribeLogDirs.

    Sizes in bytes. A directory whose disk has failed counts as cordoned (KIP-1066), too.
    """
    order = sorted(range(len(layout.folders)), key=lambda at: layout.folders[at].path)
    ordered = [layout.folders[at] for at in order]
    return BrokerLogDirs(
        listed=tuple(_log_dir(layout, folder) for folder in ordered),
        # The directory of a replica is only needed where there are several.
        home=_home(layout, np.argsort(order)) if len(order) > 1 else {},
        total_bytes=_total(layout, [f for f in ordered if not f.error_code]),
    )


def _home(layout: ResponseLayout, rank: Ints) -> dict[Place, int]:
    here = layout.read(FUTURE) == 0
    names = [layout.names[at] for at in layout.topic[here].tolist()]
    numbers = layout.read(PARTITION)[here].tolist()
    places = zip(names, numbers, strict=True)
    return dict(zip(places, rank[layout.folder[here]].tolist(), strict=True))


def _total(layout: ResponseLayout, working: Sequence[LogDirEntry]) -> float | None:
    """Bytes of all disks; None unless each directory reports its own (Kafka 3.3, KIP-827).

    Directories that all report the same total and the same usable bytes lie on one file
    system, which counts once.
    """
    bytes_of = [_bytes(layout, folder) for folder in working]
    known = [total for total in bytes_of if total is not None]
    if not known or len(known) < len(bytes_of):
        return None
    room = [layout.room(folder)[1] for folder in working]
    alike = min(room) >= 0 and max(room) - min(room) < SAME_ROOM
    return known[0] if alike and len(set(known)) == 1 else sum(known)


def _bytes(layout: ResponseLayout, folder: LogDirEntry) -> float | None:
    total, _ = layout.room(folder)
    return float(total) if 0 < total <= MOST_BYTES else None


def _log_dir(layout: ResponseLayout, folder: LogDirEntry) -> LogDir:
    """Describe one directory; a failed disk counts as cordoned (KIP-1066), too."""
    return LogDir(
        path=folder.path,
        capacity_bytes=_bytes(layout, folder),
        cordoned=folder.cordoned or folder.error_code != 0,
        failed=folder.error_code == STORAGE_ERROR,
    )


def with_directories(cluster: ClusterState, known: Mapping[int, BrokerLogDirs]) -> ClusterState:
    """Return the state with the log directories that brokers reported.

    known: by broker id; other brokers stay as they are.
    A broker with one directory has none to choose from, and none is listed. A live one
    whose directories are all cordoned, or have failed, is cordoned (KIP-1066).
    `replica_dir` is -1 for replicas whose directory is unknown. Those that are offline on a live
    broker are in its failed directory, the first of several: brokers list nothing of these.
    """
    brokers = tuple(_with_dirs(b, known.get(b.id)) for b in cluster.brokers)
    if brokers == cluster.brokers:
        return cluster
    cluster = replace(cluster, brokers=brokers)
    several = {b: found for b, found in known.items() if len(found.listed) > 1}
    return replace(cluster, replica_dir=_homes(cluster, several)) if several else cluster


def _with_dirs(broker: Broker, found: BrokerLogDirs | None) -> Broker:
    if found is None or not found.listed:
        return broker
    update: dict[str, object] = {}
    if broker.state is BrokerState.ALIVE and all(d.cordoned for d in found.listed):
        update["state"] = BrokerState.CORDONED
    if len(found.listed) > 1:
        update["log_dirs"] = found.listed
    return broker.model_copy(update=update)


def with_capacities(
    cluster: ClusterState, known: Mapping[int, BrokerLogDirs], given: Capacities | None
) -> ClusterState:
    """Return the state with capacities: the operator's, else the brokers' own.

    Brokers report the bytes of their disks (KIP-827), which are no limit where all
    bytes are in object storage. Capacities are bytes/s, bytes and cores.
    Raises ConfigError for a log directory that is given and that its broker lacks,
    InvalidCluster for capacities that cannot be of one unit.
    """
    shared = all(t.storage is StorageKind.SHARED for t in cluster.topics)
    brokers = []
    for broker in cluster.brokers:
        found = known.get(broker.id)
        sized = broker if shared or found is None else _with_total(broker, found)
        paths = [d.path for d in found.listed] if found is not None else []
        brokers.append(sized if given is None else given.of(sized, paths))
    check_capacities(brokers)
    return replace(cluster, brokers=tuple(brokers))


def _with_total(broker: Broker, known: BrokerLogDirs) -> Broker:
    if known.total_bytes is None:
        return broker
    update = {
        "capacity": {Resource.DISK: known.total_bytes},
        "capacity_from": {Resource.DISK: CapacitySource.LOG_DIRS},
    }
    return broker.model_copy(update=update)


def _homes(cluster: ClusterState, known: Mapping[int, BrokerLogDirs]) -> Ints:
    """(replicas,) position of each replica's directory, -1 where it is not known."""
    failed = {b: _first_failed(found) for b, found in known.items()}
    lengths = np.diff(cluster.replica_start)
    rows = np.repeat(np.arange(len(cluster)), lengths).tolist()
    places: Sequence[Place] = [
        (str(cluster.topics[topic].name), partition)
        for topic, partition in zip(cluster.topic.tolist(), cluster.partition.tolist(), strict=True)
    ]
    offline = cluster.offline if cluster.offline is not None else np.zeros(len(rows), np.bool_)
    triples = zip(rows, cluster.replica_broker.tolist(), offline.tolist(), strict=True)
    return np.array(
        [
            known[b].home.get(places[r], failed[b] if lost else -1) if b in known else -1
            for r, b, lost in triples
        ],
        np.int64,
    )


def _first_failed(found: BrokerLogDirs) -> int:
    """Position of the first directory that has failed, -1 without one."""
    return next((at for at, entry in enumerate(found.listed) if entry.failed), -1)

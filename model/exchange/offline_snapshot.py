"""A snapshot out of files alone, so that a cluster is planned without a connection."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from model.exchange.describe import DescribedPartition, Description, live_brokers, read_description
from model.exchange.tables import NO_LOADS, LoadRow, LoadTable, read_brokers, read_loads
from model.exchange.text_files import fault
from model.ids import BrokerId
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    Floats,
    Ints,
    Partitions,
    RecentMove,
    Resource,
    Snapshot,
    SnapshotHeader,
    Source,
    StorageKind,
    Topic,
)

CLUSTER_ID: Final = "from-files"
"""Cluster id of a snapshot out of files: kafka-topics --describe prints none."""
TAKEN_AT_MS: Final = 0
"""Constant, because with the current time equal files would give different plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFiles:
    """The files that one cluster is read from."""

    describe: Path
    """Output of `kafka-topics --describe`."""
    loads: Path | None = None
    """CSV; without it no load is known."""
    brokers: Path | None = None
    """CSV or JSON; without it brokers are those that the description shows."""
    storage: StorageKind | None = None
    """Where every topic's bytes lie; by default in the remote tier for topics with
    `remote.storage.enable=true`, on replicated disks for all others."""


def read_cluster(files: ClusterFiles) -> Snapshot:
    """Read a snapshot from files.

    Raises
    ------
    ConfigError
        A file that cannot be used, or two that contradict each other.
    """
    description = read_description(files.describe)
    loads = read_loads(files.loads) if files.loads else NO_LOADS
    _check_loads(description, loads)
    partitions = _partitions(description, loads)
    brokers = _brokers(description, files.brokers)
    header = SnapshotHeader(
        cluster_id=CLUSTER_ID,
        taken_at_ms=TAKEN_AT_MS,
        brokers=brokers,
        topics=_topics(description, files.storage),
        resources=loads.resources,
        sources=(_source(partitions),),
        recent_moves=_in_progress(description),
        racks_unknown=all(b.rack is None for b in brokers),
    )
    return Snapshot(header, partitions)


def _check_loads(description: Description, loads: LoadTable) -> None:
    described = {p.id for p in description.partitions}
    for pid, row in loads.rows.items():
        if pid not in described and loads.path is not None:
            raise fault(
                loads.path,
                row.line,
                f"{pid} is not in {description.path}; both must be of the same "
                "cluster, at about the same time",
            )


def _brokers(description: Description, path: Path | None) -> tuple[Broker, ...]:
    """Those of the file, else those that the description shows."""
    holding = {b: p for p in reversed(description.partitions) for b in p.replicas}
    if path is not None:
        brokers = read_brokers(path)
        unknown = sorted(holding.keys() - {b.id for b in brokers})
        if unknown:
            first: DescribedPartition = holding[unknown[0]]
            words = f"{first.id} lies on broker {unknown[0]}, which is not in {path}"
            raise fault(description.path, first.line, f"{words}; add it, as dead if it is gone")
        return brokers
    live = live_brokers(description)
    return tuple(
        Broker(id=b, state=BrokerState.ALIVE if b in live else BrokerState.DEAD)
        for b in sorted(holding.keys() | live)
    )


def _topics(description: Description, storage: StorageKind | None) -> tuple[Topic, ...]:
    def kind(tiered: bool) -> StorageKind:
        if storage is not None:
            return storage
        return StorageKind.TIERED if tiered else StorageKind.REPLICATED

    return tuple(
        Topic(
            name=t.name,
            topic_id=t.topic_id,
            storage=kind(t.tiered),
            # Kafka's own topics keep to this prefix.
            internal=t.name.startswith("__"),
            placement=t.placement,
        )
        for t in description.topics
    )


def _in_progress(description: Description) -> tuple[RecentMove, ...]:
    """Partitions under reassignment count as just moved, so that they rest."""
    return tuple(
        RecentMove(topic=p.id.topic, partition=p.id.partition, left=p.removing, at_ms=TAKEN_AT_MS)
        for p in description.partitions
        if p.reassigned
    )


def _source(partitions: Partitions) -> Source:
    known = partitions.measured
    return Source(
        name="file",
        newest_sample_ms=TAKEN_AT_MS,
        window_s=0.0,
        samples=int(known.any(axis=1).sum()),
        measured_share=float(known.mean()) if known.size else 0.0,
    )


def _partitions(description: Description, loads: LoadTable) -> Partitions:
    rows = description.partitions
    position = {t.name: i for i, t in enumerate(description.topics)}
    found = [loads.rows.get(p.id) for p in rows]
    matrix = _loads(loads.resources, found)
    lengths = [len(p.replicas) for p in rows]
    size, local = _sizes(loads.resources, found)
    return Partitions(
        topic=_ints([position[p.id.topic] for p in rows]),
        partition=_ints([p.id.partition for p in rows]),
        replica_start=_ints([0, *np.cumsum(lengths, dtype=np.int64).tolist()]),
        replica_broker=_ints([b for p in rows for b in p.replicas]),
        leader=_ints([p.leader for p in rows]),
        loads=matrix,
        measured=~np.isnan(matrix),
        size_bytes=size,
        local_bytes=local,
    )


def _loads(resources: tuple[Resource, ...], found: list[LoadRow | None]) -> Floats:
    """(n, resources) float64, NaN where unknown."""
    unknown = float("nan")
    cells = [[row.loads.get(r, unknown) if row else unknown for r in resources] for row in found]
    return np.array(cells, np.float64).reshape(len(found), len(resources))


def _sizes(resources: tuple[Resource, ...], found: list[LoadRow | None]) -> tuple[Ints, Ints]:
    """(n,) bytes of the whole log and bytes on local disk; -1 where unknown.

    Where a size has no cell of its own, the disk load says how much is local, and a
    log is taken to be as large as its local part.
    """
    sizes, locals_ = [], []
    for row in found:
        disk = int(row.loads.get(Resource.DISK, -1)) if row else -1
        local = row.local_bytes if row and row.local_bytes >= 0 else disk
        size = row.size_bytes if row and row.size_bytes >= 0 else local
        sizes.append(size)
        locals_.append(local)
    return _ints(sizes), _ints(locals_)


def _ints(values: list[int] | list[BrokerId]) -> Ints:
    return np.array(values, np.int64)

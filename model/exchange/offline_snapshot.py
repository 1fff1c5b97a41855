"""A snapshot out of files alone, so that a cluster is planned without a connection."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from model.exchange.describe import DescribedPartition, Description, live_brokers, read_description
from model.exchange.tables import NO_LOADS, NO_ROW, LoadRow, LoadTable, read_brokers, read_loads
from model.exchange.text_files import fault
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    Partitions,
    RecentMove,
    Resource,
    Snapshot,
    SnapshotHeader,
    Source,
    StorageKind,
    Topic,
    partitions_from_rows,
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

    Raises ConfigError: a file that cannot be used, or two that contradict each other.
    """
    description = read_description(files.describe)
    loads = read_loads(files.loads) if files.loads else NO_LOADS
    _check_loads(description, loads)
    topics = description.topics
    if files.storage is not None:
        topics = tuple(t.model_copy(update={"storage": files.storage}) for t in topics)
    partitions = _partitions(description, topics, loads)
    brokers = _brokers(description, files.brokers)
    header = SnapshotHeader(
        cluster_id=CLUSTER_ID,
        taken_at_ms=TAKEN_AT_MS,
        brokers=brokers,
        topics=topics,
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


def _partitions(
    description: Description, topics: tuple[Topic, ...], loads: LoadTable
) -> Partitions:
    found = [loads.rows.get(p.id, NO_ROW) for p in description.partitions]
    cells = [[row.loads.get(r, math.nan) for r in loads.resources] for row in found]
    matrix = np.array(cells, np.float64).reshape(len(found), len(loads.resources))
    of_topic = {t.name: t for t in topics}
    rows = (
        _row(partition, of_topic[partition.id.topic], row)
        for partition, row in zip(description.partitions, found, strict=True)
    )
    return partitions_from_rows(topics, rows, matrix)


def _row(partition: DescribedPartition, topic: Topic, given: LoadRow) -> PartitionRow:
    """Where a size has no cell of its own, the disk load says how much is local, and a
    log is taken to be as large as its local part."""
    local = given.local_bytes
    if local < 0:
        local = int(given.loads.get(Resource.DISK, -1))
    return PartitionRow(
        id=partition.id,
        topic_id=topic.topic_id,
        storage=topic.storage,
        internal=topic.internal,
        replicas=partition.replicas,
        leader=partition.leader,
        size_bytes=given.size_bytes if given.size_bytes >= 0 else local,
        local_bytes=local,
    )

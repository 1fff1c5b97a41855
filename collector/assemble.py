"""Placement and load vectors become a snapshot."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.metadata import ClusterState
from collector.vectors import VECTORS, concatenate
from model.snapshot import (
    Bools,
    Floats,
    Ints,
    Partitions,
    Resource,
    Snapshot,
    SnapshotHeader,
    Source,
    StorageKind,
)

RESOURCES: Final = (Resource.NET_IN, Resource.NET_OUT, Resource.DISK)
FRESH_MS: Final = 60_000
"""A vector older than this, against the newest, is not known any more."""


def newest_vectors(known: pa.Table, fresh: pa.Table) -> pa.Table:
    """One vector per partition: the fresh ones, and known ones of the last minute.

    A partition that is being moved, or whose broker is silent for a moment, so keeps
    the load it had. Both of the schema `VECTORS`.
    """
    kept = known.join(
        fresh.select(["topic", "partition"]), ["topic", "partition"], None, "left anti"
    )
    found = concatenate([fresh, kept.select(VECTORS.names).cast(VECTORS)], VECTORS)
    oldest_ms = (pc.max(found["time_ms"]).as_py() or 0) - FRESH_MS
    return found.filter(pc.field("time_ms") >= oldest_ms).combine_chunks()


def assemble(cluster: ClusterState, vectors: pa.Table, *, window_s: float) -> Snapshot:
    """A snapshot of this placement with the loads in `vectors`.

    Loads of partitions without a vector are NaN: unknown, not zero. A load that is
    older than the window counts as estimated.
    """
    at = _rows_of(cluster, vectors)
    shared = _shared(cluster)
    loads = np.stack([_picked(vectors, str(r), at) for r in RESOURCES], axis=1)
    # A shared log lies on no broker's disk.
    loads[shared, RESOURCES.index(Resource.DISK)] = 0.0
    partitions = Partitions(
        topic=cluster.topic,
        partition=cluster.partition,
        replica_start=cluster.replica_start,
        replica_broker=cluster.replica_broker,
        leader=cluster.leader,
        loads=loads,
        measured=_measured(vectors, at, window_s) & ~np.isnan(loads),
        size_bytes=_bytes(_picked(vectors, "total_bytes", at)),
        local_bytes=_bytes(loads[:, RESOURCES.index(Resource.DISK)]),
        replica_dir=cluster.replica_dir,
    )
    return Snapshot(_header(cluster, vectors, partitions, window_s), partitions)


def _header(
    cluster: ClusterState, vectors: pa.Table, partitions: Partitions, window_s: float
) -> SnapshotHeader:
    """Age is that of the newest sample; the share is that of users' partitions."""
    newest_ms = pc.max(vectors["time_ms"]).as_py() or cluster.taken_at_ms
    source = Source(
        name="probe",
        newest_sample_ms=newest_ms,
        window_s=window_s,
        samples=pc.sum(vectors["samples"]).as_py() or 0,
        measured_share=_share(partitions.measured[~cluster.internal]),
    )
    return SnapshotHeader(
        cluster_id=cluster.cluster_id,
        taken_at_ms=newest_ms,
        brokers=cluster.brokers,
        topics=cluster.topics,
        resources=RESOURCES,
        sources=(source,),
    )


def _rows_of(cluster: ClusterState, vectors: pa.Table) -> Ints:
    """(n,) row of each partition's vector; the number of vectors where it has none."""
    pairs = zip(
        vectors["topic"].to_pylist(), vectors["partition"].to_pylist(), strict=True
    )
    found = {pair: row for row, pair in enumerate(pairs)}
    names = [str(t.name) for t in cluster.topics]
    keys = zip(cluster.topic.tolist(), cluster.partition.tolist(), strict=True)
    return np.array([found.get((names[t], p), len(vectors)) for t, p in keys], np.int64)


def _picked(vectors: pa.Table, name: str, at: Ints) -> Floats:
    """(n,) a column in the order of partitions, NaN where there is no vector."""
    column = vectors[name].to_numpy().astype(np.float64)
    values = np.append(column, np.nan)
    picked: Floats = values[at]
    return picked


def _measured(vectors: pa.Table, at: Ints, window_s: float) -> Bools:
    """(n, resources); sizes are always measured."""
    newest_ms = pc.max(vectors["time_ms"]).as_py() or 0
    recent = newest_ms - _picked(vectors, "time_ms", at) <= 1000 * window_s
    columns = [
        np.nan_to_num(_picked(vectors, name, at)).astype(np.bool_)
        for name in ("in_measured", "out_measured")
    ]
    measured = np.stack([*columns, np.ones(len(at), np.bool_)], axis=1)
    current: Bools = measured & recent[:, None]
    return current


def _shared(cluster: ClusterState) -> Bools:
    kinds = [t.storage is StorageKind.SHARED for t in cluster.topics]
    shared: Bools = np.array(kinds, np.bool_)[cluster.topic]
    return shared


def _bytes(values: Floats) -> Ints:
    known = ~np.isnan(values)
    return np.where(known, np.nan_to_num(values), -1).astype(np.int64)


def _share(measured: Bools) -> float:
    return float(measured.mean()) if measured.size else 1.0

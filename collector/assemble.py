"""Assemble a snapshot from placement and load vectors."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.metadata import ClusterState
from collector.spark.vectors import BY, MEASURED, NOBODY, ORIGINS, PROBE, VECTORS, concatenate
from model.snapshot.snapshot import (
    Bools,
    Broker,
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
"""Resources that the probe measures of every partition."""
REPORTED: Final = (Resource.CPU, Resource.REQUESTS)
"""Resources known only from reporters; in a snapshot if any partition has them."""
METER_S: Final = {"automq": 60.0, "cruise-control": 60.0, "prometheus": 120.0}
"""Seconds that a reporter's rates are averaged over."""
FRESH_MS: Final = 60_000
"""A vector that is older than the newest by more than this is dropped."""


def newest_vectors(known: pa.Table, fresh: pa.Table) -> pa.Table:
    """Return one vector per partition: fresh ones, else known ones of the last minute.

    So a partition that is being moved, or whose broker does not answer for a moment,
    keeps its load. Both tables have the schema `VECTORS`. Rows more than `FRESH_MS`
    older than the newest row of either table are dropped, and known rows more than that
    newer than all fresh ones: they are from before the clock was set back.
    """
    if len(fresh):
        latest_ms = pc.max(fresh["time_ms"]).as_py() + FRESH_MS
        known = known.filter(pc.less_equal(known["time_ms"], latest_ms))
    older = known.join(
        fresh.select(["topic", "partition"]), ["topic", "partition"], None, "left anti"
    )
    found = concatenate([fresh, older.select(VECTORS.names).cast(VECTORS)], VECTORS)
    oldest_ms = (pc.max(found["time_ms"]).as_py() or 0) - FRESH_MS
    return found.filter(pc.field("time_ms") >= oldest_ms).combine_chunks()


def cores_of(brokers: Iterable[Broker]) -> dict[int, float]:
    """Return cores by broker id, for the brokers whose CPU capacity is known."""
    known = {b.id: b.capacity.get(Resource.CPU) for b in brokers}
    return {b: cores for b, cores in known.items() if cores is not None}


def assemble(cluster: ClusterState, vectors: pa.Table, *, window_s: float) -> Snapshot:
    """Return a snapshot of this placement with the loads in `vectors`.

    vectors: schema `VECTORS`, at most one row per partition. Loads are bytes/s, bytes,
    cores and requests/s; those of partitions without a vector are NaN: unknown, not zero.
    Disk loads of shared topics are 0. CPU and requests are included only if any vector
    has them. A load over `window_s` seconds older than the newest counts as estimated.
    """
    at = _rows_of(cluster, vectors)
    reported = [r for r in REPORTED if pc.any(pc.is_finite(vectors[str(r)])).as_py()]
    resources = (*RESOURCES, *reported)
    loads = np.stack([_picked(vectors, str(r), at) for r in resources], axis=1)
    # A shared log lies on no broker's disk.
    loads[_shared(cluster), resources.index(Resource.DISK)] = 0.0
    measured = _measured(vectors, resources, at, window_s) & ~np.isnan(loads)
    partitions = Partitions(
        topic=cluster.topic,
        partition=cluster.partition,
        replica_start=cluster.replica_start,
        replica_broker=cluster.replica_broker,
        leader=cluster.leader,
        loads=loads,
        measured=measured,
        size_bytes=_bytes(_picked(vectors, "total_bytes", at)),
        local_bytes=_bytes(loads[:, resources.index(Resource.DISK)]),
        replica_dir=cluster.replica_dir,
    )
    newest_ms = pc.max(vectors["time_ms"]).as_py() or cluster.taken_at_ms
    by = _by(vectors, resources, at)
    users = ~cluster.internal
    header = SnapshotHeader(
        cluster_id=cluster.cluster_id,
        taken_at_ms=newest_ms,
        brokers=cluster.brokers,
        topics=cluster.topics,
        resources=resources,
        sources=(
            _probe(vectors, newest_ms, window_s, (measured & (by == PROBE))[users]),
            *_reporters(vectors, measured[users], by[users]),
        ),
    )
    return Snapshot(header, partitions)


def _probe(vectors: pa.Table, newest_ms: int, window_s: float, measured: Bools) -> Source:
    return Source(
        name=ORIGINS[PROBE],
        newest_sample_ms=newest_ms,
        window_s=window_s,
        samples=pc.sum(vectors["samples"]).as_py() or 0,
        measured_share=_share(measured),
    )


def _reporters(vectors: pa.Table, measured: Bools, by: Ints) -> Iterator[Source]:
    """Reporters behind any load; the reports of one partition count as one sample."""
    for name, meter_s in METER_S.items():
        times = vectors[f"{name.replace('-', '_')}_ms"].to_numpy()
        if (times >= 0).any():
            yield Source(
                name=name,
                newest_sample_ms=int(times.max()),
                window_s=meter_s,
                samples=int((times >= 0).sum()),
                measured_share=_share(measured & (by == ORIGINS.index(name))),
            )


def _rows_of(cluster: ClusterState, vectors: pa.Table) -> Ints:
    """(n,) row of each partition's vector; the number of vectors where it has none."""
    pairs = zip(vectors["topic"].to_pylist(), vectors["partition"].to_pylist(), strict=True)
    found = {pair: row for row, pair in enumerate(pairs)}
    names = [str(t.name) for t in cluster.topics]
    keys = zip(cluster.topic.tolist(), cluster.partition.tolist(), strict=True)
    return np.array([found.get((names[t], p), len(vectors)) for t, p in keys], np.int64)


def _picked(vectors: pa.Table, name: str, at: Ints) -> Floats:
    """(n,) a column in the order of partitions, NaN where there is no vector."""
    column = vectors[name].to_numpy().astype(np.float64)
    values = np.append(column, np.nan)
    return values[at]


def _measured(vectors: pa.Table, resources: Sequence[Resource], at: Ints, window_s: float) -> Bools:
    """(n, resources); sizes are always measured, CPU never."""
    newest_ms = pc.max(vectors["time_ms"]).as_py() or 0
    recent = newest_ms - _picked(vectors, "time_ms", at) <= 1000 * window_s
    columns = [
        np.nan_to_num(_picked(vectors, MEASURED[r], at)).astype(np.bool_)
        if r in MEASURED
        else np.full(len(at), r is Resource.DISK)
        for r in resources
    ]
    return np.stack(columns, axis=1) & recent[:, None]


def _by(vectors: pa.Table, resources: Sequence[Resource], at: Ints) -> Ints:
    """(n, resources) positions in `ORIGINS`, NOBODY where there is no vector."""
    columns = [
        _picked(vectors, BY[r], at) if r in BY else np.full(len(at), PROBE) for r in resources
    ]
    origin: Ints = np.nan_to_num(np.stack(columns, axis=1), nan=NOBODY).astype(np.int64)
    return origin


def _shared(cluster: ClusterState) -> Bools:
    kinds = [t.storage is StorageKind.SHARED for t in cluster.topics]
    return np.array(kinds, np.bool_)[cluster.topic]


def _bytes(values: Floats) -> Ints:
    known = ~np.isnan(values)
    return np.where(known, np.nan_to_num(values), -1).astype(np.int64)


def _share(measured: Bools) -> float:
    return float(measured.mean()) if measured.size else 1.0

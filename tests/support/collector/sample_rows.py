"""Samples and placements as rows."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from collector.assemble import assemble
from collector.metadata import ClusterState, build_state
from collector.recorded_state import Recorder, Recording, read_recording
from collector.samples import SAMPLES
from collector.spark.vectors import VECTORS, Window, as_vectors, load_vectors
from model.snapshot.snapshot import StorageKind

START_MS = 1_700_000_000_000
RECORD_BYTES = 1000
WINDOW = Window(window_ms=15_000)


def sample(second: float, **other: object) -> dict[str, Any]:
    """A partition that receives 100 records/s of 1000 B, all read by one group."""
    records = int(100 * second)
    return {
        "topic": "orders",
        "partition": 0,
        "time_ms": START_MS + int(1000 * second),
        "broker": 1,
        "flags": 0,
        "groups": 1,
        "latest": records,
        "earliest_local": 0,
        "earliest": 0,
        "local_bytes": RECORD_BYTES * records,
        "total_bytes": RECORD_BYTES * records,
        "group_offsets": records,
        **other,
    }


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SAMPLES)


def rows(first: int, end: int) -> pa.Table:
    """A sample per second of four partitions, from one second to before another."""
    return table(
        sample(s, topic=name, partition=number, groups=groups, latest=rate * s)
        for s in range(first, end)
        for name, number, groups, rate in (
            ("orders", 0, 1, 100),
            ("orders", 1, 1, 170),
            ("größe.v1", 0, 0, 30),
            ("audit", 7, -1, 10),
        )
    )


def vector(**other: object) -> dict[str, Any]:
    """A load vector of the probe's, as a row of `load_table`."""
    return {
        "topic": "orders",
        "partition": 0,
        "time_ms": START_MS,
        "broker": 1,
        "samples": 16,
        "span_ms": 15_000,
        "net_in": 5.0,
        "net_out": 7.0,
        "disk": 1000.0,
        "total_bytes": 9000.0,
        "in_measured": True,
        "out_measured": False,
        **other,
    }


def load_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Vectors with equal columns."""
    rows = list(rows)
    names = rows[0] if rows else VECTORS.names
    schema = pa.schema([field for field in VECTORS if field.name in names])
    return as_vectors(pa.Table.from_pylist(rows, schema=schema))


def figures(vectors: pa.Table) -> list[dict[str, Any]]:
    """Rows with None in place of NaN, so that they compare equal."""
    return [
        {name: None if value != value else value for name, value in row.items()}
        for row in vectors.to_pylist()
    ]


def topic(
    name: str,
    replicas: list[list[int]],
    *,
    leaders: list[int] | None = None,
    in_sync: list[list[int]] | None = None,
    offline: list[list[int]] | None = None,
) -> dict[str, Any]:
    """A topic as described by kafka-python."""
    leaders = leaders or [r[0] for r in replicas]
    nobody: list[list[int]] = [[] for _ in replicas]
    return {
        "name": name,
        "topic_id": f"id-{name}",
        "is_internal": False,
        "partitions": [
            {
                "partition_index": number,
                "leader_id": leader,
                "replica_nodes": nodes,
                "isr_nodes": isr,
                "offline_replicas": lost,
            }
            for number, (nodes, leader, isr, lost) in enumerate(
                zip(replicas, leaders, in_sync or replicas, offline or nobody, strict=True)
            )
        ],
    }


def cluster(
    *topics: dict[str, Any],
    brokers: tuple[int, ...] = (1, 2, 3),
    storage: StorageKind = StorageKind.REPLICATED,
    moving: Iterable[tuple[str, int]] = (),
    adding: Mapping[tuple[str, int], int] = MappingProxyType({}),
    placements: Mapping[str, str] = MappingProxyType({}),
    **other: Any,
) -> ClusterState:
    described = {
        "cluster_id": "c1",
        "brokers": [{"broker_id": b, "rack": f"r{b}", "is_fenced": False} for b in brokers],
        **other,
    }
    kinds = {t["name"]: storage for t in topics}
    return build_state(
        described, topics, kinds, moving, placements=placements, adding=adding, taken_at_ms=START_MS
    )


def written(folder: Path) -> Recording:
    """A recorded state of two batches, with vectors computed by numpy."""
    with Recorder(folder) as recorder:
        for end in (6, 12):
            vectors = load_vectors(rows(0, end), WINDOW)
            recorder.add(rows(end - 6, end), vectors)
        placement = cluster(topic("orders", [[1], [2]]))
        recorder.finish(assemble(placement, vectors, window_s=15.0), WINDOW)
    return read_recording(folder)

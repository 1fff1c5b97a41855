"""Snapshots in files: `.json` or `.json.gz`, schema `plimsoll.snapshot` 1.0."""

import math
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from model.files import (
    VersionedModel,
    read_document,
    rounded,
    validate_document,
    write_document,
)
from model.snapshot import Partitions, Snapshot, SnapshotHeader

KIND: Final = "plimsoll.snapshot"
SCHEMA_VERSION = "1.0"


class PartitionColumns(VersionedModel):
    """`model.snapshot.Partitions` as lists; an unknown load is null."""

    topic: list[int]
    partition: list[int]
    replicas: list[list[int]]
    leader: list[int]
    loads: list[list[float | None]]
    measured: list[list[bool]]
    size_bytes: list[int]
    local_bytes: list[int]


class SnapshotFile(VersionedModel):
    """A whole snapshot file."""

    kind: Literal["plimsoll.snapshot"] = KIND
    schema_version: str = SCHEMA_VERSION
    header: SnapshotHeader
    partitions: PartitionColumns


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the canonical file; equal snapshots give equal bytes."""
    write_document(path, _to_file(snapshot).model_dump(mode="json"))


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot file.

    Raises
    ------
    ConfigError
        The file cannot be read or is of a newer schema.
    InvalidCluster
        What it holds contradicts itself.
    """
    document = read_document(path, KIND, major=1)
    file = validate_document(SnapshotFile, document, path)
    return Snapshot(file.header, _from_columns(file))


def _to_file(snapshot: Snapshot) -> SnapshotFile:
    columns = snapshot.partitions
    return SnapshotFile(
        header=snapshot.header,
        partitions=PartitionColumns(
            topic=columns.topic.tolist(),
            partition=columns.partition.tolist(),
            replicas=[list(snapshot.replicas(i)) for i in range(len(snapshot))],
            leader=columns.leader.tolist(),
            loads=[[_known(v) for v in row] for row in columns.loads.tolist()],
            measured=columns.measured.tolist(),
            size_bytes=columns.size_bytes.tolist(),
            local_bytes=columns.local_bytes.tolist(),
        ),
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else rounded(value)


def _from_columns(file: SnapshotFile) -> Partitions:
    columns, width = file.partitions, len(file.header.resources)
    lengths = [len(r) for r in columns.replicas]
    return Partitions(
        topic=_ints(columns.topic),
        partition=_ints(columns.partition),
        replica_start=_ints([0, *np.cumsum(lengths).tolist()]),
        replica_broker=_ints([b for r in columns.replicas for b in r]),
        leader=_ints(columns.leader),
        loads=_matrix(columns.loads, width, np.float64),
        measured=_matrix(columns.measured, width, np.bool_),
        size_bytes=_ints(columns.size_bytes),
        local_bytes=_ints(columns.local_bytes),
    )


def _ints(values: list[int]) -> Any:
    return np.asarray(values, np.int64)


def _matrix(rows: list[Any], width: int, kind: type) -> Any:
    return np.asarray(rows, kind).reshape(len(rows), -1 if rows else width)

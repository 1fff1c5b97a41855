"""Snapshots in files: `.json` or `.json.gz`, schema `plimsoll.snapshot` 1.4 to 1.6."""

import itertools
import json
import math
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from model.cpu import columns_from_file, columns_to_file
from model.errors import InvalidCluster
from model.files import VersionedModel, read_document, rounded, validate_document, write_document
from model.snapshot.checks import check_header, check_ranges
from model.snapshot.snapshot import Floats, Ints, Partitions, Snapshot, SnapshotHeader

KIND: Final = "plimsoll.snapshot"
SCHEMA_VERSION = "1.4"
"""Of snapshots that need no field of a newer version, so that they keep their bytes."""
VERSION_WITH_FAILED_DIRS: Final = "1.5"
"""Of snapshots in which a log directory has failed."""
VERSION_WITH_LEADERS: Final = "1.6"
"""Of snapshots whose recent moves name brokers that passed on the leadership."""


class PartitionColumns(VersionedModel):
    """`model.snapshot.snapshot.Partitions` as lists; an unknown load is null.

    Loads of CPU are percent of one core (`model.cpu`).
    """

    topic: list[int]
    partition: list[int]
    replicas: list[list[int]]
    leader: list[int]
    loads: list[list[float | None]]
    measured: list[list[bool]]
    size_bytes: list[int]
    local_bytes: list[int]
    slot_loads: list[list[list[float | None]]] | None = None
    """By row, slot and resource; since 1.1."""
    replica_dirs: list[list[int]] | None = None
    """As `replicas`, positions in each broker's `log_dirs`; since 1.1."""


class SnapshotFile(VersionedModel):
    """The document of a snapshot file."""

    kind: Literal["plimsoll.snapshot"] = KIND
    schema_version: str = SCHEMA_VERSION
    header: SnapshotHeader
    partitions: PartitionColumns


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the canonical file; equal snapshots give equal bytes.

    Raises ConfigError where the file cannot be written.
    """
    write_document(path, as_document(snapshot))


def as_document(snapshot: Snapshot) -> dict[str, Any]:
    """Convert a snapshot to the JSON document of its file, CPU in percent."""
    columns, header = snapshot.partitions, snapshot.header
    loads = columns_to_file(columns.loads, header.resources)
    partitions = PartitionColumns(
        topic=columns.topic.tolist(),
        partition=columns.partition.tolist(),
        replicas=_by_row(columns.replica_broker, columns),
        leader=columns.leader.tolist(),
        loads=[[_known(v) for v in row] for row in loads.tolist()],
        measured=columns.measured.tolist(),
        size_bytes=columns.size_bytes.tolist(),
        local_bytes=columns.local_bytes.tolist(),
        slot_loads=_slots(snapshot),
        replica_dirs=None if columns.replica_dir is None else _by_row(columns.replica_dir, columns),
    )
    return SnapshotFile(
        schema_version=_version(header), header=header, partitions=partitions
    ).model_dump(mode="json")


def _version(header: SnapshotHeader) -> str:
    """The oldest schema that has all fields which the header uses."""
    if any(move.leader_left is not None for move in header.recent_moves):
        return VERSION_WITH_LEADERS
    failed = any(d.failed for b in header.brokers for d in b.log_dirs)
    return VERSION_WITH_FAILED_DIRS if failed else SCHEMA_VERSION


def of_document(document: Any) -> Snapshot:
    """Convert the JSON document of a snapshot file to a checked snapshot, with CPU in cores.

    The major version of its schema is not checked. Raises pydantic's ValidationError for missing
    fields and wrong types, and InvalidCluster where the content contradicts itself.
    """
    return _checked(SnapshotFile.model_validate_json(json.dumps(document)))


def _checked(file: SnapshotFile) -> Snapshot:
    check_header(file.header)
    snapshot = Snapshot(file.header, _from_columns(file))
    check_ranges(snapshot.header, snapshot.partitions)
    return snapshot


SnapshotDocument = Annotated[
    Snapshot,
    PlainValidator(lambda v: v if isinstance(v, Snapshot) else of_document(v)),
    PlainSerializer(as_document),
]
"""A snapshot as a field of a larger document, written as in a snapshot file."""


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
    try:
        return _checked(validate_document(SnapshotFile, document, path))
    except InvalidCluster as exc:
        raise InvalidCluster(f"{path}: {exc}") from exc


def _slots(snapshot: Snapshot) -> list[list[list[float | None]]] | None:
    loads = snapshot.partitions.slot_loads
    if loads is None:
        return None
    rows = columns_to_file(loads, snapshot.header.resources).tolist()
    return [[[_known(v) for v in slot] for slot in row] for row in rows]


def _by_row(of_replica: Ints, columns: Partitions) -> list[list[int]]:
    flat = of_replica.tolist()
    return [flat[start:end] for start, end in itertools.pairwise(columns.replica_start.tolist())]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else rounded(value)


def _from_columns(file: SnapshotFile) -> Partitions:
    columns, header = file.partitions, file.header
    n, width = len(columns.loads), len(header.resources)
    lengths = [len(r) for r in columns.replicas]
    dirs = columns.replica_dirs
    if dirs is not None and [len(d) for d in dirs] != lengths:
        raise InvalidCluster("replica_dirs does not fit the replicas row by row")
    return Partitions(
        topic=_ints("topic", columns.topic),
        partition=_ints("partition", columns.partition),
        replica_start=_ints("replicas", [0, *itertools.accumulate(lengths)]),
        replica_broker=_ints("replicas", _flat(columns.replicas)),
        leader=_ints("leader", columns.leader),
        loads=columns_from_file(
            _matrix("loads", columns.loads, (n, width), np.float64), header.resources
        ),
        measured=_matrix("measured", columns.measured, (len(columns.measured), width), np.bool_),
        size_bytes=_ints("size_bytes", columns.size_bytes),
        local_bytes=_ints("local_bytes", columns.local_bytes),
        slot_loads=_slot_matrix(file),
        replica_dir=None if dirs is None else _ints("replica_dirs", _flat(dirs)),
    )


def _slot_matrix(file: SnapshotFile) -> Floats | None:
    rows = file.partitions.slot_loads
    if rows is None:
        return None
    shape = len(rows), len(file.header.slots), len(file.header.resources)
    found = _matrix("slot_loads", rows, shape, np.float64)
    return columns_from_file(found, file.header.resources)


def _flat(rows: list[list[int]]) -> list[int]:
    return [entry for row in rows for entry in row]


def _ints(name: str, values: list[int]) -> Ints:
    try:
        return np.asarray(values, np.int64)
    except OverflowError as exc:
        raise InvalidCluster(f"the column {name} holds a number over 2^63") from exc


def _matrix(name: str, rows: list[Any], shape: tuple[int, ...], kind: type) -> Any:
    """Rows of one width; ragged ones are refused."""
    try:
        return np.asarray(rows, kind).reshape(shape)
    except ValueError as exc:
        raise InvalidCluster(
            f"the column {name} does not have the shape {shape} in every row"
        ) from exc

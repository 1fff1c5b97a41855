"""A recorded state: a folder with what was observed of a cluster, for `replay`.

It holds what the streaming job read and handed out, batch by batch. Layout in
docs/reference/files.md.
"""

import shutil
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector.parquet import OutOfBounds, count_by, longest
from collector.samples import SAMPLES, decode, encode
from collector.spark.vectors import OLDEST, VECTORS, Window
from model import __version__
from model.errors import ConfigError
from model.snapshot.file import read_snapshot, write_snapshot
from model.snapshot.pseudonyms import Pseudonyms
from model.snapshot.snapshot import Snapshot
from model.snapshot.state_file import StateFile, read_state, write_state

HEADER_FILE: Final = "state.json"
SNAPSHOT_FILE: Final = "snapshot.json"
SAMPLES_FILE: Final = "samples.parquet"
VECTORS_FILE: Final = "vectors.parquet"
_BATCH: Final = pa.field("batch", pa.int32())
_MOST_TOPIC_BYTES: Final = 249
"""Kafka allows no longer names, and only ASCII in them."""


class Recorder:
    """Writes batches as they come; a complete folder gets its final name.

    `add` may be called by another thread than the rest. Raises ConfigError where the
    folder exists or cannot be made.
    """

    def __init__(self, out: Path, names: Pseudonyms | None = None) -> None:
        self._out, self._names = out, names
        self.folder = _begin(out)
        """Where it lies until `finish`."""
        with writing(out):
            self._samples = _writer(self.folder / SAMPLES_FILE, SAMPLES)
            self._vectors = _writer(self.folder / VECTORS_FILE, VECTORS)
        self._adding = threading.Lock()
        self._failure: OSError | None = None
        self._span: tuple[int, int] | None = None
        self.batches = 0
        """How many were added."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing where `finish` was not reached."""
        with self._adding, suppress(OSError):
            self._close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, samples: pa.Table, vectors: pa.Table) -> None:
        """Append a batch: samples (schema `SAMPLES`) and the vectors at its end (`VECTORS`).

        samples: at least one row. An OSError is kept for `finish` to report; after it, and
        after `finish`, this does nothing.
        """
        with self._adding:
            if self._failure is not None or not self._samples.is_open:
                return
            try:
                self._write(self._named(samples), canonical(self._named(vectors)))
            except OSError as exc:
                # `finish` raises it: here it would only make the job start again.
                self._failure = exc

    def finish(self, snapshot: Snapshot, window: Window) -> StateFile:
        """Complete the folder, rename it to `out`, and return the header written.

        Call it once, at the end. Raises ConfigError if a file, or a batch added earlier,
        could not be written, or the folder not be renamed.
        """
        with self._adding, writing(self._out):
            self._close()
            if self._failure is not None:
                raise self._failure
            state = self._describe(snapshot, window)
            self.folder.rename(self._out)
            return state

    def _write(self, samples: pa.Table, vectors: pa.Table) -> None:
        self._samples.write_table(_numbered(samples, self.batches))
        self._vectors.write_table(_numbered(vectors, self.batches))
        times = pc.min_max(samples["time_ms"]).as_py()
        first, last = self._span or (times["min"], times["max"])
        self._span = min(first, times["min"]), max(last, times["max"])
        self.batches += 1

    def _describe(self, snapshot: Snapshot, window: Window) -> StateFile:
        if self._names is not None:
            snapshot = self._names.snapshot(snapshot)
        begun_ms, ended_ms = self._span or (snapshot.header.taken_at_ms,) * 2
        state = StateFile(
            plimsoll=__version__,
            cluster_id=snapshot.header.cluster_id,
            begun_ms=begun_ms,
            ended_ms=ended_ms,
            window_ms=window.window_ms,
            fan_out=window.fan_out,
            anonymised=self._names is not None,
        )
        write_snapshot(self.folder / SNAPSHOT_FILE, snapshot)
        write_state(self.folder / HEADER_FILE, state)
        return state

    def _named(self, table: pa.Table) -> pa.Table:
        if self._names is None:
            return table
        topics = table["topic"].combine_chunks().dictionary_encode()
        names = [self._names.topic(name) for name in topics.dictionary.to_pylist()]
        renamed = pa.array(names, pa.string()).take(topics.indices)
        return table.set_column(0, SAMPLES.field("topic"), renamed)

    def _close(self) -> None:
        self._samples.close()
        self._vectors.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recorded state that can be replayed."""

    folder: Path
    state: StateFile
    snapshot: Snapshot
    """The cluster as it was last seen."""
    batches: tuple[int, ...]
    """Numbers of the batches, in order; at least one."""

    def samples(self, batch: int) -> pa.Table:
        """Read the samples of a batch, schema `SAMPLES`.

        Raises ConfigError if the file is missing, cannot be read, or contains an invalid
        sample or an overlong topic name in this batch.
        """
        found = _read_batch(self.folder / SAMPLES_FILE, SAMPLES, batch)
        if not _are_samples(found):
            raise ConfigError(
                f"{self.folder / SAMPLES_FILE} contains an invalid sample in batch "
                f"{batch}: a figure is missing or out of range; record the cluster "
                "again"
            )
        return found

    def vectors(self, batch: int) -> pa.Table:
        """Read the load vectors of a batch, sorted by topic and partition.

        Schema `VECTORS`, without the columns that older records lack. Raises ConfigError
        if the file is missing, cannot be read, or has an overlong topic name in this batch.
        """
        path = self.folder / VECTORS_FILE
        with _reading(path):
            present = pq.read_schema(path).names
        schema = pa.schema([field for field in VECTORS if field.name in present])
        return canonical(_read_batch(path, schema, batch))


def read_recording(folder: Path) -> Recording:
    """Read and check the header, snapshot and batch numbers of a recorded state.

    Raises ConfigError where the folder or a file in it cannot be used, is truncated, of
    another schema or empty, and InvalidCluster where its snapshot contradicts itself.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder} is not a recorded state; name a folder that `plimsoll record` wrote"
        )
    state = read_state(folder / HEADER_FILE)
    snapshot = read_snapshot(folder / SNAPSHOT_FILE)
    if snapshot.header.cluster_id != state.cluster_id:
        raise ConfigError(
            f"{folder} mixes two states: its snapshot is of the cluster "
            f"{snapshot.header.cluster_id}, its {HEADER_FILE} of {state.cluster_id}"
        )
    _check_columns(folder / VECTORS_FILE, OLDEST)
    _check_columns(folder / SAMPLES_FILE, SAMPLES.names)
    with _reading(folder / VECTORS_FILE) as path:
        count_by(path, _BATCH)
    with _reading(folder / SAMPLES_FILE) as path:
        batches = tuple(sorted(count_by(path, _BATCH)))
    if not batches:
        raise ConfigError(f"{path} holds no samples; record the cluster again")
    return Recording(folder=folder, state=state, snapshot=snapshot, batches=batches)


def canonical(vectors: pa.Table) -> pa.Table:
    """Return load vectors sorted by topic and partition, in one chunk."""
    by = [("topic", "ascending"), ("partition", "ascending")]
    return vectors.sort_by(by).combine_chunks()


def _begin(out: Path) -> Path:
    """Create the folder to write to, beside the one that it becomes."""
    if out.exists():
        raise ConfigError(f"{out} exists; name another folder, or remove it")
    part = out.with_name(out.name + ".partial")
    try:
        part.mkdir()
    except FileExistsError as exc:
        raise ConfigError(
            f"{part} exists: a state is being recorded there, or was cut off; remove "
            "it, or name another folder"
        ) from exc
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {part}: {exc.strerror}") from exc
    return part


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Turn an OSError while writing a recorded state into a ConfigError."""
    try:
        yield
    except OSError as exc:
        raise ConfigError(f"cannot write the recorded state {out}: {exc.strerror or exc}") from exc


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema.append(_BATCH), compression="zstd")


def _numbered(table: pa.Table, batch: int) -> pa.Table:
    return table.append_column(_BATCH, pa.array([batch] * len(table), _BATCH.type))


@contextmanager
def _reading(path: Path) -> Iterator[Path]:
    """Turn Arrow's errors about a file into a ConfigError of one sentence."""
    try:
        yield path
    except FileNotFoundError as exc:
        raise ConfigError(
            f"{path} is missing; copy the whole folder, or record the cluster again"
        ) from exc
    except OutOfBounds as exc:
        raise ConfigError(str(exc)) from exc
    except (OSError, pa.ArrowException) as exc:
        first = str(exc).partition("\n")[0].rstrip(".")
        raise ConfigError(
            f"{path} is not a Parquet file of a recorded state, or is truncated "
            f"({first}); copy it again, or record the cluster again"
        ) from exc


def _check_columns(path: Path, needed: Sequence[str]) -> None:
    with _reading(path):
        found = pq.read_schema(path).names
    missing = [name for name in (*needed, _BATCH.name) if name not in found]
    if missing:
        raise ConfigError(
            f"{path} lacks the columns {', '.join(missing)}: another schema, or not of "
            "a recorded state; record the cluster again"
        )


def _read_batch(path: Path, schema: pa.Schema, batch: int) -> pa.Table:
    with _reading(path):
        # The filter skips all groups of rows but the batch's own.
        found = pq.read_table(
            path,
            columns=schema.names,
            filters=[(_BATCH.name, "==", batch)],
            partitioning=None,
            # A long text may stand in very many rows.
            read_dictionary=["topic"],
        )
        if longest(found["topic"]) > _MOST_TOPIC_BYTES:
            raise OutOfBounds(
                f"{path} holds in batch {batch} the name of a topic with more than "
                f"{_MOST_TOPIC_BYTES} bytes; record the cluster again"
            )
        return found.select(schema.names).cast(schema).combine_chunks()


def _are_samples(table: pa.Table) -> bool:
    """Whether the probe can have taken all of these; Spark would leave out the others."""
    if any(column.null_count for column in table.columns):
        return False
    try:
        records = encode(table)
    except struct.error:
        return False
    found: bool = decode(pa.array(records, pa.binary())).table.equals(table)
    return found

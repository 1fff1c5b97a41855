"""Replay a recorded state through Spark, by the clock of its samples."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clients.jvm.java import find_java
from collector.assemble import assemble, newest_vectors
from collector.history.vector_files import VectorFiles
from collector.metadata import ClusterState
from collector.recorded_state import Recording, canonical
from collector.spark.arrow_transfer import to_bytes
from collector.spark.deployment import SparkSite
from collector.spark.vectors import VECTORS, Window
from collector.spool import Spool
from collector.state_dir import scratch
from model.errors import ConfigError
from model.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from collector.spark.stream import LoadStream


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Where and with which Spark a recorded state is replayed."""

    state_dir: Path
    """Spark's log, and a scratch folder while it lasts."""
    spark: SparkSite = field(default_factory=SparkSite)
    """Where Spark works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of a replay: the snapshot, and how many batches agree."""

    snapshot: Snapshot
    """The recorded placement with the loads at the end of the replay."""
    batches: int
    as_recorded: int
    """Batches that gave the vectors of the record, byte for byte."""


def replay(recording: Recording, settings: ReplaySettings) -> Replayed:
    """Compute load vectors from the recorded samples, with the recorded batches.

    Placement, and moves under a cooldown, come from the recorded snapshot. Raises
    ConfigError for invalid samples or vectors, or if the state folder cannot be used;
    PlimsollError if Spark fails.
    """
    # PySpark costs half a second, which a record that cannot be used need not pay.
    from collector.spark.session import Spark

    java = find_java()
    site, log_file = settings.spark, settings.state_dir / "spark.log"
    with scratch(settings.state_dir, "replay-") as folder:
        spark = Spark(java, master=site.master, properties=site.properties, log_file=log_file)
        try:
            site.require_samples(spark.master, settings.state_dir, None)
            return replay_in(spark.start(), recording, folder)
        finally:
            spark.close()


def replay_in(session: "SparkSession", recording: Recording, folder: Path) -> Replayed:
    """Replay as `replay` does, in a running Spark session.

    folder: for scratch files, empty at first. Raises ConfigError for invalid samples or
    vectors, PlimsollError if Spark fails.
    """
    return _Replay(recording, folder).run(session)


class _Replay:
    """Writes one batch after the other to the spool, as soon as the one before is done.

    So each batch contains the same samples as in the recording.
    """

    def __init__(self, recording: Recording, folder: Path) -> None:
        self._recording, self._folder = recording, folder
        self._now_ms = recording.state.begun_ms
        self._spool = Spool(folder / "spool", lambda: self._now_ms / 1000)
        self._waiting = iter(recording.batches)
        self._batch = -1
        self._newest = VECTORS.empty_table()
        self._as_recorded = 0
        self._failure: ConfigError | None = None
        self._ended = threading.Event()

    def run(self, session: "SparkSession") -> Replayed:
        """From the first batch to the last."""
        self._feed()
        stream = self._stream(session)
        with ThreadPoolExecutor(1, "plimsoll-replay") as pool:
            running = pool.submit(stream.run)
            running.add_done_callback(lambda _: self._ended.set())
            try:
                self._ended.wait()
            finally:
                stream.stop()
        running.result()
        if self._failure is not None:
            raise self._failure
        state = self._recording.state
        placement = placement_of(self._recording.snapshot)
        return Replayed(
            snapshot=_with_moves(
                assemble(placement, self._newest, window_s=state.window_ms / 1000),
                self._recording.snapshot,
            ),
            batches=len(self._recording.batches),
            as_recorded=self._as_recorded,
        )

    def _stream(self, session: "SparkSession") -> "LoadStream":
        from collector.spark.stream import Job, LoadStream, SpoolSource

        state = self._recording.state
        job = Job(
            source=SpoolSource(self._folder / "spool"),
            checkpoint=self._folder / "checkpoint",
            window=Window(window_ms=state.window_ms, fan_out=state.fan_out),
            interval_s=0,
        )
        history = VectorFiles(self._folder / "history", every_ms=state.window_ms)
        return LoadStream(session, job, history, self._take)

    def _take(self, _samples: pa.Table, vectors: pa.Table) -> None:
        """Receive what a batch handed out, and feed the next one."""
        vectors = canonical(vectors)
        self._newest = newest_vectors(self._newest, vectors)
        try:
            recorded = self._recording.vectors(self._batch)
            # A record of an older plimsoll has fewer columns.
            same = vectors.select(recorded.column_names)
            self._as_recorded += to_bytes(same) == to_bytes(recorded)
            self._feed()
        except ConfigError as exc:
            self._failure = exc
            self._ended.set()

    def _feed(self) -> None:
        """Write the next batch's samples to the spool; end after the last one."""
        batch = next(self._waiting, None)
        if batch is None:
            self._ended.set()
            return
        samples = self._recording.samples(batch)
        self._batch = batch
        self._now_ms = max(self._now_ms, pc.max(samples["time_ms"]).as_py())
        self._spool.write(samples)


def placement_of(snapshot: Snapshot) -> ClusterState:
    """Return the placement of a snapshot: all replicas in sync, no reassignments."""
    header, columns = snapshot.header, snapshot.partitions
    return ClusterState(
        cluster_id=header.cluster_id,
        taken_at_ms=header.taken_at_ms,
        brokers=header.brokers,
        topics=header.topics,
        topic=columns.topic,
        partition=columns.partition,
        replica_start=columns.replica_start,
        replica_broker=columns.replica_broker,
        leader=columns.leader,
        in_sync=np.diff(columns.replica_start),
        moving=np.zeros(len(snapshot), np.bool_),
        adding=np.zeros(len(snapshot), np.int64),
        may_describe=True,
        replica_dir=columns.replica_dir,
    )


def _with_moves(snapshot: Snapshot, recorded: Snapshot) -> Snapshot:
    """The snapshot with the moves that a cooldown may still bind."""
    update = {"recent_moves": recorded.header.recent_moves}
    return Snapshot(snapshot.header.model_copy(update=update), snapshot.partitions)

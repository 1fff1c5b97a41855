"""The Structured Streaming job: records in, load vectors per partition out.

Each micro-batch is decoded by columns in Spark's Python workers and joined with the
samples of the window before it; the window then becomes load vectors in the workers
again. Nothing is kept in Spark's own state: handing the window along costs less, and
a batch that is repeated changes nothing, since a sample counts once. Where the load of a
broker has changed within the window, only its samples since then count, so that loads are
never a mixture of old and new ones.

Metric topics are read by the same query. When others can be read than before, or one
fails, the query ends and another one begins: samples go on in any case.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from collector.history.vector_files import VectorFiles
from collector.load_changes import NO_CHANGES, load_changes
from collector.reports.metric_topics import DECODERS
from collector.reports.reporters import Reporters, TopicSubscription
from collector.samples import AHEAD_MS, SAMPLES, decode, not_ahead
from collector.spark.arrow_transfer import (
    PACKED_COLUMNS,
    Batches,
    Unpacked,
    divided,
    from_bytes,
    mapper,
    packer,
    to_bytes,
    unpack,
)
from collector.spark.kafka_connector import Connector
from collector.spark.lasting_faults import first_line, lasting_fault
from collector.spark.vectors import VECTORS, Window, concatenate, load_vectors
from collector.state_dir import discard_old
from collector.window_cache import WindowCache
from model.errors import DownloadFailed, ExecutionStopped, PlimsollError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SAMPLES: Final = "samples"
"""What samples are packed as."""
MOST_FILES: Final = 900
MOST_RECORDS: Final = 1_000_000
"""Read in one batch, so that a long absence is caught up in steps."""
SAMPLES_PER_TASK: Final = 200_000
TOLERATED_FAULTS: Final = 0.01
_TRIES: Final = 3
_RETRY_S: Final = 2.0
_LOOK_S: Final = 1.0
"""Other topics that can be read are noticed after this."""
_PATIENCE: Final = {
    "kafka.request.timeout.ms": "5000",
    "kafka.default.api.timeout.ms": "10000",
    "kafkaConsumer.pollTimeoutMs": "10000",
    "fetchOffset.numRetries": "1",
}
"""With a metric topic: samples wait meanwhile."""
_STOP_S: Final = 5.0
CHANGE_WINDOW_MS: Final = 20_000
"""Changes of load are looked for in so many samples at least, however short the window is."""
_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True, slots=True)
class SpoolSource:
    """Records in the files of a folder."""

    folder: Path

    def records(self, session: "SparkSession") -> "DataFrame":
        """Open the spool as an unbounded frame of records, column `value`."""
        reader = session.readStream.schema("value binary, timestamp timestamp").options(
            maxFilesPerTrigger=MOST_FILES,
            # Without it Spark remembers the name of every file of the last week; with less,
            # it would ignore new files after the clock was set back by an hour.
            maxFileAge="2h",
            # A truncated file, or one of another program, is skipped.
            ignoreCorruptFiles="true",
        )
        return reader.parquet(_url(self.folder)).select("value")


@dataclass(frozen=True, slots=True)
class TopicSource:
    """Records in a topic; of the last `since_s` where no checkpoint says otherwise."""

    options: Mapping[str, str] = field(repr=False)
    """Of Spark's connector, as `spark_options` gives them."""
    topic: str
    clock: Callable[[], float] = time.time
    since_s: float = 60.0

    def records(self, session: "SparkSession") -> "DataFrame":
        """Open the topic as an unbounded frame of records, column `value`."""
        since_ms = int(1000 * (self.clock() - self.since_s))
        options = {
            **self.options,
            "subscribe": self.topic,
            "startingTimestamp": str(since_ms),
            "startingOffsetsByTimestampStrategy": "latest",
            "maxOffsetsPerTrigger": str(MOST_RECORDS),
            "failOnDataLoss": "false",
        }
        return session.readStream.format("kafka").options(**options).load()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The inputs, the window and the checkpoint of a streaming job."""

    source: SpoolSource | TopicSource
    checkpoint: Path
    """Where Spark notes what it has read; another folder for another source."""
    window: Window
    interval_s: float
    """Least time between two batches."""
    reporters: Reporters | None = None
    """Of metric topics, which are read, too; their reports complete the load vectors."""
    connector: Connector | None = None
    """To read them; there where `reporters` is."""


class LoadStream:
    """The running job.

    `on_batch` gets what each batch read and the load vectors at its end, schemas
    `SAMPLES` and `VECTORS`, in a thread of the stream's own. Vectors depend on what was
    read so far, not on how it was cut into batches. The job is started again when it
    fails, three times in a row.
    """

    def __init__(
        self,
        session: "SparkSession",
        job: Job,
        history: VectorFiles,
        on_batch: Callable[[pa.Table, pa.Table], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._job, self._history = session, job, history
        self._on_batch, self._clock = on_batch, clock
        self._context = copy_context()
        """Batches come in a thread of Spark's, which the streams of several clusters may share."""
        kept_ms = max(job.window.window_ms, CHANGE_WINDOW_MS)
        self._recent = WindowCache(job.checkpoint / "recent", kept_ms)
        self._query: StreamingQuery | None = None
        self.changes = NO_CHANGES
        """When loads last changed, as of the newest batch."""
        self.ahead_s = 0.0
        """Seconds by which the newest batch is ahead of the clock, if none of its samples counts
        for that reason; else 0."""
        self._stopping = threading.Event()
        self._busy = threading.Lock()
        self._tries = _TRIES
        self._options: Mapping[str, str] = {}

    def run(self) -> None:
        """Process batches until `stop`.

        Raises PlimsollError when the job keeps failing.
        """
        from pyspark.errors import AnalysisException, StreamingQueryException

        connector = self._job.connector
        # Samples do not wait for a download.
        readings = self._to_read() if connector and connector.at_hand else ()
        while not self._stopping.is_set():
            try:
                query = self._query = self._start(readings)
                self._wait(query, readings)
            except (AnalysisException, StreamingQueryException) as exc:
                if self._stopping.is_set():
                    return
                self._note_failure(exc)
            readings = self._to_read()

    def stop(self) -> None:
        """End the job between two batches; callable from any thread."""
        self._stopping.set()
        if self._query is not None:
            self._end(self._query)

    def _to_read(self) -> tuple[TopicSubscription, ...]:
        reporters, connector = self._job.reporters, self._job.connector
        if reporters is None or connector is None:
            return ()
        readings = reporters.to_read()
        if readings and not self._options:
            try:
                self._options = connector.options(self._session)
            except DownloadFailed as exc:
                reporters.put_off(str(exc))
                return ()
        return readings

    def _wait(self, query: "StreamingQuery", readings: tuple[TopicSubscription, ...]) -> None:
        """Return when the query has ended, or other topics can be read."""
        if self._job.reporters is None:
            query.awaitTermination()
            return
        while not query.awaitTermination(_LOOK_S):  # type: ignore[arg-type]  # a float
            if self._to_read() != readings:
                self._end(query)
                return

    def _end(self, query: "StreamingQuery") -> None:
        from py4j.protocol import Py4JError

        # A batch that is cut off makes Spark search a long text until its stack ends.
        free = self._busy.acquire(timeout=_STOP_S)
        try:
            with suppress(Py4JError, OSError):
                query.stop()
        finally:
            if free:
                self._busy.release()

    def _note_failure(self, exc: Exception) -> None:
        """Exclude metric topics at first; raise the error if it persists."""
        reporters = self._job.reporters
        if reporters is not None and reporters.set_aside(str(exc), _reason(exc)):
            _log.info("metric topics are set aside: %s", first_line(exc))
            return
        self._tries -= 1
        if lasting := lasting_fault(str(exc)):
            raise lasting from exc
        if not self._tries:
            raise _ended(exc, self._job.checkpoint) from exc
        _log.warning("the streaming job is started again: %s", first_line(exc))
        self._stopping.wait(_RETRY_S)

    def _start(self, readings: tuple[TopicSubscription, ...]) -> "StreamingQuery":
        if self._job.reporters is not None:
            self._job.reporters.begin(readings)
        records = self._job.source.records(self._session).select("value")
        packed = records.mapInArrow(packer(_SAMPLES, decode), PACKED_COLUMNS)
        for reading in readings:
            packed = packed.union(self._packed(reading))
        return (
            packed.writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", _url(self._checkpoint(readings)))
            .trigger(processingTime=f"{int(1000 * self._job.interval_s)} milliseconds")
            .start()
        )

    def _packed(self, reading: TopicSubscription) -> "DataFrame":
        source = TopicSource({**self._options, **_PATIENCE}, reading.name, since_s=reading.since_s)
        records = source.records(self._session).select("value")
        # A topic of many partitions needs no worker for each.
        most = self._session.sparkContext.defaultParallelism
        convert = packer(reading.source, DECODERS[reading.source])
        return records.coalesce(most).mapInArrow(convert, PACKED_COLUMNS)

    def _checkpoint(self, readings: tuple[TopicSubscription, ...]) -> Path:
        """One folder for each set of sources: Spark resumes only with the same ones."""
        first = self._job.checkpoint
        if readings:
            for old in first.parent.glob(f"{first.name}+*"):
                discard_old(old, time.time())
        topics = [f"{reading.source}-{reading.topic_id}" for reading in readings]
        return first.with_name("+".join([first.name, *topics]))

    def _batch(self, frame: "DataFrame", batch: int) -> None:
        # `stop` holds it while it waits for this very thread, so do not wait for it. An
        # error leaves the batch to the next start; to return would commit it unread.
        if self._stopping.is_set() or not self._busy.acquire(blocking=False):
            raise ExecutionStopped("The streaming job is stopping.")
        try:
            self._context.run(self._hand_out, frame, batch)
            self._tries = _TRIES
        finally:
            self._busy.release()

    def _hand_out(self, frame: "DataFrame", batch: int) -> None:
        unpacked = unpack(frame.toArrow())
        samples = unpacked.pop(_SAMPLES, Unpacked())
        reporters = self._job.reporters
        if reporters is not None:
            for source, of in unpacked.items():
                reporters.take(source, of)
        _warn_of(samples)
        read = concatenate(samples.tables, SAMPLES)
        now_ms = int(1000 * self._clock())
        found = _not_ahead(read, now_ms)
        if read.num_rows:
            newest_ms = now_ms if found.num_rows else pc.max(read["time_ms"]).as_py()
            self.ahead_s = (newest_ms - now_ms) / 1000
        if found.num_rows:
            recent = self._recent.add(batch, found, now_ms)
            self.changes = load_changes(recent)
            vectors = self._vectors(self._newest(self.changes.kept(recent)))
            if reporters is not None:
                vectors = reporters.complete(vectors)
            self._history.append(vectors, self._query_id(frame), batch)
            self._on_batch(found, vectors)

    def _newest(self, samples: pa.Table) -> pa.Table:
        """The samples of the window."""
        since_ms = pc.max(samples["time_ms"]).as_py() - self._job.window.window_ms
        return samples.filter(pc.greater_equal(samples["time_ms"], since_ms))

    def _vectors(self, samples: pa.Table) -> pa.Table:
        """Compute the vectors of the window that these samples fill."""
        tasks = 1 + samples.num_rows // SAMPLES_PER_TASK
        # A topic stays together, for its mean stands in where a partition is unknown.
        parts = [to_bytes(part) for part in divided(samples, "topic", tasks)]
        frame = self._session.createDataFrame(pa.table({"content": parts}))
        found = frame.mapInArrow(_windower(self._job.window), "content binary")
        contents = found.toArrow()["content"].to_pylist()
        return concatenate(list(map(from_bytes, contents)), VECTORS)

    def _query_id(self, frame: "DataFrame") -> str:
        """The query's id, the same for all starts from one checkpoint."""
        context = frame.sparkSession.sparkContext
        return str(context.getLocalProperty("sql.streaming.queryId"))


def _windower(window: Window) -> Callable[[Batches], Batches]:
    """For a Python worker: packed samples of whole topics to packed vectors."""
    return mapper(lambda samples: load_vectors(samples, window))


def _url(folder: Path) -> str:
    """URL of a local folder, whichever file system the cluster takes by default."""
    return f"file://{folder.absolute()}"


def _not_ahead(samples: pa.Table, now_ms: int) -> pa.Table:
    """Remove samples from the future, which would make all others too old."""
    kept = not_ahead(samples, now_ms)
    if len(kept) < len(samples):
        _log.warning(
            "%d of %d samples are left out: the clock of the host that took them is "
            "more than %d s ahead; set the clocks of all hosts that watch this cluster",
            len(samples) - len(kept),
            len(samples),
            AHEAD_MS // 1000,
        )
    return kept


def _warn_of(samples: Unpacked) -> None:
    count = sum(samples.left_out.values())
    if count > TOLERATED_FAULTS * samples.records:
        _log.warning(
            "%d of %d records are not samples: %s", count, samples.records, dict(samples.left_out)
        )


def _reason(exc: Exception) -> str:
    """Why the query ended, without Spark's words around it."""
    return first_line(exc).rpartition("terminated with exception: ")[2]


def _ended(exc: Exception, checkpoint: Path) -> PlimsollError:
    return PlimsollError(
        f"Spark's streaming job ended: {first_line(exc)}. Start plimsoll again; if it ends "
        f"once more, remove {checkpoint}."
    )

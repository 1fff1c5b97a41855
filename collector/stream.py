"""The Structured Streaming job: records in, load vectors per partition out.

Each micro-batch is decoded by columns in Spark's Python workers and joined with the
samples of the window before it; the window then becomes load vectors in the workers
again. Nothing is kept in Spark's own state: handing the window along costs less, and
a batch that is repeated changes nothing, since a sample counts once.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from collector.faults import lasting_fault
from collector.history import History
from collector.recent import Recent
from collector.samples import AHEAD_MS, SAMPLES, decode, not_ahead
from collector.vectors import VECTORS, Window, load_vectors
from model.errors import ExecutionStopped, PlimsollError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DECODED: Final = SAMPLES.append(pa.field("fault", pa.string()))
"""Samples; and one row of nothing but a fault for each record that is none."""
MOST_FILES: Final = 900
MOST_RECORDS: Final = 1_000_000
"""Read in one batch, so that a long absence is caught up in steps."""
SAMPLES_PER_TASK: Final = 200_000
TOLERATED_FAULTS: Final = 0.01
_CATCH_UP_MS: Final = 60_000
_TRIES: Final = 3
_RETRY_S: Final = 2.0
_STOP_S: Final = 5.0
_SPARK_TYPES: Final = {
    pa.string(): "string",
    pa.int8(): "byte",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
}
_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True, slots=True)
class SpoolSource:
    """Records in the files of a folder."""

    folder: Path

    def records(self, session: "SparkSession") -> "DataFrame":
        """An unbounded frame with the column `value`."""
        reader = session.readStream.schema("value binary, timestamp timestamp").options(
            maxFilesPerTrigger=MOST_FILES,
            # Without it Spark remembers the name of every file of the last week.
            maxFileAge="1h",
            # A file that is cut off, or another program's, is passed over.
            ignoreCorruptFiles="true",
        )
        return reader.parquet(_url(self.folder)).select("value")


@dataclass(frozen=True, slots=True)
class TopicSource:
    """Records in a topic, from a minute ago where no checkpoint says otherwise."""

    options: Mapping[str, str] = field(repr=False)
    """Of Spark's connector, as `spark_options` gives them."""
    topic: str
    clock: Callable[[], float] = time.time

    def records(self, session: "SparkSession") -> "DataFrame":
        """An unbounded frame with the column `value`."""
        since_ms = int(1000 * self.clock()) - _CATCH_UP_MS
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
    """What a stream is to do."""

    source: SpoolSource | TopicSource
    checkpoint: Path
    """Where Spark notes what it has read; another folder for another source."""
    window: Window
    interval_s: float
    """Least time between two batches."""


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
        history: History,
        on_batch: Callable[[pa.Table, pa.Table], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._job, self._history = session, job, history
        self._on_batch, self._clock = on_batch, clock
        self._recent = Recent(job.checkpoint / "recent", job.window.window_ms)
        self._query: StreamingQuery | None = None
        self._stopping = threading.Event()
        self._busy = threading.Lock()
        self._tries = _TRIES

    def run(self) -> None:
        """Read until `stop`. Raises PlimsollError when the job keeps failing."""
        from pyspark.errors import AnalysisException, StreamingQueryException

        while not self._stopping.is_set():
            try:
                self._query = self._start()
                self._query.awaitTermination()
            except (AnalysisException, StreamingQueryException) as exc:
                if self._stopping.is_set():
                    return
                self._tries -= 1
                if lasting := lasting_fault(str(exc)):
                    raise lasting from exc
                if not self._tries:
                    raise _ended(exc, self._job.checkpoint) from exc
                _log.warning("the streaming job is started again: %s", _line(exc))
                self._stopping.wait(_RETRY_S)

    def stop(self) -> None:
        """End the job between two batches; from any thread."""
        from py4j.protocol import Py4JError

        self._stopping.set()
        # A batch that is cut off makes Spark search a long text until its stack ends.
        free = self._busy.acquire(timeout=_STOP_S)
        try:
            with suppress(Py4JError, OSError):
                if self._query is not None:
                    self._query.stop()
        finally:
            if free:
                self._busy.release()

    def _start(self) -> "StreamingQuery":
        records = self._job.source.records(self._session).select("value")
        decoded = records.mapInArrow(_decoder(), _spark_schema(DECODED))
        return (
            decoded.writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", _url(self._job.checkpoint))
            .trigger(processingTime=f"{int(1000 * self._job.interval_s)} milliseconds")
            .start()
        )

    def _batch(self, frame: "DataFrame", batch: int) -> None:
        # `stop` holds it while it waits for this very thread, so do not wait for it. An
        # error leaves the batch to the next start; to return would commit it unread.
        if self._stopping.is_set() or not self._busy.acquire(blocking=False):
            raise ExecutionStopped("The streaming job is stopping.")
        try:
            self._hand_out(frame, batch)
            self._tries = _TRIES
        finally:
            self._busy.release()

    def _hand_out(self, frame: "DataFrame", batch: int) -> None:
        decoded = frame.toArrow().cast(DECODED)
        found = decoded.filter(pc.field("fault").is_null()).drop_columns("fault")
        _warn_of(decoded.num_rows - found.num_rows, decoded)
        found = _not_ahead(found, int(1000 * self._clock()))
        if found.num_rows:
            vectors = self._vectors(self._recent.add(batch, found))
            self._history.append(vectors, self._query_id(frame), batch)
            self._on_batch(found, vectors)

    def _vectors(self, samples: pa.Table) -> pa.Table:
        """Vectors over the window that these samples fill."""
        frame = self._session.createDataFrame(samples)
        tasks = 1 + samples.num_rows // SAMPLES_PER_TASK
        # A topic stays together, for its mean stands in where a partition is unknown.
        frame = frame.coalesce(1) if tasks == 1 else frame.repartition(tasks, "topic")
        vectors = frame.mapInArrow(
            _windower(self._job.window), _spark_schema(VECTORS)
        ).toArrow()
        return vectors.cast(VECTORS)

    def _query_id(self, frame: "DataFrame") -> str:
        """The same for all starts from one checkpoint."""
        context = frame.sparkSession.sparkContext
        return str(context.getLocalProperty("sql.streaming.queryId"))


Batches = Iterator[pa.RecordBatch]


def _decoder() -> Callable[[Batches], Batches]:
    """For a Python worker: records to `DECODED`."""

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            found = decode(batch.column("value"))
            faults = [r for r, count in found.skipped.items() for _ in range(count)]
            nothing = pa.nulls(len(found.samples), pa.string())
            good = found.samples.append_column("fault", nothing)
            bad = pa.table({"fault": pa.array(faults, pa.string())})
            yield from pa.concat_tables(
                [good, bad], promote_options="default"
            ).to_batches()

    return convert


def _windower(window: Window) -> Callable[[Batches], Batches]:
    """For a Python worker: all samples of some topics to `VECTORS`."""

    def convert(batches: Batches) -> Batches:
        found = list(batches)
        if found:
            vectors = load_vectors(pa.Table.from_batches(found), window)
            yield from vectors.to_batches()

    return convert


def _url(folder: Path) -> str:
    """Of a file system of machines, whichever the cluster takes by default."""
    return f"file://{folder.absolute()}"


def _spark_schema(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in schema)


def _not_ahead(samples: pa.Table, now_ms: int) -> pa.Table:
    """Without those that would make all others too old."""
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


def _warn_of(count: int, decoded: pa.Table) -> None:
    if count > TOLERATED_FAULTS * decoded.num_rows:
        reasons = {
            row["values"]: row["counts"]
            for row in pc.value_counts(decoded["fault"].drop_null()).to_pylist()
        }
        _log.warning(
            "%d of %d records are no samples: %s", count, len(decoded), reasons
        )


def _line(exc: Exception) -> str:
    return str(exc).strip().split("\n", 1)[0]


def _ended(exc: Exception, checkpoint: Path) -> PlimsollError:
    return PlimsollError(
        f"Spark's streaming job ended: {_line(exc)}. Start plimsoll again; if it ends "
        f"once more, remove {checkpoint}."
    )

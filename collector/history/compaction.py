"""Raw vectors of past days become hourly statistics, hour by hour."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector.history.hours import HOUR_MS, HOURS, NEEDED, hourly
from collector.history.slots import DAY, first_hour
from collector.history.store import CompactedHistory, spark_type
from collector.history.vector_files import read_vectors
from collector.spark.arrow_transfer import Batches
from collector.spark.deployment import is_local
from collector.spark.vectors import concatenate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_FILE: Final = 500_000
ROWS_PER_TASK: Final = 1_000_000
"""Of raw vectors; an hour is never divided."""
_PATHS: Final = pa.schema([pa.field("hour", pa.int64()), pa.field("paths", pa.list_(pa.string()))])
_log = logging.getLogger("plimsoll.collector")


def compact(session: "SparkSession", folder: Path, store: CompactedHistory) -> None:
    """Compact one day of raw vectors, folder `date=YYYY-MM-DD`, into the store.

    The raw files stay; repeating it gives the same result.
    """
    day = folder.name.removeprefix("date=")
    hours, rows, partitions = _hours_in(folder)
    found = _compacted(session, hours, 1 + rows // ROWS_PER_TASK)
    files = 1 + partitions * DAY // ROWS_PER_FILE
    store.write_day(day, found.repartition(files, "topic", "partition"))


def compact_hour(hour: int, paths: list[str]) -> pa.Table:
    """Compute statistics, schema `HOURS`, of one hour's vectors in these files.

    hour: hours since the epoch. Damaged files are left out.
    """
    found = (read_vectors(Path(path)) for path in paths)
    # An hour of a large cluster is millions of rows.
    needed = (t.select(NEEDED.names).cast(NEEDED) for t in found if t is not None)
    vectors = concatenate(list(needed), NEEDED)
    begin_ms, time_ms = hour * HOUR_MS, pc.field("time_ms")
    return hourly(vectors.filter((time_ms >= begin_ms) & (time_ms < begin_ms + HOUR_MS)))


def _compacted(session: "SparkSession", hours: pa.Table, tasks: int) -> "DataFrame":
    """Compact in workers, which read the files; on a cluster here, as they have no files."""
    if is_local(str(session.sparkContext.master)):
        frame = session.createDataFrame(hours).repartition(min(tasks, DAY))
        return frame.mapInArrow(_compact_hours, spark_type(HOURS))
    made = [compact_hour(row["hour"], row["paths"]) for row in hours.to_pylist()]
    return session.createDataFrame(concatenate(made, HOURS))


def _compact_hours(batches: Batches) -> Batches:
    """For a Python worker: files of hours to `HOURS`."""
    for batch in batches:
        for row in batch.to_pylist():
            yield from compact_hour(row["hour"], row["paths"]).to_batches()


def _hours_in(folder: Path) -> tuple[pa.Table, int, int]:
    """Files with vectors of each hour of the day; rows of all, and of the longest file."""
    first = first_hour(folder.name.removeprefix("date="))
    paths: dict[int, list[str]] = {hour: [] for hour in range(first, first + DAY)}
    counts = [0]
    for path in sorted(folder.glob("*.parquet")):
        try:
            oldest_ms, newest_ms, count = _span(path)
        except (OSError, ValueError) as exc:
            _log.warning("the history file %s is passed over: %s", path, exc)
            continue
        counts.append(count)
        for hour in range(oldest_ms // HOUR_MS, newest_ms // HOUR_MS + 1):
            # A file of the first seconds of a day may begin in the one before.
            if hour in paths:
                paths[hour].append(str(path))
    busy = {hour: found for hour, found in paths.items() if found}
    table = pa.table([list(busy), list(busy.values())], schema=_PATHS)
    return table, sum(counts), max(counts)


def _span(path: Path) -> tuple[int, int, int]:
    """Oldest and newest time of a file's vectors, and their number."""
    footer = pq.read_metadata(path)
    column = footer.schema.names.index("time_ms")
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    known = [g.column(column).statistics for g in groups]
    return min(s.min for s in known), max(s.max for s in known), footer.num_rows

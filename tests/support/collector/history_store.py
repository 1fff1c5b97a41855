"""A real history in a folder, updated by a real Spark."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.history.history_settings import HistorySettings
from collector.history.hours import HOUR_MS, HOURS, hourly
from collector.history.retention import HistoryKeeper
from collector.history.slots import DAY, WEEK, Calendar
from collector.history.vector_files import VectorFiles
from collector.history.weekly_forecast import COLUMNS
from collector.history.weekly_profile import week_of
from model.errors import PlimsollError
from tests.support.collector.seasonal_loads import FIRST_HOUR, MONDAY, daily, same, vectors_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = [("orders", 0), ("orders", 1), ("größe.v1", 0)]
DAYS = 3
PER_HOUR = 2


def raw() -> pa.Table:
    """Vectors of three days, two per hour."""
    random = np.random.default_rng(11)
    cycles = [daily(DAYS * DAY, peak=peak) for peak in (3, 11, 20)]
    loads = np.repeat(1e6 * np.stack(cycles), PER_HOUR, axis=1)
    step = HOUR_MS // PER_HOUR
    times = [FIRST_HOUR * HOUR_MS + step * i for i in range(loads.shape[1])]
    return vectors_of(PARTITIONS, times, loads * random.lognormal(0, 0.1, loads.shape))


def write_raw(folder: Path, vectors: pa.Table) -> None:
    """Six hours in a file, as many micro-batches would write them."""
    history = VectorFiles(folder / "history", every_ms=1)
    span_ms = 6 * HOUR_MS
    first_ms = FIRST_HOUR * HOUR_MS
    for batch in range(DAYS * 4):
        begin = first_ms + batch * span_ms
        time_ms = np.asarray(vectors["time_ms"])
        inside = (time_ms >= begin) & (time_ms < begin + span_ms)
        history.append(vectors.filter(pa.array(inside)), "q", batch)


def keeper(folder: Path) -> HistoryKeeper:
    now = MONDAY + dt.timedelta(days=DAYS, hours=1)
    return HistoryKeeper(HistorySettings(raw_days=2), folder, "c1", now.timestamp)


def compacted(folder: Path) -> pa.Table:
    paths = sorted((folder / "hours").glob("date=*/*.parquet"))
    tables = [pq.ParquetFile(path).read().cast(HOURS) for path in paths]
    return in_order(pa.concat_tables(tables))


def by_kernel(vectors: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Hours and their forecast, without any Spark."""
    hours = hourly(vectors)
    calendar = Calendar.of(FIRST_HOUR, DAYS * DAY, dt.UTC)
    ahead = Calendar.of(FIRST_HOUR + DAYS * DAY, WEEK, dt.UTC)
    weeks = week_of(hours, calendar, ahead).sort_by([("topic", "ascending"), by_partition])
    return in_order(hours), weeks.select(COLUMNS)


by_partition = ("partition", "ascending")


def in_order(hours: pa.Table) -> pa.Table:
    by = [(name, "ascending") for name in ("topic", "partition", "hour")]
    return hours.sort_by(by).combine_chunks()


def check_compaction(session: "SparkSession", folder: Path) -> None:
    """Spark's days and forecast equal those of the kernels, also when repeated."""
    vectors = raw()
    write_raw(folder, vectors)
    hours, weeks = by_kernel(vectors)
    result = keeper(folder).renew(session, None)
    assert result is not None
    assert result.days == DAYS
    assert result.newest_day == "2026-03-04"
    assert same(compacted(folder), hours)
    assert same(result.table, weeks)
    # A truncated day does not count; its raw vectors still exist.
    (folder / "hours" / "date=2026-03-04" / "_SUCCESS").unlink()
    assert keeper(folder).renew(session, result) is None
    assert same(compacted(folder), hours)
    # While the store is unreachable, raw days stay.
    far = HistoryKeeper(HistorySettings(url="s3a://nowhere"), folder, "c1")
    with pytest.raises(PlimsollError, match="s3a://nowhere/c1 cannot be used"):
        far.renew(session, None)
    # Raw days are removed once they are compacted and old.
    assert raw_days(folder) == ["date=2026-03-03", "date=2026-03-04"]


def raw_days(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "history").iterdir())

"""Past days, read back for a simulation."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from collector.history.past_loads import COLUMNS, newest_days, past_loads_in
from collector.history.store import CompactedHistory
from model.errors import ConfigError
from tests.support.collector.seasonal_loads import FIRST_HOUR, daily, hours_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KNOWN = ["2026-02-27", "2026-02-28", "2026-03-02", "2026-03-03", "2026-03-04"]


@pytest.mark.parametrize(("count", "found"), [(None, 3), (3, 3), (2, 2), (1, 1)])
def test_the_newest_days_without_a_gap_are_used(count: int | None, found: int) -> None:
    assert newest_days(KNOWN, "c1", count) == tuple(KNOWN[-found:])


def test_a_month_has_no_gap_at_its_end() -> None:
    days = ["2026-02-28", "2026-03-01"]
    assert newest_days(days, "c1", None) == tuple(days)


def test_a_history_that_is_too_short_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cluster c1 has 3 days without a gap, from 2026-03-02"):
        newest_days(KNOWN, "c1", 4)
    with pytest.raises(ConfigError, match=r"cluster c1 has no complete day"):
        newest_days([], "c1", None)


@pytest.mark.spark
def test_days_that_spark_has_compacted_are_read_back(
    session: "SparkSession", tmp_path: Path
) -> None:
    url = tmp_path.as_uri()
    store = CompactedHistory(session, url)
    hours = hours_of([("orders", 0), ("orders", 1)], np.stack([daily(48, peak=3)] * 2))
    for at, day in enumerate(("2026-03-02", "2026-03-03")):
        first = FIRST_HOUR + 24 * at
        inside = [first <= hour < first + 24 for hour in hours["hour"].to_pylist()]
        of_day = hours.filter(pa.array(inside))
        store.write_day(day, session.createDataFrame(of_day))
    assert past_loads_in(session, url, "c1", 1).days == ("2026-03-03",)
    past = past_loads_in(session, url, "c1", None)
    assert past.days == ("2026-03-02", "2026-03-03")
    assert past.begin_ms == FIRST_HOUR * 3_600_000
    expected = hours.select(COLUMNS)
    by = [(name, "ascending") for name in ("topic", "partition", "hour")]
    found = past.hours.cast(expected.schema).sort_by(by)
    assert _same(found, expected.sort_by(by))


def _same(found: pa.Table, expected: pa.Table) -> bool:
    """Whether both have the same figures; NaN equals NaN."""
    return found.num_rows == expected.num_rows and all(
        found[name].to_pylist() == expected[name].to_pylist()
        or np.array_equal(found[name].to_numpy(), expected[name].to_numpy(), equal_nan=True)
        for name in COLUMNS
    )

"""Reports as rows."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, FIGURES, REPORTS
from tests.support.collector.sample_rows import START_MS

Row = dict[str, Any]


def report(source: str, second: float, **other: Any) -> Row:
    """A report of broker 1 as a whole, without figures."""
    return {
        "source": source,
        "time_ms": START_MS + int(1000 * second),
        "broker": 1,
        "topic": None,
        "partition": -1,
        **dict.fromkeys(FIGURES, math.nan),
        **other,
    }


def automq(second: float, **other: Any) -> Row:
    """A report of the partition orders-0."""
    return report(AUTOMQ, second, **{"topic": "orders", "partition": 0, **other})


def cruise(second: float = 0, **other: Any) -> Row:
    return report(CRUISE_CONTROL, second, **other)


def report_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=REPORTS)

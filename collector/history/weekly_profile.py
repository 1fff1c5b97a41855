"""What one of Spark's workers makes of the hours of some partitions.

Nothing but numpy and pyarrow is imported here.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from collector.history.forecasters import as_now, backtest, enough, seasonal_trend
from collector.history.slots import (
    RATES,
    SLOTS,
    WEEK,
    Calendar,
    Floats,
    Ints,
    LoadHistory,
    load_histories,
    slots,
)

SUMS: Final = ("missed", "missed_as_now", "carried")

WEEKS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(f"{q}_{s}", pa.list_(pa.float32())) for q in RATES for s in (*SLOTS, "ahead")),
        *(pa.field(f"{q}_{s}", pa.float64()) for q in RATES for s in SUMS),
    ]
)
"""One row per partition; lists have 168 values, by hour of the week.

mean to confidence: `SLOTS`. ahead: forecast of the hours that come after the calendar's;
NaN where too little is known. missed, missed_as_now, carried: as in `ForecastError`, of
the forecast and of `as_now`.
"""


def week_of(hours: pa.Table, calendar: Calendar, ahead: Calendar) -> pa.Table:
    """Compute weekly profiles, schema `WEEKS`, from hours, schema `HOURS`.

    Neither is in any particular order. calendar: hours of the history. ahead: the week
    after it.
    """
    ids, known = load_histories(hours, calendar)
    columns: dict[str, Any] = {name: ids[name] for name in ids.column_names}
    for name, past in known.items():
        columns |= {f"{name}_{s}": c for s, c in _columns(past, ahead.week).items()}
    return pa.table([columns[f.name] for f in WEEKS], schema=WEEKS)


def _columns(past: LoadHistory, week: Ints) -> dict[str, pa.Array]:
    missed = backtest(seasonal_trend, past)
    ahead = np.full((len(past.mean), WEEK), np.nan)
    ahead[:, week] = seasonal_trend(past, week)
    ahead[~enough(past)] = np.nan
    by_hour = {**slots(past), "ahead": ahead}
    sums = {
        "missed": missed.missed,
        "missed_as_now": backtest(as_now, past).missed,
        "carried": missed.carried,
    }
    return {s: _lists(m) for s, m in by_hour.items()} | {s: pa.array(v) for s, v in sums.items()}


def _lists(matrix: Floats) -> pa.Array:
    """(n, 168) as n lists."""
    ends = np.arange(0, matrix.size + 1, WEEK, dtype=np.int32)
    values = pa.array(matrix.astype(np.float32).ravel())
    return pa.ListArray.from_arrays(pa.array(ends), values)

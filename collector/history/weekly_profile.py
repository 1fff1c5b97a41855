"""What one of Spark's workers makes of the hours of some partitions.

Nothing but numpy and pyarrow is imported here.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collector.history.forecasters import AsNow, Forecaster, backtest, enough
from collector.history.slots import (
    RATES,
    WEEK,
    Calendar,
    Floats,
    LoadHistory,
    load_histories,
    slots,
)

_BY_HOUR: Final = ("mean", "p95", "max", "samples", "confidence", "ahead")
_SUMS: Final = ("missed", "missed_as_now", "carried")

WEEKS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(f"{q}_{s}", pa.list_(pa.float32())) for q in RATES for s in _BY_HOUR),
        *(pa.field(f"{q}_{s}", pa.float64()) for q in RATES for s in _SUMS),
    ]
)
"""One row per partition; lists have 168 values, by hour of the week.

mean, p95, max, samples, confidence: as in `Slots`. ahead: forecast of the hours that
come after the calendar's; NaN where too little is known. missed, missed_as_now,
carried: as in `Missed`, of the forecast and of `AsNow`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPeriod:
    """The hours and the method that a forecast is computed from."""

    calendar: Calendar
    """Hours of the history."""
    ahead: Calendar
    """The week after it."""
    forecaster: Forecaster


def week_of(hours: pa.Table, terms: ForecastPeriod) -> pa.Table:
    """Compute weekly profiles, schema `WEEKS`, from hours, schema `HOURS`.

    Neither is in any particular order.
    """
    ids, known = load_histories(hours, terms.calendar)
    columns: dict[str, Any] = {name: ids[name] for name in ids.column_names}
    for name, past in known.items():
        columns |= {f"{name}_{s}": c for s, c in _columns(past, terms).items()}
    return pa.table([columns[f.name] for f in WEEKS], schema=WEEKS)


def _columns(past: LoadHistory, terms: ForecastPeriod) -> dict[str, pa.Array]:
    found = slots(past)
    missed = backtest(terms.forecaster, past)
    by_hour = {
        "mean": found.mean,
        "p95": found.p95,
        "max": found.largest,
        "samples": found.samples,
        "confidence": found.confidence,
        "ahead": _ahead(past, terms),
    }
    sums = {
        "missed": missed.missed,
        "missed_as_now": backtest(AsNow(), past).missed,
        "carried": missed.carried,
    }
    return {s: _lists(m) for s, m in by_hour.items()} | {s: pa.array(v) for s, v in sums.items()}


def _ahead(past: LoadHistory, terms: ForecastPeriod) -> Floats:
    """(n, 168) the forecast by hour of the week."""
    found = np.full((len(past.mean), WEEK), np.nan)
    found[:, terms.ahead.week] = terms.forecaster.ahead(past, terms.ahead.week)
    found[~enough(past)] = np.nan
    return found


def _lists(matrix: Floats) -> pa.Array:
    """(n, 168) as n lists."""
    ends = np.arange(0, matrix.size + 1, WEEK, dtype=np.int32)
    values = pa.array(matrix.astype(np.float32).ravel())
    return pa.ListArray.from_arrays(pa.array(ends), values)

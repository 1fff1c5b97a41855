"""Hours of weeks past become the hours of a week: what is usual at each.

Spark's Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, tzinfo
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.history.hours import QUANTITIES, distinct_partitions
from collector.spark.vectors import quotient

DAY: Final = 24
WEEK: Final = 168
RATES: Final = tuple(q for q in QUANTITIES if q not in ("disk", "total_bytes"))
"""What follows people's days and weeks; sizes do not."""

SLOTS: Final = ("mean", "p95", "max", "samples", "confidence")
"""Statistics by hour of the week.

mean: of all samples. p95: mean of the exact p95 of each hour, weighted by its samples.
confidence: weeks / (weeks + 1) / (1 + spread): how many weeks knew the hour, and how far
their means lie from one another (root mean square, as a share of the mean). 0 for none,
0.5 for one week, 0.8 for four that are alike.
"""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def first_hour(day: str) -> int:
    """Return when a day, `YYYY-MM-DD`, begins in UTC, in hours since the epoch.

    Raises ValueError for any other text.
    """
    return (date.fromisoformat(day) - date(1970, 1, 1)).days * DAY


@dataclass(frozen=True, slots=True)
class Calendar:
    """Consecutive hours, with the hour of the week of each."""

    first_hour: int
    """Since the epoch."""
    week: Ints
    """(h,) hour of the week of each, 0 for the one that begins on Monday at 0:00."""

    @classmethod
    def of(cls, first_hour: int, count: int, zone: tzinfo) -> Self:
        """Build a calendar of `count` hours in a time zone.

        first_hour: hours since the epoch. An hour that clocks show twice counts twice.
        """
        local = (
            datetime.fromtimestamp(3600 * hour, UTC).astimezone(zone)
            for hour in range(first_hour, first_hour + count)
        )
        week = np.fromiter((DAY * t.weekday() + t.hour for t in local), np.int64, count)
        return cls(first_hour, week)


@dataclass(frozen=True, slots=True)
class LoadHistory:
    """One quantity of n partitions over the h hours of a calendar.

    (n, h) each, NaN where unknown, of the statistics of `HOURS`.
    """

    mean: Floats
    p95: Floats
    largest: Floats
    samples: Floats
    """0 where unknown."""
    week: Ints
    """(h,) as of the calendar."""

    def until(self, end: int) -> "LoadHistory":
        """The history of the first `end` hours alone."""
        return LoadHistory(**{f.name: getattr(self, f.name)[..., :end] for f in fields(self)})


def slots(past: LoadHistory) -> dict[str, Floats]:
    """Compute `SLOTS` partition by partition: (n, 168) each, NaN where an hour is unknown."""
    mean = usual(past, past.mean)
    return {
        "mean": mean,
        "p95": usual(past, past.p95),
        "max": _by_week(past, past.largest, np.fmax, np.nan),
        "samples": _by_week(past, past.samples),
        "confidence": _confidence(past, mean),
    }


def usual(past: LoadHistory, values: Floats) -> Floats:
    """Return the (n, 168) mean by hour of the week of (n, h) values, weighted by samples.

    NaN for hours of the week without samples.
    """
    sums = _by_week(past, np.nan_to_num(values) * past.samples)
    return quotient(sums, _by_week(past, past.samples))


def load_histories(hours: pa.Table, calendar: Calendar) -> tuple[pa.Table, dict[str, LoadHistory]]:
    """Arrange a table of the schema `HOURS` as one `LoadHistory` for each of `RATES`.

    Beside them topic and partition of their n rows. Hours outside the calendar do not count.
    """
    ids, row = distinct_partitions(hours)
    column = hours["hour"].to_numpy() - calendar.first_hour
    inside = (column >= 0) & (column < len(calendar.week))
    at = row[inside], column[inside]

    def matrix(name: str, empty: float) -> Floats:
        found = np.full((len(ids), len(calendar.week)), empty)
        found[at] = hours[name].to_numpy()[inside]
        return found

    return ids, {
        name: LoadHistory(
            mean=matrix(f"{name}_mean", np.nan),
            p95=matrix(f"{name}_p95", np.nan),
            largest=matrix(f"{name}_max", np.nan),
            samples=np.nan_to_num(matrix(f"{name}_samples", 0.0)),
            week=calendar.week,
        )
        for name in RATES
    }


def _by_week(
    past: LoadHistory, values: Floats, combine: Any = np.add, empty: float = 0.0
) -> Floats:
    """(n, 168) values of (n, h) combined by hour of the week.

    Row by row and not by a product of matrices, whose last bits depend on its size.
    """
    order = np.argsort(past.week, kind="stable")
    present, first = np.unique(past.week[order], return_index=True)
    found = np.full((len(values), WEEK), empty)
    if len(present):
        found[:, present] = combine.reduceat(values[:, order], first, axis=1)
    return found


def _confidence(past: LoadHistory, mean: Floats) -> Floats:
    known = past.samples > 0
    weeks = _by_week(past, known.astype(np.float64))
    off = np.where(known, past.mean - mean[:, past.week], 0.0)
    spread = np.sqrt(np.nan_to_num(quotient(_by_week(past, off * off), weeks)))
    spread = np.nan_to_num(quotient(spread, mean))
    found: Floats = weeks / (weeks + 1) / (1 + spread)
    return found

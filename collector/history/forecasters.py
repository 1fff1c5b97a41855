"""Forecast the loads of coming hours, and backtest such forecasts.

Spark's Python workers run this, so nothing but numpy is imported here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from collector.history.slots import DAY, WEEK, Floats, Ints, LoadHistory, usual
from collector.spark.vectors import quotient

LEAST_HOURS: Final = 48
"""Hours of a partition that must be known for a forecast of it."""
HELD_BACK_DAYS: Final = 3
"""The newest so many days are forecast from what was before them, to see the error."""
MOST_TREND: Final = 2.0
"""A day or week that was further off says little of the next one."""


METHOD: Final = "seasonal with trend"
"""The name of `seasonal_trend`, as plans and `status` show it."""

Forecaster = Callable[[LoadHistory, Ints], Floats]
"""Past hours, and (a,) the hour of the week of each of the hours that follow, to (n, a)
mean loads of these; NaN where no forecast is possible."""


def as_now(past: LoadHistory, week: Ints) -> Floats:
    """Repeat the newest known hour: what a plan for now alone takes for granted.

    past: n partitions. week: (a,) hours of the week. Returns (n, a) means, NaN for partitions
    without a known hour.
    """
    known = past.samples > 0
    if not known.shape[1]:
        return np.full((len(known), len(week)), np.nan)
    newest = known.shape[1] - 1 - np.argmax(known[:, ::-1], axis=1)
    value = past.mean[np.arange(len(known)), newest]
    return np.repeat(value[:, None], len(week), axis=1)


def seasonal_trend(past: LoadHistory, week: Ints) -> Floats:
    """Forecast the usual load of each hour of the week, grown until then.

    Seasonal naive with trend: growth is that of the newest week over the one before it.
    It is scaled by what the last day carried against what is usual at its hours. An hour
    of the week that was never seen is taken as that hour of other days. Growth and scale
    are clipped to 1 / `MOST_TREND` and `MOST_TREND`. week: (a,) hours of the week that follow
    the history at once. Returns (n, a) means; NaN for hours of the day never seen.
    """
    growth = _growth(past)[:, None]
    age = np.arange(past.mean.shape[1])[::-1] / WEEK
    grown = past.mean * growth**age
    weekly = usual(past, grown)
    weekly = np.where(np.isnan(weekly), _daily(past, grown), weekly)
    scale = _ratio(grown[:, -DAY:], weekly[:, past.week[-DAY:]])[:, None]
    coming = (1 + np.arange(len(week))) / WEEK
    return weekly[:, week] * scale * growth**coming


def _growth(past: LoadHistory) -> Floats:
    """(n,) of a week; 1 where there are no two weeks."""
    newest, before = past.mean[:, -WEEK:], past.mean[:, -2 * WEEK : -WEEK]
    return _ratio(newest[:, newest.shape[1] - before.shape[1] :], before)


def _ratio(above: Floats, below: Floats) -> Floats:
    """(n,) of the sums over hours that are known of both, within bounds; else 1."""
    known = ~np.isnan(above) & ~np.isnan(below)
    sums = (np.where(known, m, 0.0).sum(axis=1) for m in (above, below))
    ratio = quotient(*sums)
    ratio = np.where(np.isnan(ratio), 1.0, ratio)
    return np.clip(ratio, 1 / MOST_TREND, MOST_TREND)


def _daily(past: LoadHistory, values: Floats) -> Floats:
    """(n, 168) what is usual at the hour of the day, of (n, h) values."""
    by_day = replace(past, week=past.week % DAY)
    return np.tile(usual(by_day, values)[:, :DAY], WEEK // DAY)


@dataclass(frozen=True, slots=True)
class ForecastError:
    """How far forecasts of held-back days were off, (n,) sums over their hours."""

    missed: Floats
    """Of the amounts that a forecast was too high or too low."""
    carried: Floats
    """Of the loads that came."""


def held_back(hours: int) -> int:
    """Return how many of the newest days a backtest forecasts; 0 for a short history.

    hours: length of the history.
    """
    return max(0, min(HELD_BACK_DAYS, (hours - LEAST_HOURS) // DAY))


def enough(past: LoadHistory) -> NDArray[np.bool_]:
    """Return (n,) True for partitions with at least `LEAST_HOURS` known hours."""
    found: NDArray[np.bool_] = (past.samples > 0).sum(axis=1) >= LEAST_HOURS
    return found


def backtest(forecast: Forecaster, past: LoadHistory) -> ForecastError:
    """Backtest: forecast each of the newest days from the hours before it.

    The newest `held_back` days. Hours without a forecast or a known load, and partitions
    without `enough` hours before the day, add 0 to both sums.
    """
    missed, carried = np.zeros(len(past.mean)), np.zeros(len(past.mean))
    hours = past.mean.shape[1]
    for day in range(1, held_back(hours) + 1):
        cut = past.until(hours - DAY * day)
        came = slice(hours - DAY * day, hours - DAY * (day - 1))
        found = forecast(cut, past.week[came])
        actual = past.mean[:, came]
        counts = enough(cut)[:, None] & ~np.isnan(found) & ~np.isnan(actual)
        missed += np.where(counts, np.abs(found - actual), 0.0).sum(axis=1)
        carried += np.where(counts, actual, 0.0).sum(axis=1)
    return ForecastError(missed, carried)

"""Change points in short series of rates: from which sample on a load is what it is now.

Spark's driver and the probe both run this on the samples of the newest window, so that a
recorded state gives the same loads again. Nothing but numpy is imported here.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEAST_POINTS: Final = 2
"""Rates that a new level needs; a single one is an outlier."""
MATERIAL: Final = 0.15
"""Least change of a level, as a share of the larger one: less moves no broker far."""
PENALTY: Final = 4.0
"""Cost of each level, in noise variances times the logarithm of the number of rates."""
NOISE_FLOOR: Final = 0.03
"""Least noise assumed, as a share of the mean rate: offsets are not read at one instant."""
PARTIAL: Final = 0.2
"""Least share of the change that shows in an interval within which it begins."""
EARLIER_POINTS: Final = 4
"""Rates before that interval that tell the earlier level."""
_MAD: Final = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


def last_levels(rates: Floats) -> Ints:
    """Return where the newest level of each series begins.

    rates: (series, points) at equal intervals, oldest first. Returns (series,) columns;
    0 where the whole series is at one level, or has too few points to tell.

    The series is divided into levels by optimal partitioning: the least sum of squared
    residuals plus a penalty per level, the noise estimated from differences of neighbours.
    A single outlier is not a level, and neighbouring levels that differ by less than
    `MATERIAL` are one.
    """
    rates = np.asarray(rates, np.float64)
    series, points = rates.shape
    starts = np.zeros(series, np.int64)
    if points < 2 * LEAST_POINTS:
        return starts
    noise = noise_of(rates)
    smooth = _without_outliers(rates)
    previous = _partition(smooth, PENALTY * np.log(points) * noise**2)
    for row in range(series):
        starts[row] = _last_material(smooth[row], previous[row])
    return starts


def noise_of(rates: Floats) -> Floats:
    """(series,) robust standard deviation of (series, points) rates around their levels."""
    steps = np.abs(np.diff(rates, axis=1))
    spread = _MAD * np.median(steps, axis=1) / np.sqrt(2.0)
    floor = NOISE_FLOOR * np.abs(rates).mean(axis=1)
    # A series without a single rate has no levels to tell apart.
    noise: Floats = np.maximum(np.maximum(spread, floor), np.finfo(np.float64).tiny)
    return noise


def agrees(rates: Floats, start: Ints) -> Bools:
    """(series,) whether the newest rate is nearer to its level than to the one before.

    Rates as of `last_levels`, and its result. In a series at one level the newest rate
    agrees while it differs by less than half of that level.
    """
    found = np.ones(len(rates), np.bool_)
    for row, begin in enumerate(start.tolist()):
        of_level = rates[row, begin:-1]
        if not len(of_level):
            continue
        level, newest = float(np.median(of_level)), float(rates[row, -1])
        before = rates[row, max(0, begin - LEAST_POINTS) : begin]
        gap = abs(level - float(before.mean())) if begin else level
        found[row] = abs(newest - level) <= 0.5 * gap
    return found


def began_before(rates: Floats, start: int) -> bool:
    """Whether a level that begins at `start` had begun within the interval before.

    rates: (points,). That rate then lies between both levels: by `PARTIAL` of their gap and by
    three standard deviations of the noise from the earlier one.
    """
    before = rates[max(0, start - 1 - EARLIER_POINTS) : start - 1]
    if len(before) < LEAST_POINTS:
        return False
    earlier, level = float(np.median(before)), float(np.median(rates[start:]))
    gap, rise = level - earlier, float(rates[start - 1]) - earlier
    noise = max(float(before.std()), NOISE_FLOOR * abs(earlier))
    least = max(PARTIAL * abs(gap), 3.0 * noise)
    return rise * gap > 0.0 and least < abs(rise) <= abs(gap)


def relative_error(rates: Floats, start: int) -> float:
    """Standard error of a level's mean, as a share of it; inf where it cannot be told.

    rates: (points,). start: where the level begins.
    """
    level = rates[start:]
    if len(level) < LEAST_POINTS + 1:
        return float("inf")
    mean = float(level.mean())
    if mean <= 0.0:
        return 0.0
    error = float(level.std(ddof=1)) / float(np.sqrt(len(level))) / mean
    # Few points tell little of their own spread; Student's t, 0.975, over the normal's.
    return error * (1.0 + 2.4 / (len(level) - 1))


def _without_outliers(rates: Floats) -> Floats:
    """Medians of three neighbours; the ends take the median of the three that are there."""
    stacked = np.stack([rates[:, :-2], rates[:, 1:-1], rates[:, 2:]])
    middle = np.median(stacked, axis=0)
    return np.concatenate([middle[:, :1], middle, middle[:, -1:]], axis=1)


def _partition(rates: Floats, penalty: Floats) -> Ints:
    """(series, points + 1) start of the level that ends before each point, by least cost."""
    series, points = rates.shape
    zero = np.zeros((series, 1))
    total = np.concatenate([zero, np.cumsum(rates, axis=1)], axis=1)
    squares = np.concatenate([zero, np.cumsum(rates**2, axis=1)], axis=1)
    best = np.full((series, points + 1), np.inf)
    best[:, 0] = 0.0
    previous = np.zeros((series, points + 1), np.int64)
    rows = np.arange(series)
    for end in range(LEAST_POINTS, points + 1):
        begins = np.arange(0, end - LEAST_POINTS + 1)
        length = end - begins
        summed = total[:, [end]] - total[:, begins]
        residual = squares[:, [end]] - squares[:, begins] - summed**2 / length
        cost = best[:, begins] + np.maximum(residual, 0.0) + penalty[:, None]
        at = np.argmin(cost, axis=1)
        best[:, end] = cost[rows, at]
        previous[:, end] = begins[at]
    return previous


def _last_material(rates: Floats, previous: Ints) -> int:
    """Start of the newest level that differs materially from the one before it."""
    bounds = [len(rates)]
    while bounds[-1] > 0:
        bounds.append(int(previous[bounds[-1]]))
    for at in range(1, len(bounds) - 1):
        newest = rates[bounds[at] :].mean()
        before = rates[bounds[at + 1] : bounds[at]].mean()
        if abs(newest - before) > MATERIAL * max(abs(newest), abs(before)):
            return bounds[at]
    return 0

"""Loads of a synthetic cluster over time.

The rate of a topic is its mean rate, multiplied by these factors:

- day: a cosine; most topics peak in the afternoon, a fifth (batches) at night
- week: a factor per topic on Saturdays and Sundays
- growth: exponential, at a rate per topic; 1 at the end of the history
- bursts: occasionally 2 to 6, for half an hour to three hours

The rate of a partition varies around that of its topic. Days and weeks are in UTC.
Factors depend only on the seed and the time. They have six decimals, since the last
bit of a cosine differs between processors.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
_MONDAY_MS: Final = 4 * DAY_MS
"""The first Monday after the epoch, which was a Thursday."""

BATCHES: Final = 0.2
"""Share of the topics that peak at night."""
DAYTIME: Final = (15.0, 2.0)
NIGHT: Final = (3.0, 1.0)
"""Mean and standard deviation of the hour of the peak."""
DEPTH: Final = (0.3, 0.8)
"""Range of the amplitude of the day, as a share of the mean."""
WEEKEND: Final = (0.3, 1.0)
"""Range of the rate on Saturdays and Sundays, as a multiple of other days."""
BURST_TIMES: Final = (2.0, 6.0)
BURST_HOURS: Final = (0.5, 3.0)
_DECIMALS: Final = 6
_BURSTS, _NOISE = 1, 2
"""Random streams beside that of the cluster itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How much loads change over time."""

    growth: float = 0.02
    """Mean growth of a topic per week, as a share."""
    bursts: float = 0.5
    """Mean number of bursts of a topic per week."""
    noise: float = 0.05
    """Standard deviation of the logarithm of a partition's rate around its topic's."""


class LoadCurves:
    """Factors of rates and sizes over time; deterministic for a given seed."""

    def __init__(self, topic: Ints, rhythm: Rhythm, *, seed: int, end_ms: int) -> None:
        """Draw the parameters of each topic.

        topic: (n,) topic of each partition; end_ms: end of the history, ms since the epoch.
        """
        rng = np.random.default_rng([seed, 0])
        topics = int(topic[-1]) + 1
        by_night = rng.random(topics) < BATCHES
        self._topic, self._topics = topic, topics
        self._rhythm, self._seed, self._end_ms = rhythm, seed, end_ms
        self._peak_h = np.where(by_night, rng.normal(*NIGHT, topics), rng.normal(*DAYTIME, topics))
        self._depth = rng.uniform(*DEPTH, topics)
        self._weekend = rng.uniform(*WEEKEND, topics)
        self._growth = rng.normal(rhythm.growth, abs(rhythm.growth) / 2, topics)

    def rates(self, time_ms: int) -> Floats:
        """(n,) rate of each partition at a time, as a multiple of its mean."""
        of_topic = self._cycles(time_ms) * self._grown(time_ms) * self._burst(time_ms)
        noise = self._rng(_NOISE, time_ms).standard_normal(len(self._topic))
        factors = of_topic[self._topic] * np.exp(self._rhythm.noise * noise)
        return np.round(factors, _DECIMALS)

    def sizes(self, time_ms: int) -> Floats:
        """(n,) size of each partition at a time, as a multiple of that at the end.

        Only growth counts: over days of retention the other factors average out.
        """
        return np.round(self._grown(time_ms), _DECIMALS)[self._topic]

    def _cycles(self, time_ms: int) -> Floats:
        """(topics,) factor of the hour and the day of the week; its mean is 1."""
        hour = time_ms % DAY_MS / HOUR_MS
        day = 1 + self._depth * np.cos(2 * np.pi * (hour - self._peak_h) / 24)
        is_weekend = (time_ms - _MONDAY_MS) % WEEK_MS >= 5 * DAY_MS
        week = 7 / (5 + 2 * self._weekend)
        cycles: Floats = day * week * (self._weekend if is_weekend else 1.0)
        return cycles

    def _grown(self, time_ms: int) -> Floats:
        """(topics,) factor of growth; 1 at the end."""
        grown: Floats = np.exp(self._growth * (time_ms - self._end_ms) / WEEK_MS)
        return grown

    def _burst(self, time_ms: int) -> Floats:
        """(topics,) factor of bursts that began on this day or the day before."""
        today = time_ms // DAY_MS
        burst = np.ones(self._topics)
        for day in (today - 1, today):
            within, times = self._bursts_of(day, (time_ms - day * DAY_MS) / HOUR_MS)
            burst = np.where(within, times, burst)
        return burst

    def _bursts_of(self, day: int, hour: float) -> tuple[Bools, Floats]:
        """(topics,) whether a burst of that day is active at `hour`, and its factor."""
        rng = self._rng(_BURSTS, day)
        has_one = rng.random(self._topics) < self._rhythm.bursts / 7
        begin = rng.uniform(0, 24, self._topics)
        length = rng.uniform(*BURST_HOURS, self._topics)
        times = rng.uniform(*BURST_TIMES, self._topics)
        return has_one & (begin <= hour) & (hour < begin + length), times

    def _rng(self, stream: int, moment: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, stream, moment])

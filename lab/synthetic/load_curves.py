"""How the load of a synthetic cluster goes up and down with time.

A topic's rate is its mean rate, times what each of these says:

- day: a cosine; most topics peak in the afternoon, a fifth (batches) by night
- week: a factor of its own on Saturdays and Sundays
- growth: exponential, at a rate of its own; 1 at the end of the history
- bursts: now and then 2 to 6 times as much, for half an hour to three hours

and a partition's rate varies beside its topic's. Days and weeks are in UTC. What
happens at a time depends on the seed and that time alone, not on when one looks.
Factors have six decimals, so that the last bit of a cosine, which differs between
processors, does not show.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
_MONDAY_MS: Final = 4 * DAY_MS
"""The epoch's first Monday; it began on a Thursday."""

BATCHES: Final = 0.2
"""Share of the topics that peak by night."""
DAYTIME: Final = (15.0, 2.0)
NIGHT: Final = (3.0, 1.0)
"""Mean and deviation of the hour of the peak."""
DEPTH: Final = (0.3, 0.8)
"""Range of the amplitude of the day, against its mean."""
WEEKEND: Final = (0.3, 1.0)
"""Range of the rate on Saturdays and Sundays, against other days."""
BURST_TIMES: Final = (2.0, 6.0)
BURST_HOURS: Final = (0.5, 3.0)
_DECIMALS: Final = 6
_BURSTS, _NOISE = 1, 2
"""Random streams beside that of the cluster itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How much loads change."""

    growth: float = 0.02
    """Mean growth of a topic in a week, as a share."""
    bursts: float = 0.5
    """Bursts of a topic in a week."""
    noise: float = 0.05
    """Deviation of a partition's rate from its topic's, as a share."""


class LoadCurves:
    """The factors that rates go by; one row per topic of the cluster."""

    def __init__(self, topic: Ints, rhythm: Rhythm, *, seed: int, end_ms: int) -> None:
        """`topic`: (n,) the topic of each partition."""
        rng = np.random.default_rng([seed, 0])
        topics = int(topic[-1]) + 1
        by_night = rng.random(topics) < BATCHES
        self._topic, self._topics = topic, topics
        self._rhythm, self._seed, self._end_ms = rhythm, seed, end_ms
        self._peak_h = np.where(
            by_night, rng.normal(*NIGHT, topics), rng.normal(*DAYTIME, topics)
        )
        self._depth = rng.uniform(*DEPTH, topics)
        self._weekend = rng.uniform(*WEEKEND, topics)
        self._growth = rng.normal(rhythm.growth, abs(rhythm.growth) / 2, topics)

    def rates(self, time_ms: int) -> Floats:
        """(n,) what a partition carries at this time, against its mean."""
        of_topic = self._cycles(time_ms) * self._grown(time_ms) * self._burst(time_ms)
        noise = self._rng(_NOISE, time_ms).standard_normal(len(self._topic))
        factors = of_topic[self._topic] * np.exp(self._rhythm.noise * noise)
        return np.round(factors, _DECIMALS)

    def sizes(self, time_ms: int) -> Floats:
        """(n,) what a partition holds at this time, against the end.

        It follows growth alone: what is kept for days levels the rest out.
        """
        return np.round(self._grown(time_ms), _DECIMALS)[self._topic]

    def _cycles(self, time_ms: int) -> Floats:
        """(topics,) by the hour and the day of the week; 1 in the mean of a week."""
        hour = time_ms % DAY_MS / HOUR_MS
        day = 1 + self._depth * np.cos(2 * np.pi * (hour - self._peak_h) / 24)
        is_weekend = (time_ms - _MONDAY_MS) % WEEK_MS >= 5 * DAY_MS
        week = 7 / (5 + 2 * self._weekend)
        cycles: Floats = day * week * (self._weekend if is_weekend else 1.0)
        return cycles

    def _grown(self, time_ms: int) -> Floats:
        """(topics,) against the end."""
        grown: Floats = np.exp(self._growth * (time_ms - self._end_ms) / WEEK_MS)
        return grown

    def _burst(self, time_ms: int) -> Floats:
        """(topics,) of bursts of this day, and of the day before that still last."""
        today = time_ms // DAY_MS
        burst = np.ones(self._topics)
        for day in (today - 1, today):
            within, times = self._bursts_of(day, (time_ms - day * DAY_MS) / HOUR_MS)
            burst = np.where(within, times, burst)
        return burst

    def _bursts_of(self, day: int, hour: float) -> tuple[Bools, Floats]:
        """(topics,) whether a burst that began on that day is on, and how strong."""
        rng = self._rng(_BURSTS, day)
        has_one = rng.random(self._topics) < self._rhythm.bursts / 7
        begin = rng.uniform(0, 24, self._topics)
        length = rng.uniform(*BURST_HOURS, self._topics)
        times = rng.uniform(*BURST_TIMES, self._topics)
        return has_one & (begin <= hour) & (hour < begin + length), times

    def _rng(self, stream: int, moment: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, stream, moment])

"""One source's newest figures of partitions, of topics on brokers, and of brokers."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from collector.reports.matching import NONE, Bools, Floats, Ints, LedPartitions, MatchedReports

_LONG_AGO: Final = np.iinfo(np.int64).min
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ReportedFigures:
    """One figure of each of n partitions, topics or brokers."""

    values: Floats
    """(n,) NaN where there is no report."""
    times: Ints
    """(n,) of the report behind it; anything where there is none."""
    measured: Bools
    """(n,) False where it is estimated."""

    def of(self, at: Ints) -> "ReportedFigures":
        """Select the figures at (m,) positions; NaN where the position is -1."""
        return ReportedFigures(
            np.append(self.values, np.nan)[at],
            np.append(self.times, _LONG_AGO)[at],
            np.append(self.measured, False)[at],
        )


def of_partitions(led: LedPartitions, matched: MatchedReports, figure: str) -> ReportedFigures:
    """Return (n,) the latest value of a figure that each partition's leader reports."""
    rows = len(led.partition)
    return _newest(matched, matched.row, rows, matched.figures[figure])


def rates_of_partitions(
    led: LedPartitions, matched: MatchedReports, figure: str
) -> ReportedFigures:
    """Return (n,) the newest rate of each partition, unless it is the leader's first.

    A broker that opens a partition reports 0 before its meter has run for a while.
    """
    about = matched.row >= 0
    first = np.full(len(led.partition), _NEVER)
    np.minimum.at(first, matched.row[about], matched.time_ms[about])
    later = about & (matched.time_ms > first[matched.row])
    rows = np.where(later, matched.row, NONE)
    return _newest(matched, rows, len(led.partition), matched.figures[figure])


def of_brokers(led: LedPartitions, matched: MatchedReports, figure: str) -> ReportedFigures:
    """Return (brokers,) the latest value of a figure of each whole broker."""
    return _newest(matched, matched.broker, len(led.brokers), matched.figures[figure])


def of_topics(led: LedPartitions, matched: MatchedReports, figure: str) -> ReportedFigures:
    """Return (pairs,) the newest figure of each topic on each of its brokers.

    Kafka has no meter for a topic that has no traffic: where a broker tells the size
    of its log, has reported since, and tells rates of other topics, it is 0.
    """
    pairs = len(matched.pair_broker)
    found = _newest(matched, matched.pair, pairs, matched.figures[figure])
    sized = (matched.row >= 0) & ~np.isnan(matched.figures["size_bytes"])
    since = np.full(pairs, _NEVER)
    of_topic = matched.pair_of[matched.row[sized]]
    np.minimum.at(since, of_topic[of_topic >= 0], matched.time_ms[sized][of_topic >= 0])
    rated = (matched.pair >= 0) & ~np.isnan(matched.figures[figure])
    last = np.full(len(led.brokers), _LONG_AGO)
    np.maximum.at(last, matched.speaker[rated], matched.time_ms[rated])
    last = last[matched.pair_broker]
    quiet = np.isnan(found.values) & (since < last)
    return ReportedFigures(
        np.where(quiet, 0.0, found.values),
        np.where(quiet, last, found.times),
        quiet | found.measured,
    )


def split(
    led: LedPartitions, matched: MatchedReports, figure: str, weights: Floats
) -> ReportedFigures:
    """Split (n,) a topic's rate on a broker among the partitions it leads there.

    By weight where all have one, else evenly. Measured is only what needs no split:
    the rate of a partition alone, and 0.
    """
    rates = of_topics(led, matched, figure)
    of, pairs = matched.pair_of, len(matched.pair_broker)
    about = of >= 0
    alone = np.append(np.bincount(of[about], minlength=pairs) == 1, False)[of]
    rates = rates.of(of)
    values = rates.values * shares(of, pairs, weights)
    return ReportedFigures(values, rates.times, rates.measured & (alone | (rates.values == 0)))


def weighed(of: Ints, groups: int, weights: Floats) -> Bools:
    """Return (n,) True in groups whose members all have a weight, not all of them 0."""
    about = of >= 0
    lacking = np.bincount(of[about], np.isnan(weights[about]), groups)
    sums = np.bincount(of[about], np.nan_to_num(weights[about]), groups)
    good = np.append((lacking == 0) & (sums > 0), False)
    found: Bools = good[of]
    return found


def is_lone(of: Ints, groups: int, kinds: Ints) -> Bools:
    """Return (n,) True for members of groups of a single kind.

    of, kinds: (n,) group of each, -1 for none, and its kind.
    """
    about = of >= 0
    least, most = np.full(groups + 1, _NEVER), np.full(groups + 1, NONE)
    np.minimum.at(least, of[about], kinds[about])
    np.maximum.at(most, of[about], kinds[about])
    found: Bools = (least == most)[of]
    return found


def shares(of: Ints, groups: int, weights: Floats) -> Floats:
    """Return (n,) each member's share of its group, by weight or evenly; else NaN.

    of: (n,) group of each, -1 for none.
    """
    weight = np.where(weighed(of, groups, weights), weights, 1.0)
    about = of >= 0
    sums = np.append(np.bincount(of[about], weight[about], groups), np.nan)
    found: Floats = weight / sums[of]
    return found


def _newest(matched: MatchedReports, of: Ints, things: int, values: Floats) -> ReportedFigures:
    """(things,) the newest known of each; of equally new ones the largest."""
    known = np.flatnonzero((of >= 0) & ~np.isnan(values))
    about, time_ms, values = of[known], matched.time_ms[known], values[known]
    times = np.full(things, _LONG_AGO)
    np.maximum.at(times, about, time_ms)
    newest = time_ms == times[about]
    found = np.full(things, np.nan)
    np.fmax.at(found, about[newest], values[newest])
    return ReportedFigures(found, times, ~np.isnan(found))

"""Which partitions a source's reports are about, and its newest figures of them.

Names come with underscores for dots from Cruise Control (its pull request 443) and
from AutoMQ before 1.3 (2005). A topic that is not reported by its own name is looked
for by the other one; topics that then share a name share what is reported of it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.reports.report_columns import FIGURES

NONE: Final = -1
_FORMER, _UNKNOWN, _SHARED = "not the leader", "unknown partition", "shared name"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_LONG_AGO: Final = np.iinfo(np.int64).min
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class LedPartitions:
    """Partitions as the probe saw them, one row each; at least one."""

    names: Sequence[str]
    """Of topics, by their code."""
    topic: Ints
    """(n,) codes."""
    partition: Ints
    """(n,)"""
    brokers: Ints
    """Ids of those that lead any, in order."""
    broker: Ints
    """(n,) position of the leader in `brokers`."""

    @classmethod
    def of(cls, vectors: pa.Table) -> Self:
        """Build from load vectors, schema `VECTORS`."""
        names, topic = _encoded(vectors["topic"])
        leader = vectors["broker"].to_numpy().astype(np.int64)
        brokers, broker = np.unique(leader, return_inverse=True)
        partition = vectors["partition"].to_numpy().astype(np.int64)
        return cls(names, topic, partition, brokers, broker)

    def total(self, values: Floats) -> Floats:
        """(brokers,) sum of (n,) values over the partitions each broker leads.

        NaN counts as 0.
        """
        sums = np.bincount(self.broker, np.nan_to_num(values), len(self.brokers))
        return sums.astype(np.float64)


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


@dataclass(frozen=True, slots=True)
class MatchedReports:
    """One source's reports, beside the partitions that they are about."""

    led: LedPartitions
    time_ms: Ints
    """(m,)"""
    figures: dict[str, Floats]
    """(m,) each."""
    row: Ints
    """(m,) the partition's row, -1 where it is not of one that the broker leads."""
    pair: Ints
    """(m,) the topic on its broker, -1 for a report of something else."""
    broker: Ints
    """(m,) position in `LedPartitions.brokers`, -1 for a report of no broker."""
    speaker: Ints
    """(m,) position of the reporting broker, -1 for one that leads nothing."""
    pair_of: Ints
    """(n,) the topic on its broker that each partition belongs to, -1 for none."""
    pair_broker: Ints
    """(pairs,) position of the broker."""
    passed_over: Counter[str]
    """Reports of no use, by reason: not the leader, unknown partition, shared name."""

    @classmethod
    def of(cls, led: LedPartitions, reports: pa.Table) -> Self:
        """Match the reports of one source (schema `REPORTS`) to partitions."""
        names, topic = _encoded(reports["topic"])
        group = _groups(led.names, names)[led.topic]
        number = reports["partition"].to_numpy().astype(np.int64)
        speaker = find(led.brokers, reports["broker"].to_numpy())
        pairs, pair_of = _pairs(group, led)
        of_topic = (topic >= 0) & (number < 0)
        reported = topic * len(led.brokers) + speaker
        pair = find(pairs, np.where(of_topic & (speaker >= 0), reported, NONE))
        row, reasons = _rows(led, group, topic, number, speaker)
        lost = of_topic & (pair < 0)
        reasons[lost] = np.where(np.isin(topic[lost], group), _FORMER, _UNKNOWN)
        figures = {name: reports[name].to_numpy() for name in FIGURES}
        return cls(
            led=led,
            time_ms=reports["time_ms"].to_numpy(),
            figures=figures,
            row=row,
            pair=pair,
            broker=np.where(topic < 0, speaker, NONE),
            speaker=speaker,
            pair_of=pair_of,
            pair_broker=pairs % len(led.brokers),
            passed_over=_counts(reasons, figures),
        )

    def of_partitions(self, figure: str) -> ReportedFigures:
        """Return (n,) the latest value of a figure that each partition's leader reports.

        NaN without one; of equally new values the largest. Units as in `REPORTS`.
        """
        return self._newest(figure, self.row, len(self.led.partition))

    def rates_of_partitions(self, figure: str) -> ReportedFigures:
        """Return (n,) the newest rate of each partition, unless it is the leader's first.

        A broker that opens a partition reports 0 before its meter has run for a while.
        """
        about = self.row >= 0
        first = np.full(len(self.led.partition), _NEVER)
        np.minimum.at(first, self.row[about], self.time_ms[about])
        later = about & (self.time_ms > first[self.row])
        return self._newest(figure, np.where(later, self.row, NONE), len(self.led.partition))

    def of_brokers(self, figure: str) -> ReportedFigures:
        """Return (brokers,) the latest value of a figure of each whole broker.

        In the order of `LedPartitions.brokers`; NaN without one, of equally new the largest.
        """
        return self._newest(figure, self.broker, len(self.led.brokers))

    def of_topics(self, figure: str) -> ReportedFigures:
        """Return (pairs,) the newest figure of each topic on each of its brokers.

        Kafka has no meter for a topic that has no traffic: where a broker reports the size
        of its log, has reported since, and reports rates of other topics, it is 0.
        """
        pairs = len(self.pair_broker)
        found = self._newest(figure, self.pair, pairs)
        sized = (self.row >= 0) & ~np.isnan(self.figures["size_bytes"])
        since = np.full(pairs, _NEVER)
        of_topic = self.pair_of[self.row[sized]]
        np.minimum.at(since, of_topic[of_topic >= 0], self.time_ms[sized][of_topic >= 0])
        rated = (self.pair >= 0) & ~np.isnan(self.figures[figure])
        last = np.full(len(self.led.brokers), _LONG_AGO)
        np.maximum.at(last, self.speaker[rated], self.time_ms[rated])
        last = last[self.pair_broker]
        quiet = np.isnan(found.values) & (since < last)
        return ReportedFigures(
            np.where(quiet, 0.0, found.values),
            np.where(quiet, last, found.times),
            quiet | found.measured,
        )

    def split(self, figure: str, weights: Floats) -> ReportedFigures:
        """Split (n,) a topic's rate on a broker among the partitions it leads there.

        weights: (n,) NaN where unknown. By weight where all of a topic on a broker have one
        and their sum is above 0, else evenly; NaN where the broker reports no rate of the
        topic. Measured is only what needs no split: the rate of a partition alone, and 0.
        """
        of, pairs = self.pair_of, len(self.pair_broker)
        alone = np.append(np.bincount(of[of >= 0], minlength=pairs) == 1, False)[of]
        rates = self.of_topics(figure).of(of)
        values = rates.values * shares(of, pairs, weights)
        return ReportedFigures(values, rates.times, rates.measured & (alone | (rates.values == 0)))

    def _newest(self, figure: str, of: Ints, things: int) -> ReportedFigures:
        """(things,) the newest known of each; of equally new ones the largest."""
        values = self.figures[figure]
        known = np.flatnonzero((of >= 0) & ~np.isnan(values))
        about, time_ms, values = of[known], self.time_ms[known], values[known]
        times = np.full(things, _LONG_AGO)
        np.maximum.at(times, about, time_ms)
        newest = time_ms == times[about]
        found = np.full(things, np.nan)
        np.fmax.at(found, about[newest], values[newest])
        return ReportedFigures(found, times, ~np.isnan(found))


def find(known: Ints, values: Ints) -> Ints:
    """(m,) position of each value in `known`, which is sorted and distinct; else -1."""
    if not len(known):
        return np.full(len(values), NONE, np.int64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, NONE)


def weighed(of: Ints, groups: int, weights: Floats) -> Bools:
    """Return (n,) True in groups whose members all have a weight, not all of them 0.

    of: (n,) group of each, 0 to groups - 1, or -1 for none: False. weights: (n,) at least 0,
    NaN where unknown.
    """
    about = of >= 0
    lacking = np.bincount(of[about], np.isnan(weights[about]), groups)
    sums = np.bincount(of[about], np.nan_to_num(weights[about]), groups)
    good = np.append((lacking == 0) & (sums > 0), False)
    return good[of]


def is_lone(of: Ints, groups: int, kinds: Ints) -> Bools:
    """Return (n,) True for members of groups of a single kind.

    of: (n,) group of each, 0 to groups - 1, or -1 for none: False. kinds: (n,) not negative.
    """
    about = of >= 0
    least, most = np.full(groups + 1, _NEVER), np.full(groups + 1, NONE)
    np.minimum.at(least, of[about], kinds[about])
    np.maximum.at(most, of[about], kinds[about])
    found: Bools = (least == most)[of]
    return found


def shares(of: Ints, groups: int, weights: Floats) -> Floats:
    """Return (n,) each member's share of its group, by weight or evenly.

    of: (n,) group of each, 0 to groups - 1, or -1 for none: NaN. weights: (n,) at least 0,
    NaN where unknown. Evenly where a group lacks a weight, or all its weights are 0.
    """
    weight = np.where(weighed(of, groups, weights), weights, 1.0)
    about = of >= 0
    sums = np.append(np.bincount(of[about], weight[about], groups), np.nan)
    found: Floats = weight / sums[of]
    return found


def _encoded(topics: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """Names, and (n,) codes, -1 for null."""
    coded = topics.combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), (coded.indices.fill_null(NONE).to_numpy().astype(np.int64))


def _groups(names: Sequence[str], reported: Sequence[str]) -> Ints:
    """For each topic the code of the name that it is reported by, -1 for none."""
    codes = {name: code for code, name in enumerate(reported)}
    found = [codes.get(n, codes.get(n.replace(".", "_"), NONE)) for n in names]
    return np.array(found, np.int64)


def _pairs(group: Ints, led: LedPartitions) -> tuple[Ints, Ints]:
    """Keys of topics on brokers, sorted; and (n,) which of them each partition has."""
    keys = np.where(group >= 0, group * len(led.brokers) + led.broker, NONE)
    pairs = np.unique(keys[keys >= 0])
    return pairs, find(pairs, keys)


def _rows(
    led: LedPartitions, group: Ints, topic: Ints, number: Ints, speaker: Ints
) -> tuple[Ints, Any]:
    """(m,) rows of the partitions reported, and the reasons where there is none, or "".

    Topics that share a name are distinguished by their leaders, where these differ.
    """
    most = int(led.partition.max(initial=-1)) + 1
    named = (topic >= 0) & (number >= 0) & (number < most)
    place = np.where(named, topic * most + number, NONE)
    own_place = np.where(group >= 0, group * most + led.partition, NONE)
    key = np.where(named & (speaker >= 0), place * len(led.brokers) + speaker, NONE)
    own = np.where(group >= 0, own_place * len(led.brokers) + led.broker, NONE)
    keys, first, count = np.unique(own, return_index=True, return_counts=True)
    at = np.where(key >= 0, find(keys, key), NONE)
    one = (at >= 0) & (count[at] == 1)
    reasons = np.select(
        [(topic < 0) | (number < 0) | one, at >= 0, named & np.isin(place, own_place)],
        ["", _SHARED, _FORMER],
        _UNKNOWN,
    )
    row: Ints = np.where(one, first[at], NONE)
    return row, reasons.astype(object)


def _counts(reasons: Any, figures: dict[str, Floats]) -> Counter[str]:
    """Count the reasons; not of reports of sizes alone, which followers send, too."""
    rated = ~np.isnan(figures["bytes_in"]) | ~np.isnan(figures["bytes_out"])
    return Counter(reason for reason in reasons[rated] if reason)

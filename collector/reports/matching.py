"""Which partitions a source's reports are about.

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
class MatchedReports:
    """One source's reports, beside the partitions that they are about."""

    time_ms: Ints
    """(m,)"""
    figures: dict[str, Floats]
    """(m,) each."""
    row: Ints
    """(m,) the partition's row, -1 where it is not of one that the broker leads."""
    pair: Ints
    """(m,) the topic on its broker, -1 where the report is not of such a one."""
    broker: Ints
    """(m,) position in `LedPartitions.brokers`, -1 for a report of no broker."""
    speaker: Ints
    """(m,) position of who reports, -1 for one that leads nothing."""
    pair_of: Ints
    """(n,) the topic on its broker that each partition belongs to, -1 for none."""
    pair_broker: Ints
    """(pairs,) position of the broker."""
    passed_over: dict[str, int]
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


def find(known: Ints, values: Ints) -> Ints:
    """(m,) position of each value in `known`, which is sorted and distinct; else -1."""
    if not len(known):
        return np.full(len(values), NONE, np.int64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Ints = np.where(known[at] == values, at, NONE)
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


def _counts(reasons: Any, figures: dict[str, Floats]) -> dict[str, int]:
    """How many have a reason; followers, too, tell sizes, and are not to be blamed."""
    rated = ~np.isnan(figures["bytes_in"]) | ~np.isnan(figures["bytes_out"])
    return dict(Counter(reason for reason in reasons[rated] if reason))

"""Figures by broker, topic and partition, gathered one by one into a table."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from collector.reports.report_columns import FIGURES, PROMETHEUS, REPORTS

Place = tuple[int, str | None, int]
"""Broker, topic and partition, as `REPORTS` has them."""
MOST_ID: Final = 2**31 - 1
"""Of a broker, or a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsResult:
    """The result of one poll of metrics."""

    reports: pa.Table
    """Schema `REPORTS`; each broker, topic and partition once."""
    failures: tuple[str, ...]
    """What could not be had, each in a sentence."""


class ReportBuilder:
    """Sums figures by broker, topic and partition into a table of reports."""

    def __init__(self) -> None:
        self._places: defaultdict[Place, dict[str, float]] = defaultdict(dict)
        self._odd: Counter[str] = Counter()

    @property
    def brokers(self) -> set[int]:
        """Ids of the brokers that have any figure."""
        return {broker for broker, _, _ in self._places}

    def add(self, broker: int, labels: Mapping[str, str], figure: str, value: float) -> None:
        """Add one series to the sum of its broker, topic and partition.

        A value that is NaN, infinite or negative, or has invalid labels, is only counted.
        """
        place = place_of(broker, labels)
        if place is None or not (math.isfinite(value) and value >= 0):
            self._odd[figure] += 1
            return
        known = self._places[place]
        known[figure] = known.get(figure, 0.0) + value

    def oddities(self) -> tuple[str, ...]:
        """Return a sentence with the number of rejected values for each figure."""
        return tuple(
            f"{count} values of {figure} were left out: NaN, infinite, negative, or of "
            "no partition."
            for figure, count in sorted(self._odd.items())
        )

    def table(self, time_ms: int) -> pa.Table:
        """Return the sums, schema `REPORTS`, sorted by broker, topic and partition.

        time_ms: the time of every row.
        """
        places = sorted(self._places, key=lambda p: (p[0], p[1] or "", p[2]))
        same = {"source": PROMETHEUS, "time_ms": time_ms, **dict.fromkeys(FIGURES, math.nan)}
        rows = [
            {**same, "broker": p[0], "topic": p[1], "partition": p[2], **self._places[p]}
            for p in places
        ]
        return pa.Table.from_pylist(rows, schema=REPORTS)


def place_of(broker: int, labels: Mapping[str, str]) -> Place | None:
    """Return broker, topic and partition of a series; None for invalid labels.

    The topic is None for a whole broker, the partition -1 for a whole topic.
    """
    topic, partition = labels.get("topic", ""), labels.get("partition", "")
    if not partition:
        return broker, topic or None, -1
    numeric = partition.isascii() and partition.isdigit() and len(partition) <= 10
    if not topic or not numeric or int(partition) > MOST_ID:
        return None
    return broker, topic, int(partition)

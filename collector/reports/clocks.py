"""Errors of brokers' clocks, from when their reports arrive."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.reports.report_columns import AHEAD_MS, FRESH_MS

CONFIRMED: Final = 3
"""As many batches in a row must come equally late before a clock is called slow."""
TOLERANCE_MS: Final = AHEAD_MS
"""Clocks that are off by less than this are left as they are: reports live longer."""

END_MS: Final = 1 << 42
"""In the year 2109: a later time is invalid, and sums of it would overflow."""


class Clocks:
    """Puts reports on the collector's clock.

    A report arrives seconds after its time. One from the future shows at once that its
    broker's clock is fast. A late one may have waited in a topic that was not read for a
    while; only where several batches are equally late is the clock slow.
    """

    def __init__(self) -> None:
        self._clocks: dict[tuple[str, int], _Clock] = {}

    @property
    def ahead_ms(self) -> Mapping[tuple[str, int], int]:
        """By source and broker, of the clocks that are off; below 0 for slow ones."""
        known = {of: clock.ahead_ms() for of, clock in sorted(self._clocks.items())}
        return {of: ahead_ms for of, ahead_ms in known.items() if ahead_ms}

    def corrected(self, reports: pa.Table, arrived_ms: int) -> pa.Table:
        """Return the reports with times by the collector's clock, in milliseconds.

        Reports with an impossible time are left out, so that they do not affect other brokers.

        reports: schema `REPORTS`, all of one batch. arrived_ms: when they arrived, by the
        collector's clock.
        """
        reports = reports.filter((pc.field("time_ms") >= 0) & (pc.field("time_ms") < END_MS))
        time_ms = reports["time_ms"].to_numpy().copy()
        for of, rows in _by_speaker(reports):
            clock = self._clocks.setdefault(of, _Clock())
            clock.see(arrived_ms - _newest(time_ms[rows], FRESH_MS[of[0]]))
            time_ms[rows] -= clock.ahead_ms()
        at = reports.schema.get_field_index("time_ms")
        return reports.set_column(at, reports.schema.field(at), pa.array(time_ms))


@dataclass(slots=True)
class _Clock:
    late_ms: deque[int] = field(default_factory=lambda: deque(maxlen=CONFIRMED))
    """Of the last batches: how long after its time the newest report came."""

    def see(self, late_ms: int) -> None:
        self.late_ms.append(late_ms)

    def ahead_ms(self) -> int:
        """0 while nothing is wrong; else by the batch that arrived soonest."""
        soonest, latest = min(self.late_ms), max(self.late_ms)
        fast = self.late_ms[-1] < -TOLERANCE_MS
        steady = len(self.late_ms) == CONFIRMED and latest - soonest <= TOLERANCE_MS
        slow = soonest > TOLERANCE_MS and steady
        return -soonest if fast or slow else 0


def _by_speaker(reports: pa.Table) -> Iterator[tuple[tuple[str, int], NDArray[np.int64]]]:
    """Each source and broker, and the rows of its reports."""
    source = reports["source"].combine_chunks().dictionary_encode()
    codes = source.indices.to_numpy().astype(np.int64)
    broker = reports["broker"].to_numpy()
    order = np.lexsort((broker, codes))
    changed = np.diff(codes[order]) | np.diff(broker[order])
    for rows in np.split(order, 1 + np.flatnonzero(changed)) if len(order) else ():
        name = source.dictionary[int(codes[rows[0]])].as_py()
        yield (name, int(broker[rows[0]])), rows


def _newest(time_ms: NDArray[np.int64], fresh_ms: int) -> int:
    """The newest time, except for single ones that are far ahead of the others."""
    usual = np.median(time_ms) + fresh_ms
    return int(time_ms[time_ms <= usual].max())

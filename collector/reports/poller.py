"""A thread that looks at metrics now and then, and gives out what they told lately."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from collector.reports.aggregate import MetricsResult
from collector.reports.report_columns import PROMETHEUS, REPORTS
from model.closing import Closing

KEPT_INTERVALS: Final = 3
"""Reports are given out for as many intervals, so that one look that failed, or one
rate that began anew, leaves what was told just before."""
FIRST_S: Final = 5.0
"""Time between looks until all is told that can be."""
_log = logging.getLogger("plimsoll.collector")


class MetricsSource(Protocol):
    """Where reports are read."""

    @property
    def needed(self) -> int:
        """How many looks it takes until all figures are there."""

    @property
    def place(self) -> str:
        """Where that is, in words."""

    def read(self) -> MetricsResult:
        """What is told now; what is not, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollState:
    """How a reporter that is polled is doing."""

    source: str
    """As in `REPORTS`."""
    place: str
    """Where it is read."""
    read_at_ms: int | None
    """When any figure was read last; None before the first."""
    brokers: tuple[int, ...]
    """Those that were told of the last time, in order."""
    failures: tuple[str, ...]
    """What could not be read the last time, each in a sentence."""


class Poller(Closing):
    """What one place told lately. What is public may be used from any thread."""

    def __init__(
        self,
        metrics: MetricsSource,
        interval_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._metrics, self._interval_s, self._clock = metrics, interval_s, clock
        self._kept: deque[tuple[int, pa.Table]] = deque()
        self._brokers: tuple[int, ...] = ()
        self._read_at_ms: int | None = None
        self._looks = 0
        self._failures: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="plimsoll-prometheus", daemon=True
        )

    def start(self) -> None:
        """Begin to read; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """Read no more. What is being read ends by itself, within its time-out."""
        self._closing.set()

    def reports(self) -> pa.Table:
        """Schema `REPORTS`: what was told lately; empty before the first answer."""
        with self._lock:
            return pa.concat_tables(
                [REPORTS.empty_table(), *(t for _, t in self._kept)]
            )

    @property
    def is_settled(self) -> bool:
        """Whether what can be told at once is told, or cannot be."""
        return self._looks >= self._metrics.needed

    def state(self) -> PollState:
        """How it is doing."""
        with self._lock:
            return PollState(
                source=PROMETHEUS,
                place=self._metrics.place,
                read_at_ms=self._read_at_ms,
                brokers=self._brokers,
                failures=self._failures,
            )

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._closing.wait(max(0.0, due_s - time.monotonic())):
            wait_s = self._interval_s
            if self._looks + 1 < self._metrics.needed:
                wait_s = min(wait_s, FIRST_S)
            due_s = max(due_s, time.monotonic()) + wait_s
            try:
                self.take(self._metrics.read())
            except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
                _log.debug("metrics were not read", exc_info=exc)
                failure = f"{self._metrics.place} was not read: {type(exc).__name__}."
                self.take(
                    MetricsResult(reports=REPORTS.empty_table(), failures=(failure,))
                )

    def take(self, answer: MetricsResult) -> None:
        """Give out an answer, beside those that came lately."""
        now_ms = int(1000 * self._clock())
        oldest_ms = now_ms - int(1000 * KEPT_INTERVALS * self._interval_s)
        with self._lock:
            self._looks += 1
            for failure in set(answer.failures) - set(self._failures):
                _log.info("%s", failure)
            self._failures = answer.failures
            self._brokers = tuple(sorted(set(answer.reports["broker"].to_pylist())))
            if self._brokers:
                self._read_at_ms = now_ms
                self._kept.append((now_ms, answer.reports))
            while self._kept and self._kept[0][0] < oldest_ms:
                self._kept.popleft()

"""A thread that polls metrics and provides the newest reports."""

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
"""Reports stay valid for this many intervals, so that one failed poll, or one rate that
starts again, keeps the previous values."""
FIRST_S: Final = 5.0
"""Seconds between polls until everything that can be reported has been."""
_log = logging.getLogger("plimsoll.collector")


class MetricsSource(Protocol):
    """A place that metrics are polled from."""

    @property
    def needed(self) -> int:
        """Number of polls after which all figures can be there."""

    @property
    def place(self) -> str:
        """The source's name in messages: an address, or a number of brokers."""

    def read(self) -> MetricsResult:
        """Poll once; failures are sentences in the result, not exceptions."""


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
    """Brokers with figures in the last poll, in order."""
    failures: tuple[str, ...]
    """What could not be read the last time, each in a sentence."""


class Poller(Closing):
    """Keeps the recent reports of one source. Everything public may be used from any thread."""

    def __init__(
        self, metrics: MetricsSource, interval_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._metrics, self._interval_s, self._clock = metrics, interval_s, clock
        self._kept: deque[tuple[int, pa.Table]] = deque()
        self._brokers: tuple[int, ...] = ()
        self._read_at_ms: int | None = None
        self._looks = 0
        self._failures: tuple[str, ...] = ()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="plimsoll-prometheus", daemon=True)

    def start(self) -> None:
        """Start the polling thread; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """Stop polling; returns at once. A poll in progress ends by its time-out."""
        self._closing.set()

    def reports(self) -> pa.Table:
        """The reports of recent polls, schema `REPORTS`; empty before the first."""
        with self._lock:
            return pa.concat_tables([REPORTS.empty_table(), *(t for _, t in self._kept)])

    @property
    def is_settled(self) -> bool:
        """Whether all figures that can be reported early on have been polled."""
        return self._looks >= self._metrics.needed

    def state(self) -> PollState:
        """The source's address, its last poll, its brokers and its failures."""
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
                self.take(MetricsResult(reports=REPORTS.empty_table(), failures=(failure,)))

    def take(self, answer: MetricsResult) -> None:
        """Keep the result of a poll, and drop results over `KEPT_INTERVALS` old."""
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

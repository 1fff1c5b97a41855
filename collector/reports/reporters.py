"""The metrics reporters of a cluster: which exist, which are read, what they report."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from collector.assemble import cores_of
from collector.metadata import ClusterState
from collector.reports.clocks import Clocks
from collector.reports.merge import complete
from collector.reports.metric_topics import MetricTopic, Sighting, is_empty, sight
from collector.reports.poller import Poller, PollState
from collector.reports.report_columns import REPORTS
from collector.spark.arrow_transfer import Unpacked
from collector.spark.vectors import concatenate
from model.snapshot.snapshot import BrokerState
from model.units import count_text, seconds_text

ASIDE_S: Final = 30.0
"""A topic that could not be read is tried again after this."""
SETTLE_S: Final = 10.0
"""A topic that is read and has no records for this long at first is stale."""
OFF_S: Final = 600.0
"""Where Spark cannot read topics at all."""
TOLERATED: Final = 0.01
"""Share of records that may be left out without a warning."""
_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """A metric topic being read; recreating the topic makes it another one."""

    source: str
    name: str
    topic_id: str
    since_s: float = field(compare=False)
    """Records from this long before now on are read at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterState:
    """The state of one reporter, as `status` shows it."""

    source: str
    topic: str
    found: bool
    readable: bool
    why: str
    """The reason why it provides no loads; empty where it does."""
    newest_ms: int | None
    """When any broker reported last."""
    records: int
    """Read so far, those left out among them."""
    left_out: Mapping[str, int]
    """Number of invalid records, by reason."""
    silent: tuple[int, ...]
    """Brokers that are alive and have not reported for three intervals."""
    clocks_s: Mapping[int, float]
    """By broker whose clock is wrong: how far it is ahead."""


@dataclass(slots=True)
class _Reporter:
    """One topic that may exist, and what was read from it."""

    topic: MetricTopic
    sighting: Sighting = field(default_factory=Sighting)
    empty: bool | None = None
    reading_since_s: float | None = None
    aside_until_s: float = 0.0
    aside_why: str = ""
    records: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    newest_ms: dict[int, int] = field(default_factory=dict)
    """By broker: when it reported last; never after the records came."""
    clocks: Clocks = field(default_factory=Clocks)
    recent: list[tuple[int, pa.Table]] = field(default_factory=list)
    """Time of arrival, and the reports."""
    logged: str = ""
    """The last line in the log about it."""

    def take(self, read: Unpacked, now_ms: int) -> None:
        """Add the reports of one batch, and the number of invalid records."""
        self.records += read.records
        self.left_out.update(read.left_out)
        reports = concatenate(read.tables, REPORTS)
        found = self.clocks.corrected(reports, now_ms)
        if lost := len(reports) - len(found):
            self.left_out["time"] += lost
        newest = found.group_by("broker").aggregate([("time_ms", "max")])
        for row in newest.to_pylist():
            broker, time_ms = row["broker"], row["time_ms_max"]
            before_ms = self.newest_ms.get(broker, 0)
            self.newest_ms[broker] = max(before_ms, min(time_ms, now_ms))
        oldest_ms = now_ms - 1000 * self.topic.fresh_s
        self.recent = [(at_ms, t) for at_ms, t in self.recent if at_ms >= oldest_ms]
        # After a long absence there may be hours of them.
        fresh = found.filter(pc.field("time_ms") >= int(oldest_ms))
        if len(fresh):
            self.recent.append((now_ms, fresh))

    def may_be_read(self, now_s: float) -> bool:
        seen = self.sighting
        ready = self.reading_since_s is not None or not seen.leaderless
        return seen.readable and ready and now_s >= self.aside_until_s

    def settled(self, now_s: float) -> bool:
        """Whether what can be known of it at once is known."""
        begun_s = self.reading_since_s
        waited = begun_s is not None and now_s - begun_s > SETTLE_S
        came = bool(self.records or self.empty)
        return came or waited or not self.may_be_read(now_s)

    def silent(self, alive: Sequence[int], now_ms: int) -> tuple[int, ...]:
        """Live brokers without recent reports; none as long as no report comes at all."""
        if not self.newest_ms or self.reading_since_s is None:
            return ()
        oldest_ms = now_ms - 1000 * self.topic.fresh_s
        return tuple(b for b in alive if self.newest_ms.get(b, 0) < oldest_ms)

    def why(self, now_ms: int) -> str:
        """The reason why it provides no loads; empty where it does."""
        name, seen = self.topic.name, self.sighting
        if seen.lacks is not None:
            return f"plimsoll's user lacks the right {seen.lacks} on the topic {name}"
        if seen.topic_id is None:
            return f"the cluster has no topic {name}"
        if now_ms < 1000 * self.aside_until_s:
            return f"set aside for a while: {self.aside_why}"
        if self.reading_since_s is None and seen.leaderless:
            parts = count_text(seen.leaderless, "partition")
            return f"{parts} of the topic {name} without a leader"
        newest_ms = max(self.newest_ms.values(), default=0)
        if now_ms - newest_ms <= 1000 * self.topic.fresh_s:
            return ""
        if self.empty:
            return f"the topic {name} is empty; the brokers' reporter may be off"
        begun_s = self.reading_since_s
        if begun_s is None or now_ms / 1000 - begun_s <= SETTLE_S:
            return f"the topic {name} was not read long enough yet"
        age = seconds_text(self.topic.fresh_s)
        return f"no record came into the topic {name} for {age}"


class Reporters:
    """The metric topics of one cluster; from any thread."""

    def __init__(
        self,
        topics: Sequence[MetricTopic],
        clock: Callable[[], float] = time.time,
        *,
        polled: Sequence[Poller] = (),
    ) -> None:
        """polled: besides the topics; they are closed with this."""
        self._clock = clock
        self._polled = polled
        self._lock = threading.Lock()
        self._alive: list[int] = []
        self._cores: dict[int, float] = {}
        self.passed_over: Mapping[str, int] = {}
        """Number of reports that the latest load vectors could not use, by reason."""
        self.without_cores: tuple[int, ...] = ()
        """Brokers that report their CPU as a share of an unknown number of cores."""
        self._by_source = {topic.source: _Reporter(topic) for topic in topics}

    @property
    def names(self) -> frozenset[str]:
        """Names of all metric topics that are looked for, existing or not."""
        return frozenset(r.topic.name for r in self._by_source.values())

    def start(self) -> None:
        """Start the threads of the polled reporters."""
        for poller in self._polled:
            poller.start()

    def close(self) -> None:
        """Stop the threads of the polled reporters."""
        for poller in self._polled:
            poller.close()

    def poll_states(self) -> tuple[PollState, ...]:
        """The current state of each polled reporter."""
        return tuple(poller.state() for poller in self._polled)

    def see(self, cluster: ClusterState) -> None:
        """Look up the metric topics and the live brokers in the latest metadata."""
        with self._lock:
            alive = [b for b in cluster.brokers if b.state is not BrokerState.DEAD]
            self._alive = [b.id for b in alive]
            self._cores = cores_of(alive)
            for reporter in self._by_source.values():
                reporter.sighting = sight(cluster, reporter.topic.name)
                self._tell(reporter)

    def see_samples(self, samples: pa.Table) -> None:
        """Update which metric topics are empty from a sample, schema `SAMPLES`."""
        with self._lock:
            for reporter in self._by_source.values():
                found = is_empty(samples, reporter.topic.name)
                reporter.empty = reporter.empty if found is None else found

    def to_read(self) -> tuple[TopicSubscription, ...]:
        """The metric topics that can be read now: present, permitted, not set aside."""
        with self._lock:
            now_s = self._clock()
            found = [r for r in self._by_source.values() if r.may_be_read(now_s)]
            return tuple(
                TopicSubscription(
                    r.topic.source, r.topic.name, str(r.sighting.topic_id), r.topic.fresh_s
                )
                for r in found
            )

    def begin(self, readings: Sequence[TopicSubscription]) -> None:
        """Note that exactly these topics are being read from now on."""
        with self._lock:
            sources = {reading.source for reading in readings}
            for source, reporter in self._by_source.items():
                begun = self._clock() if source in sources else None
                reporter.reading_since_s = begun

    def set_aside(self, error: str, why: str) -> bool:
        """Exclude topics that an error names for a while; return whether any was read.

        All topics are excluded if the error names none. why: the reason to show.
        """
        with self._lock:
            read = [r for r in self._by_source.values() if r.reading_since_s is not None]
            named = [r for r in read if r.topic.name in error]
            self._put_aside(named or read, ASIDE_S, why)
            return bool(read)

    def are_settled(self) -> bool:
        """Whether every reporter has reported, or will not report soon."""
        with self._lock:
            now_s = self._clock()
            topics = all(r.settled(now_s) for r in self._by_source.values())
        return topics and all(poller.is_settled for poller in self._polled)

    def put_off(self, why: str) -> None:
        """Exclude all topics for `OFF_S` seconds.

        why: the reason to show.
        """
        with self._lock:
            self._put_aside(self._by_source.values(), OFF_S, why)

    def _put_aside(self, reporters: Iterable[_Reporter], seconds: float, why: str) -> None:
        for reporter in reporters:
            reporter.reading_since_s = None
            reporter.aside_until_s = self._clock() + seconds
            reporter.aside_why = why
            self._tell(reporter)

    def take(self, source: str, read: Unpacked) -> None:
        """Keep the reports that a batch read of one source's topic.

        read: tables of schema `REPORTS`, and the records left out by reason.
        """
        with self._lock:
            reporter = self._by_source[source]
            known = set(reporter.left_out)
            reporter.take(read, int(1000 * self._clock()))
            count = sum(reporter.left_out.values())
            if count > TOLERATED * reporter.records and set(read.left_out) - known:
                _warn_of(reporter, count)
            self._tell(reporter)

    def complete(self, vectors: pa.Table) -> pa.Table:
        """Complete load vectors with the latest reports; both of schema `VECTORS`."""
        with self._lock:
            tables = [t for r in self._by_source.values() for _, t in r.recent]
            cores = self._cores
        tables += [poller.reports() for poller in self._polled]
        found = complete(vectors, concatenate(tables, REPORTS), cores)
        self.passed_over = found.passed_over
        self.without_cores = found.without_cores
        return found.vectors

    def states(self) -> tuple[ReporterState, ...]:
        """The current state of the reporter of each metric topic."""
        with self._lock:
            now_ms = int(1000 * self._clock())
            return tuple(
                ReporterState(
                    source=source,
                    topic=r.topic.name,
                    found=r.sighting.topic_id is not None or r.sighting.lacks is not None,
                    readable=r.sighting.readable,
                    why=r.why(now_ms),
                    newest_ms=max(r.newest_ms.values(), default=None),
                    records=r.records,
                    left_out=dict(r.left_out),
                    silent=r.silent(self._alive, now_ms),
                    clocks_s={
                        broker: ahead_ms / 1000
                        for (_, broker), ahead_ms in r.clocks.ahead_ms.items()
                    },
                )
                for source, r in self._by_source.items()
            )

    def _tell(self, reporter: _Reporter) -> None:
        """Log each change of the state once."""
        why = reporter.why(int(1000 * self._clock()))
        if why != reporter.logged:
            reporter.logged = why
            level = logging.WARNING if reporter.sighting.lacks else logging.INFO
            _log.log(level, "%s: %s", reporter.topic.source, why or "reports come")


def _warn_of(reporter: _Reporter, count: int) -> None:
    newer = reporter.left_out["version"]
    also = f"; {newer} of a newer format" if newer else ""
    _log.warning(
        "%d of %d records of the topic %s are left out: %s%s",
        count,
        reporter.records,
        reporter.topic.name,
        dict(reporter.left_out),
        also,
    )

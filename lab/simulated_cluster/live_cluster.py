"""A simulated cluster whose clock runs by itself, with loads that rise and fall."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

import numpy as np

from executor.client.responses import ClusterView, LogDirView
from executor.timing import Timing
from lab.simulated_cluster.demo_cluster import (
    RACKS,
    DemoClusterOptions,
    initial_snapshot,
    simulated,
)
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.quiet_observer import QuietObserver
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.closing import Closing
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.replication import MOST_LISTED, Replication
from model.snapshot.snapshot import Broker, Floats, Ints, Resource, Snapshot, Source

_T = TypeVar("_T")
_STEP_S: Final = 0.1
"""Real time between two steps of the cluster; at least `_REST` times their duration."""
_REST: Final = 4
_WINDOW_S: Final = 15.0
"""Window in the snapshot, like the probe's; loads here are current values."""
_RATES: Final = (0, 1, 3)
"""Columns of the loads that vary: net in, net out and CPU."""
COMMIT_S: Final = 5.0
"""Time between two commits of a consumer group, as by default."""
RECORD_BYTES: Final = 1000.0
ANSWER_S: Final = 0.004
"""Time of a response of an idle broker."""
DISK_BYTES_PER_S: Final = 250e6
"""Writes of a disk that leave no time for anything else."""
RECENT_S: Final = 10.0
"""Simulated time since the last look at the clock, within which a response may have begun."""
MOST_BUSY: Final = 0.95
"""Share of its time from which a disk gets no slower."""
DEPTH: Final = (0.05, 0.3)
"""Range of the amplitude of a topic's rate, as a share of the mean."""
FEW: Final = 6
"""Moves at once that may all have the same leader."""
THROTTLE_MARGIN: Final = 2
"""Least throttle as a multiple of what replicas fetch to keep up, as the executor demands."""
PERIOD_S: Final = (240.0, 900.0)
"""Range of the period of a topic's rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSines:
    """A sine for each topic with a period of its own; deterministic."""

    topic: Ints
    """(n,) position of each partition's topic."""
    depth: Floats
    """(topics,) amplitude as a share of the mean."""
    period_s: Floats
    """(topics,)"""
    phase: Floats
    """(topics,) radians."""

    @classmethod
    def of(cls, topic: Ints, rng: np.random.Generator) -> "TopicSines":
        """Draw amplitudes, periods and phases; topic: (n,) topic of each partition."""
        topics = int(topic[-1]) + 1
        return cls(
            topic=topic,
            depth=rng.uniform(*DEPTH, topics),
            period_s=rng.uniform(*PERIOD_S, topics),
            phase=rng.uniform(0.0, 2 * np.pi, topics),
        )

    def factors(self, now_s: float) -> Floats:
        """(n,) load of each partition as a multiple of its mean."""
        turn = 2 * np.pi * now_s / self.period_s + self.phase
        of_topic: Floats = 1 + self.depth * np.sin(turn)
        return of_topic[self.topic]


def _largest(values: Floats, count: int) -> float:
    """Sum of the largest values; values: (n,)."""
    return float(np.sort(values)[-count:].sum())


class LiveCluster(Closing):
    """Run a cluster in a thread, `speed` times as fast as real time.

    Entering the context starts the thread. Other threads hold `lock` during calls.
    """

    def __init__(self, order: DemoClusterOptions, *, speed: float) -> None:
        self.lock = threading.RLock()
        self.speed = speed
        self._mean = initial_snapshot(order)
        self._loads = self._mean.partitions.loads
        self._rates: list[float] = self._loads[:, 0].tolist()
        rng = np.random.default_rng([order.seed, order.brokers])
        self._sines = TopicSines.of(self._mean.partitions.topic, rng)
        self._disk_bytes = {b.id: b.capacity[Resource.DISK] for b in self._mean.header.brokers}
        self.cluster = simulated(self._mean, self._rates)
        self._seen_s = self.cluster.now_s
        """The steady clock at the last look at it."""
        self._answer_s: float | None = None
        """Time of a response since then."""
        self._closing = threading.Event()
        self._clock = threading.Thread(target=self._run_clock, name="clock", daemon=True)

    def __enter__(self) -> Self:
        self._clock.start()
        return super().__enter__()

    def close(self) -> None:
        """Stop the clock; waits in simulated time end."""
        self._closing.set()
        if self._clock.is_alive():
            self._clock.join()

    def now_s(self) -> float:
        """Simulated time, seconds since the epoch."""
        return self.cluster.now_s

    @property
    def timing(self) -> Timing:
        """Its clock for a run; a wait takes 1/`speed` of its length in real time."""
        return Timing(now_s=self.now_s, pause=self._pause, steady_s=self._steady_s)

    def answer_s(self) -> float:
        """Time of a response, simulated seconds: it grows as the busiest disk gets busier."""
        with self.lock:
            busiest = max(self.cluster.disk_writes().values(), default=0.0)
        return ANSWER_S / (1.0 - min(MOST_BUSY, busiest / DISK_BYTES_PER_S))

    def free_bytes(self, broker: BrokerId) -> int:
        """Bytes that a broker's disk can still take.

        A disk that is full fails no broker here, as the scheduler keeps clear of that.
        """
        with self.lock:
            used = self.cluster.used_bytes(broker)
        return max(0, int(self._disk_bytes[broker] - used))

    def copies_need(self, at_once: int) -> float:
        """Bytes per second and broker under which no throttle is refused.

        A throttle has to exceed what replicas fetch from a leader, at the peak of the loads, of
        the largest partitions that move at once. A few of them may get the same leader; of many,
        each broker leads what it leads at the start, at most.
        """
        columns = self._mean.partitions
        peaks = self._loads[:, 0] * (1 + self._sines.depth[self._sines.topic])
        led = [peaks[columns.leader == b.id] for b in self._mean.header.brokers]
        most = max(_largest(peaks, min(at_once, FEW)), *(_largest(of, at_once) for of in led))
        return THROTTLE_MARGIN * RACKS * most

    def admin(self) -> "LiveAdmin":
        """Create a client of the cluster."""
        return LiveAdmin(self)

    def snapshot(self) -> Snapshot:
        """The snapshot that a collector would take now."""
        with self.lock:
            now_s = self.cluster.now_s
            partitions = self.cluster.partitions.values()
            replicas = [list(p.replicas) for p in partitions]
            leader = [p.leader for p in partitions]
        flat = [broker for of in replicas for broker in of]
        loads = self._loads.copy()
        loads[:, _RATES] *= self._sines.factors(now_s)[:, None]
        return Snapshot(
            self._mean.header.model_copy(
                update={"taken_at_ms": int(1000 * now_s), "sources": (self._source(now_s),)}
            ),
            replace(
                self._mean.partitions,
                loads=loads,
                leader=np.asarray(leader, np.int64),
                replica_start=np.concatenate([[0], np.cumsum([len(of) for of in replicas])]),
                replica_broker=np.asarray(flat, np.int64),
            ),
        )

    def replication(self) -> Replication:
        """Under-replicated and offline partitions."""
        with self.lock:
            partitions = self.cluster.partitions
            offline = [pid for pid, p in partitions.items() if p.leader == NO_BROKER]
            lacking = [
                pid
                for pid, p in partitions.items()
                if len(p.in_sync) < len(p.replicas) - len(p.adding)
            ]
            behind = [pid for pid in lacking if partitions[pid].leader != NO_BROKER]
            return Replication(
                under_replicated=len(behind),
                offline=len(offline),
                behind_ids=tuple(behind[:MOST_LISTED]),
                offline_ids=tuple(offline[:MOST_LISTED]),
                behind_of=tuple(sorted(Counter(pid.topic for pid in lacking).items())),
                moving=sum(bool(p.adding) for p in partitions.values()),
            )

    def consumer_lag(self, topics: Collection[TopicName]) -> ConsumerLag | None:
        """Lag of groups that keep up and commit every `COMMIT_S`; a group for each topic."""
        names = [t.name for t in self._mean.header.topics]
        moved = np.array([name in topics for name in names])[self._mean.partitions.topic]
        if not moved.any():
            return None
        with self.lock:
            now_s = self.cluster.now_s
            rates = np.array(self._rates)[moved] / RECORD_BYTES
        behind_s = now_s % COMMIT_S
        topic = names[int(self._mean.partitions.topic[moved][0])]
        return ConsumerLag(records=round(rates.sum() * behind_s), seconds=behind_s, topic=topic)

    def _source(self, now_s: float) -> Source:
        return Source(
            name="simulation",
            newest_sample_ms=int(1000 * now_s),
            window_s=_WINDOW_S,
            samples=round(_WINDOW_S) * len(self._mean),
            measured_share=1.0,
        )

    def answered(self) -> None:
        """Let the next look at the steady clock find the time of a response passed."""
        self._answer_s = self.answer_s()

    def _steady_s(self) -> float:
        """Simulated time. A response takes its own time, whatever this machine does meanwhile."""
        answer_s, self._answer_s = self._answer_s, None
        now_s = max(self._seen_s, self.cluster.now_s)
        if answer_s is not None and now_s - self._seen_s < RECENT_S:
            now_s = self._seen_s + answer_s
        self._seen_s = now_s
        return now_s

    def _pause(self, seconds: float) -> None:
        """Wait until `seconds` of simulated time have passed; a step may be late."""
        until_s = self.now_s() + seconds
        wait_s = seconds / self.speed
        while not self._closing.wait(wait_s) and self.now_s() < until_s:
            wait_s = _STEP_S

    def _run_clock(self) -> None:
        began_s, at_s = time.monotonic(), self.cluster.now_s
        took_s = 0.0
        while not self._closing.wait(max(_STEP_S, _REST * took_s)):
            begun_s = time.monotonic()
            until_s = at_s + self.speed * (begun_s - began_s)
            with self.lock:
                now_s = self.cluster.now_s
                factors = self._sines.factors(now_s)
                self._rates[:] = (factors * self._loads[:, 0]).tolist()
                self.cluster.advance(max(0.0, until_s - now_s))
            took_s = time.monotonic() - begun_s


class LiveAdmin(SimulatedAdmin):
    """A client whose calls take no time of the cluster, since its clock runs by itself.

    The one that runs time takes that of a response by the run's own clock.
    """

    def __init__(self, of: LiveCluster) -> None:
        super().__init__(of.cluster, Faults(), answer_s=0.0)
        self._of = of
        self._lock = of.lock

    def cluster(self) -> ClusterView:
        """Cluster id, live brokers and racks, after the time of a response."""
        with self._lock:
            found = super().cluster()
            self._of.answered()
            return found

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        """The log directories of a broker, with the free space of its disk."""
        views = super().log_dirs(broker, ids)
        free = self._of.free_bytes(broker)
        return tuple(replace(view, usable_bytes=free) for view in views)

    def _read(self, call: str, ask: Callable[[], _T]) -> _T:
        with self._lock:
            return super()._read(call, ask)

    def _change(self, call: str, ask: Callable[[], _T]) -> _T:
        with self._lock:
            return super()._change(call, ask)


Marked = Callable[[str, tuple[Broker, ...]], tuple[Broker, ...]]


class LiveObserver(QuietObserver):
    """Observe a running cluster once per second of real time."""

    def __init__(
        self, of: LiveCluster, *, every_s: float = 1.0, marked: Marked | None = None
    ) -> None:
        """marked: gives the brokers of a cluster, by its id, the states of their marks."""
        self._of = of
        self._marked = marked
        self._every_s = every_s
        self._seen: tuple[Snapshot, Replication] | None = None
        self._seen_at_s = float("-inf")

    def brokers(self) -> tuple[Broker, ...]:
        """All brokers; they are always live."""
        return self._poll()[0].header.brokers

    def replication(self) -> Replication:
        """Available from the start."""
        return self._poll()[1]

    def consumer_lag(self, topics: Collection[TopicName]) -> ConsumerLag | None:
        """Available from the start."""
        return self._of.consumer_lag(topics)

    def snapshot(self) -> Snapshot:
        """Available from the start."""
        return self._poll()[0]

    def _poll(self) -> tuple[Snapshot, Replication]:
        now_s = time.monotonic()
        if self._seen is None or now_s - self._seen_at_s >= self._every_s:
            self._seen = (self._with_marks(self._of.snapshot()), self._of.replication())
            self._seen_at_s = now_s
        return self._seen

    def _with_marks(self, snapshot: Snapshot) -> Snapshot:
        if self._marked is None:
            return snapshot
        header = snapshot.header
        brokers = self._marked(header.cluster_id, header.brokers)
        return replace(snapshot, header=header.model_copy(update={"brokers": brokers}))

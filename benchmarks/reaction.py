"""How soon `--auto` acts on a shift, and on what it does not: counts on synthetic samples.

`python -P -m benchmarks.reaction [--only PART]` writes `reaction.md`. The samples go through the
detector, the load vectors and the loop itself, by a clock of their own: no figure depends on the
machine. The parts on a local Kafka are in `reaction_kafka`.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks import reaction_kafka
from benchmarks.sections import Section, measure_sections, table
from collector.assemble import assemble, newest_vectors
from collector.load_changes import load_changes
from collector.metadata import ClusterState
from collector.samples import SAMPLES
from collector.spark.stream import CHANGE_WINDOW_MS
from collector.spark.vectors import VECTORS, Window, load_vectors
from collector.state_replay import placement_of
from control.loop.dependencies import LoopParts, LoopSettings, PlanExecutor
from control.loop.loop import Loop
from control.loop.view import Mode
from control.planning.background_call import AtOnce
from control.settings.auto_limits import EAGER
from lab.simulated_cluster.quiet_observer import QuietObserver
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.run import RunReport, RunState
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)
from model.snapshot.steadiness import Steadiness
from solver.solve import solve

TABLE: Final = Path(__file__).with_name("reaction.md")
HEAD: Final = (
    "# How soon `--auto` acts\n\n"
    "`python -P -m benchmarks.reaction`, with the limits `eager` and a tolerance of 10 %.\n"
    "The synthetic parts have three brokers, 12 partitions and a sample per second, which becomes "
    "loads 1 s later.\nUnless stated, each partition has normal noise of 5 % a second.\n"
    "AutoMQ 1.7.3's own balancer, with its default settings, began 32.6 s after eight partitions "
    "had been put on one of three nodes."
)
TIMES: Final = 10
EVENTS: Final = 10
HOURS: Final = 1
KAFKA_TIMES: Final = 10
BURST_TIMES: Final = 10
QUIET_MINUTES: Final = 10.0
START_MS: Final = 1_700_000_000_000
BROKERS: Final = 3
PARTITIONS: Final = 12
RATE: Final = 1000.0
"""Records per second of each partition, at first."""
RECORD_BYTES: Final = 1000
COMPACTIONS_S: Final = 0.5
"""Logs that are compacted per second, where any is."""
WINDOW_S: Final = 15.0
TICK_S: Final = 0.5
CALM_S: Final = 45.0
"""Balanced load before anything happens."""
WATCHED_S: Final = 60.0
BATCH_S: Final = 1.0
"""A sample becomes loads after this: what a micro-batch takes."""
LEADER: Final = 1 + np.arange(PARTITIONS) % BROKERS
SHIFTED: Final = LEADER == 2

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator], Floats]
"""Factors of the rates of all partitions in one second."""


def normal(rng: np.random.Generator) -> Floats:
    """5 %, normally distributed."""
    return np.asarray(rng.normal(1.0, 0.05, PARTITIONS))


def heavy(rng: np.random.Generator) -> Floats:
    """10 %, with heavy tails: Student's t with 2.5 degrees of freedom."""
    return np.asarray(1.0 + 0.1 / np.sqrt(5.0) * rng.standard_t(2.5, PARTITIONS))


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happens to the load, in seconds after `CALM_S` has passed."""

    words: str
    shift: Callable[[float], float] = lambda _at_s: 1.0
    """Factor of what broker 2 takes in as leader."""
    reads: Callable[[float], float] = lambda _at_s: 1.0
    """Factor of how fast its consumers read, of what arrives; inf until they have caught up."""
    commit_s: float = 1.0
    """Time between commits."""
    compacts: bool = False
    """Whether the logs shrink, one after the other."""
    noise: Noise = normal
    interval_s: float = 1.0
    lasts_s: float = WATCHED_S


@dataclass
class Records:
    """Offsets of the partitions as time passes."""

    course: Course
    rng: np.random.Generator
    at_s: float = 0.0
    latest: Floats = field(default_factory=lambda: np.full(PARTITIONS, 1e6))
    read: Floats = field(default_factory=lambda: np.full(PARTITIONS, 1e6))
    committed: Floats = field(default_factory=lambda: np.full(PARTITIONS, 1e6))
    committed_at_s: float = 0.0
    size: Floats = field(default_factory=lambda: np.full(PARTITIONS, 1e6 * RECORD_BYTES))
    """Of the logs, bytes."""

    def advance(self, until_s: float) -> None:
        """Write, read and commit records, a tenth of a second at a time."""
        while self.at_s < until_s - 1e-9:
            step_s = min(0.1, until_s - self.at_s)
            if int(self.at_s) != int(self.at_s - step_s) or self.at_s == 0.0:
                self._noise = np.maximum(0.0, self.course.noise(self.rng))
            happened_s = self.at_s - CALM_S
            factor = np.where(SHIFTED & (happened_s >= 0), self.course.shift(happened_s), 1.0)
            arrived = RATE * step_s * factor * self._noise
            self.latest += arrived
            self.size += arrived * RECORD_BYTES
            speed = self.course.reads(happened_s) if happened_s >= 0 else 1.0
            ahead = np.where(SHIFTED, speed * arrived, np.inf)
            self.read = np.minimum(self.latest, self.read + ahead)
            self.at_s += step_s
            if self.at_s - self.committed_at_s >= self.course.commit_s:
                self.committed, self.committed_at_s = self.read.copy(), self.at_s
            if self.course.compacts and self.rng.random() < COMPACTIONS_S * step_s:
                self.size[self.rng.integers(PARTITIONS)] *= self.rng.uniform(0.2, 1.0)

    def sample(self) -> pa.Table:
        """The samples of this moment."""
        latest = self.latest.astype(np.int64)
        columns: dict[str, Any] = {
            "topic": ["orders"] * PARTITIONS,
            "partition": np.arange(PARTITIONS),
            "time_ms": np.full(PARTITIONS, START_MS + round(1000 * self.at_s)) + LEADER,
            "broker": LEADER,
            "flags": np.zeros(PARTITIONS),
            "groups": np.ones(PARTITIONS),
            "latest": latest,
            "earliest_local": np.zeros(PARTITIONS),
            "earliest": np.zeros(PARTITIONS),
            "local_bytes": self.size,
            "total_bytes": self.size,
            "group_offsets": self.committed.astype(np.int64),
        }
        arrays = [
            pa.array(columns[f.name])
            if f.name == "topic"
            else pa.array(np.asarray(columns[f.name], np.int64)).cast(f.type)
            for f in SAMPLES
        ]
        return pa.table(arrays, schema=SAMPLES)


class Sampled(QuietObserver):
    """An observer of synthetic samples: all that the collector does, without its threads."""

    failure = None

    def __init__(self, records: Records) -> None:
        self._records = records
        self._samples = SAMPLES.empty_table()
        self._vectors = VECTORS.empty_table()
        self._cluster = placement()
        self._waiting: list[tuple[float, Snapshot, Steadiness | None]] = []
        self._due_s = 0.0
        self._seen: tuple[Snapshot | None, Steadiness | None] = (None, None)

    def advance(self, until_s: float) -> None:
        """Take the samples that are due, and hand out what they give a batch later."""
        while self._due_s <= until_s:
            self._records.advance(self._due_s)
            self._take(self._records.sample())
            self._due_s += self._records.course.interval_s
        while self._waiting and self._waiting[0][0] <= until_s:
            self._seen = self._waiting.pop(0)[1:]

    def _take(self, found: pa.Table) -> None:
        interval_s = self._records.course.interval_s
        window_ms = int(1000 * max(WINDOW_S, 6 * interval_s))
        newest_ms = pc.max(found["time_ms"]).as_py()
        together = pa.concat_tables([self._samples, found])
        since_ms = newest_ms - max(window_ms, CHANGE_WINDOW_MS)
        self._samples = _since(together, since_ms)
        changes = load_changes(self._samples)
        kept = _since(changes.kept(self._samples), newest_ms - window_ms)
        fresh = load_vectors(kept, Window(window_ms=window_ms))
        if len(fresh):
            self._vectors = newest_vectors(self._vectors, fresh)
            snapshot = assemble(self._cluster, self._vectors, window_s=window_ms / 1000)
            steadiness = changes.of(self._vectors)
            self._waiting.append((self._due_s + BATCH_S, snapshot, steadiness))

    def brokers(self) -> tuple[Broker, ...]:
        """All of them, always."""
        return self._cluster.brokers

    def snapshot(self) -> Snapshot | None:
        """The newest one that a batch has given."""
        return self._seen[0]

    def steadiness(self) -> Steadiness | None:
        """That of the same batch."""
        return self._seen[1]


def _since(samples: pa.Table, since_ms: int) -> pa.Table:
    return samples.filter(pc.greater_equal(samples["time_ms"], since_ms))


def placement() -> ClusterState:
    """Three brokers that lead four partitions each, without followers."""
    topic = Topic(
        name=TopicName("orders"), topic_id="orders", storage=StorageKind.REPLICATED, internal=False
    )
    rows = [
        PartitionRow(
            id=PartitionId(topic.name, number),
            topic_id=topic.topic_id,
            storage=topic.storage,
            internal=False,
            replicas=(BrokerId(leader),),
            leader=BrokerId(leader),
            size_bytes=RECORD_BYTES,
            local_bytes=RECORD_BYTES,
        )
        for number, leader in enumerate(LEADER.tolist())
    ]
    resources = (Resource.NET_IN, Resource.NET_OUT, Resource.DISK)
    header = SnapshotHeader(
        cluster_id="bench",
        taken_at_ms=START_MS,
        brokers=tuple(
            Broker(id=BrokerId(n), rack=None, state=BrokerState.ALIVE)
            for n in range(1, BROKERS + 1)
        ),
        topics=(topic,),
        resources=resources,
        sources=(),
    )
    columns = partitions_from_rows((topic,), rows, np.zeros((PARTITIONS, len(resources))))
    return placement_of(Snapshot(header, columns))


class Requests:
    """An executor that notes when its first request would be sent."""

    def __init__(self) -> None:
        self.plans: list[str] = []

    def execute(self, plan: Any, **_order: Any) -> RunReport:
        """Note the plan; the run changes nothing."""
        self.plans.append(plan.hash)
        return RunReport(
            run_id="run",
            plan_hash=plan.hash,
            state=RunState.DONE,
            reason="",
            started_at_ms=START_MS,
            duration_s=0.0,
            preparation_s=0.0,
            moves=(),
        )

    def clean_up(self, _journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Nothing was left."""
        del idle
        return []

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """There is none."""
        del shared
        return ()

    def close(self) -> None:
        """There is nothing to close."""


def run_at_s(course: Course, seed: int) -> float | None:
    """Seconds after the event at which the first run begins; None where none does."""
    rng = np.random.default_rng(seed)
    late_s = float(rng.uniform(0.0, course.interval_s))
    begun_s = CALM_S + late_s
    moved = replace(
        course,
        shift=lambda at_s: course.shift(at_s - late_s) if at_s >= late_s else 1.0,
        reads=lambda at_s: course.reads(at_s - late_s) if at_s >= late_s else 1.0,
    )
    observer = Sampled(Records(moved, rng))
    requests, now = Requests(), [0.0]
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        settings = LoopSettings(
            bootstrap="",
            name="bench",
            mode=Mode.AUTO,
            goals=Goals(),
            solve=SolveLimits(work=2.0),
            limits=EAGER,
            journal_dir=Path(folder),
        )
        executor: Any = requests
        connect: Callable[[], PlanExecutor] = lambda: executor  # noqa: E731
        parts = LoopParts(
            observer=lambda: observer,
            planner=solve,
            executor=connect,
            clock=lambda: START_MS / 1000 + now[0],
            steady=lambda: now[0],
            background=AtOnce,
        )
        loop = Loop(settings, parts)
        while now[0] < begun_s + course.lasts_s:
            now[0] += TICK_S
            observer.advance(now[0])
            loop.turn(observer)
            if requests.plans:
                return now[0] - begun_s
    return None


def step(factor: float) -> Callable[[float], float]:
    """A load that grows by this factor, for good."""
    return lambda _at_s: factor


def burst(factor: float, length_s: float) -> Callable[[float], float]:
    """The same, for so long."""
    return lambda at_s: factor if at_s < length_s else 1.0


def stop_and_catch_up(length_s: float, factor: float) -> Callable[[float], float]:
    """Consumers that stop for so long, and then read by so much faster than records arrive."""
    return lambda at_s: 0.0 if at_s < length_s else factor


def seldom(words: str, shift: Callable[[float], float]) -> Course:
    """Samples 10 s apart, as metrics reporters send them."""
    return Course(words=words, shift=shift, interval_s=10.0, lasts_s=2 * WATCHED_S)


STEPS: Final = (
    (15.0, Course(words="doubled", shift=step(2.0))),
    (15.0, Course(words="doubled, heavy tails", shift=step(2.0), noise=heavy)),
    (25.0, Course(words="half as much again", shift=step(1.5))),
    (25.0, Course(words="half as much again, heavy tails", shift=step(1.5), noise=heavy)),
    (35.0, seldom("doubled, samples 10 s apart", step(2.0))),
    (35.0, seldom("half as much again, samples 10 s apart", step(1.5))),
)
"""Seconds that are required, and what happens."""
QUIET: Final = (
    Course(words="logs are compacted", compacts=True),
    Course(words="doubled for 3 s", shift=burst(2.0, 3.0)),
    Course(words="doubled for 5 s", shift=burst(2.0, 5.0)),
    Course(words="doubled for 9 s", shift=burst(2.0, 9.0)),
    Course(words="doubled for 9 s, heavy tails", shift=burst(2.0, 9.0), noise=heavy),
    Course(words="fourfold for 9 s", shift=burst(4.0, 9.0)),
    seldom("doubled for 9 s, samples 10 s apart", burst(2.0, 9.0)),
    seldom("fourfold for 9 s, samples 10 s apart", burst(4.0, 9.0)),
    Course(
        words="consumers stop for 20 s and catch up",
        reads=stop_and_catch_up(20.0, 2.0),
        lasts_s=90.0,
    ),
    Course(words="consumers commit every 5 s", commit_s=5.0),
    Course(words="consumers commit every 12 s", commit_s=12.0),
)
STEADY: Final = (
    Course(words="normal, 5 % a second", lasts_s=3600.0),
    Course(words="heavy tails, 10 % a second", noise=heavy, lasts_s=3600.0),
)


def delays(courses: Sequence[tuple[float, Course]], times: int) -> str:
    """Table of the delays of runs."""
    rows = []
    for required_s, course in courses:
        found = [run_at_s(course, seed) for seed in range(times)]
        ran = sorted(s for s in found if s is not None)
        quantiles = np.quantile(ran, [0.0, 0.5, 0.9, 1.0]) if ran else [np.nan] * 4
        within = sum(s <= required_s for s in ran)
        figures = (f"{q:.1f} s" for q in quantiles)
        rows.append((course.words, f"{required_s:.0f} s", *figures, f"{within} of {times}"))
    return table(
        ("load of one broker", "required", "least", "median", "90 %", "most", "in time"), rows
    )


def false_runs(courses: Sequence[Course], times: int) -> str:
    """Table of events, and how many of them caused a run."""
    rows = []
    for course in courses:
        ran = sum(run_at_s(course, seed) is not None for seed in range(times))
        rows.append((course.words, f"{times}", f"{ran}"))
    return table(("what happens", "times", "runs"), rows)


def runs_per_day(courses: Sequence[Course], times: int) -> str:
    """Table of runs within hours of steady load."""
    rows = []
    for course in courses:
        ran = sum(run_at_s(course, seed) is not None for seed in range(times))
        hours = times * course.lasts_s / 3600
        rows.append((course.words, f"{hours:.0f} h", f"{ran}"))
    return table(("noise of each partition", "watched", "runs"), rows)


SECTIONS: Final[dict[str, Section]] = {
    "steps": (
        "A load that grows for good",
        "Seconds until the run begins, by the clock of the samples.",
        lambda: delays(STEPS, TIMES),
    ),
    "quiet": (
        "Bursts and consumers",
        "Events that `--auto` should leave alone, each watched for a minute or more.",
        lambda: false_runs(QUIET, EVENTS),
    ),
    "steady": (
        "Noise",
        "Loads that only fluctuate, from second to second.",
        lambda: runs_per_day(STEADY, HOURS),
    ),
    "double": (
        "Local Kafka, a load that doubles",
        "Seconds from the shift of 24 partitions, 6 MB/s at first; brokers, producer and plimsoll "
        "share the machine, so that other work on it counts, too.",
        lambda: reaction_kafka.shifts(2.0, KAFKA_TIMES),
    ),
    "half": (
        "Local Kafka, half as much again",
        "The same for one and a half times the load.",
        lambda: reaction_kafka.shifts(1.5, KAFKA_TIMES),
    ),
    "bursts": (
        "Local Kafka, bursts",
        "Each burst was followed by half a minute of even load.",
        lambda: reaction_kafka.bursts(BURST_TIMES),
    ),
    "settled": (
        "Local Kafka, a load that stays shifted",
        "Two of three brokers get more load for good; then nothing should happen any more.",
        lambda: reaction_kafka.quiet(QUIET_MINUTES),
    ),
}


if __name__ == "__main__":
    measure_sections(TABLE, HEAD, SECTIONS)

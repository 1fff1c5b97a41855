"""A small cluster as values, and the loop's parts in process."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from executor.run.operator_control import Steering
from executor.schedule.estimate import Forecast, forecast
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.errors import PlimsollError
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.run import MoveReport, MoveState, RunProgress, RunReport, RunState
from model.snapshot.replication import Replication
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    Source,
    StorageKind,
    Topic,
    partitions_from_rows,
)

MB = 1_000_000.0
START_MS = 1_700_000_000_000
ORDERS = TopicName("orders")


def cluster(
    homes: Sequence[int], loads: Sequence[float], *, taken_at_ms: int = START_MS
) -> Snapshot:
    """Three brokers 1, 2, 3 and one topic of RF 1; loads in and out in bytes/s."""
    topic = Topic(name=ORDERS, topic_id="t1", storage=StorageKind.SHARED)
    header = SnapshotHeader(
        cluster_id="cluster-one",
        taken_at_ms=taken_at_ms,
        brokers=tuple(
            Broker(id=BrokerId(i), rack=r) for i, r in zip((1, 2, 3), "abc", strict=True)
        ),
        topics=(topic,),
        resources=(Resource.NET_IN, Resource.NET_OUT),
        sources=(
            Source(
                name="probe",
                newest_sample_ms=taken_at_ms,
                window_s=15.0,
                samples=100,
                measured_share=1.0,
            ),
        ),
    )
    rows = [
        PartitionRow(
            id=PartitionId(ORDERS, i),
            topic_id="t1",
            storage=topic.storage,
            internal=False,
            replicas=(BrokerId(home),),
            leader=BrokerId(home),
            size_bytes=1000,
            local_bytes=0,
        )
        for i, home in enumerate(homes)
    ]
    both = np.array([[load, load] for load in loads]).reshape(-1, 2)
    return Snapshot(header, partitions_from_rows((topic,), rows, both))


def constrained(snapshot: Snapshot, **replicas: int) -> Snapshot:
    """The same with placement constraints in its topics' configs: replicas per rack."""
    counts = [{"count": n, "constraints": {"rack": r}} for r, n in replicas.items()]
    value = json.dumps({"version": 1, "replicas": counts}) if counts else ""
    topics = tuple(t.model_copy(update={"placement": value}) for t in snapshot.header.topics)
    header = snapshot.header.model_copy(update={"topics": topics})
    return Snapshot(header, snapshot.partitions)


def one_of_twelve_dead(
    state: BrokerState = BrokerState.DEAD, *, taken_at_ms: int = START_MS
) -> Snapshot:
    """Twelve brokers with 22 replicas each, all within tolerance; the last one dead.

    Each pair of brokers holds two partitions, one led by each; live brokers lead what
    they share with the dead one.
    """
    last = 11
    pairs = list(itertools.permutations(range(last + 1), 2))
    dead = state is BrokerState.DEAD
    rows = [
        PartitionRow(
            id=PartitionId(ORDERS, i),
            topic_id="t1",
            storage=StorageKind.SHARED,
            internal=False,
            replicas=(BrokerId(a), BrokerId(b)),
            leader=BrokerId(b if a == last and dead else a),
            size_bytes=1000,
            local_bytes=0,
        )
        for i, (a, b) in enumerate(pairs)
    ]
    seen = cluster([], [], taken_at_ms=taken_at_ms)
    brokers = tuple(
        Broker(id=BrokerId(i), state=state if i == last else BrokerState.ALIVE)
        for i in range(last + 1)
    )
    header = seen.header.model_copy(update={"brokers": brokers})
    loads = np.full((len(rows), 2), MB)
    return Snapshot(header, partitions_from_rows(header.topics, rows, loads))


@dataclass
class CannedObserver:
    """Returns the given snapshots, the last one repeatedly."""

    snapshots: list[Snapshot | PlimsollError]
    started: bool = False
    closed: bool = False
    lacking: Replication | None = None
    measured: bool = True
    """Whether loads are known, and not only brokers."""

    def start(self) -> None:
        self.started = True

    def replication(self) -> Replication | None:
        return self.lacking

    def brokers(self) -> tuple[Broker, ...]:
        newest = self.snapshots[0]
        return () if isinstance(newest, PlimsollError) else newest.header.brokers

    def snapshot(self) -> Snapshot | None:
        newest = self.snapshots[0]
        if len(self.snapshots) > 1:
            self.snapshots.pop(0)
        if isinstance(newest, PlimsollError) or not self.measured:
            return None
        return newest

    @property
    def failure(self) -> PlimsollError | None:
        newest = self.snapshots[0]
        return newest if isinstance(newest, PlimsollError) else None

    def close(self) -> None:
        self.closed = True


@dataclass
class RecordingExecutor:
    """Records the plans it is given; `on_execute` may raise or change the cluster."""

    on_execute: Callable[[Plan], None] = lambda _plan: None
    plans: list[Plan] = field(default_factory=list)
    rivals: tuple[str, ...] = ()

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        self.plans.append(plan)
        self.on_execute(plan)
        return RunReport(
            run_id=f"run-{len(self.plans)}",
            plan_hash=plan.hash,
            state=RunState.DONE,
            reason="",
            started_at_ms=START_MS,
            duration_s=1.0,
            preparation_s=0.0,
            moves=tuple(
                MoveReport(
                    topic=m.topic,
                    partition=m.partition,
                    replicas_before=m.replicas_before,
                    replicas_after=m.replicas_after,
                    state=MoveState.DONE,
                    duration_s=0.5,
                    bytes_copied=0,
                )
                for m in plan.moves
            ),
        )

    def resume(
        self,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        raise AssertionError("there is no run to resume")

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        raise AssertionError("there is nothing to undo")

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        return []

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> Forecast:
        return forecast(plan, RunLimits(), Pace.of([]))

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        return self.rivals

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> Sequence[str]:
        return [str(m.id) for m in plan.moves]

    def close(self) -> None:
        pass


EASY = Goals()
WORK = SolveLimits(work=2.0)

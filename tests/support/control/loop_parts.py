"""A small cluster as values, and the loop's parts in process."""

import itertools
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import Mode
from control.planning.background_call import AtOnce
from control.settings.auto_limits import EAGER
from executor.schedule.estimate import Forecast, forecast
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.errors import PlimsollError
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, TopicName
from model.plan.plan import Plan
from model.run import MoveReport, MoveState, RunProgress, RunReport, RunState
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, BrokerState, Snapshot, Source
from model.snapshot.steadiness import Steadiness
from solver.solve import solve
from tests.support.model import clusters

START_MS = clusters.TAKEN_AT_MS
ORDERS = clusters.TOPIC
MB = 1_000_000.0
EASY = Goals()
WORK = SolveLimits(work=2.0)


def cluster(
    homes: Sequence[int], loads: Sequence[float], *, taken_at_ms: int = START_MS
) -> Snapshot:
    """Three brokers 1, 2, 3 and one topic of RF 1; loads in and out in bytes/s."""
    places = [(home,) for home in homes]
    return _sampled(clusters.brokers(3, "abc"), places, loads, taken_at_ms)


def _sampled(
    brokers: Sequence[Broker],
    places: Sequence[tuple[int, ...]],
    loads: Sequence[float],
    taken_at_ms: int,
    leaders: Sequence[int] | None = None,
) -> Snapshot:
    """One topic on shared storage whose loads the probe has measured."""
    state = clusters.snapshot(
        brokers,
        places,
        [(load, load) for load in loads],
        leaders=leaders,
        local_bytes=[0] * len(places),
        size_bytes=[1000] * len(places),
    )
    source = Source(
        name="probe", newest_sample_ms=taken_at_ms, window_s=15.0, samples=100, measured_share=1.0
    )
    return with_header(state, cluster_id="cluster-one", taken_at_ms=taken_at_ms, sources=(source,))


def with_header(snapshot: Snapshot, **changes: object) -> Snapshot:
    """The same with other values of these fields of its header."""
    return replace(snapshot, header=snapshot.header.model_copy(update=changes))


def with_state(snapshot: Snapshot, broker: int, state: BrokerState) -> Snapshot:
    """The same with one broker in this state."""
    brokers = tuple(
        b.model_copy(update={"state": state}) if b.id == broker else b
        for b in snapshot.header.brokers
    )
    return with_header(snapshot, brokers=brokers)


def constrained(snapshot: Snapshot, **replicas: int) -> Snapshot:
    """The same with placement constraints in its topics' configs: replicas per rack."""
    counts = [{"count": n, "constraints": {"rack": r}} for r, n in replicas.items()]
    return placed_by(snapshot, json.dumps({"version": 1, "replicas": counts}) if counts else "")


def placed_by(snapshot: Snapshot, value: str) -> Snapshot:
    """The same with this value of its topics' placement constraints."""
    topics = tuple(t.model_copy(update={"placement": value}) for t in snapshot.header.topics)
    return with_header(snapshot, topics=topics)


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
    leaders = [b if a == last and dead else a for a, b in pairs]
    brokers = [Broker(id=BrokerId(i)) for i in range(last + 1)]
    loads = [MB] * len(pairs)
    return with_state(_sampled(brokers, pairs, loads, taken_at_ms, leaders), last, state)


def loop_settings(folder: Path, **changes: Any) -> LoopSettings:
    """Settings of a loop whose plans an operator approves; other values as given."""
    usual: dict[str, Any] = {
        "bootstrap": "127.0.0.1:1",
        "name": None,
        "mode": Mode.APPROVE,
        "goals": EASY,
        "solve": WORK,
        "limits": EAGER,
        "journal_dir": folder,
        "tick_s": 0.01,
    }
    return LoopSettings(**(usual | changes))


def loop_parts(
    observer: "CannedObserver", executor: "RecordingExecutor | None", **changes: Any
) -> LoopParts:
    """Parts of a loop with this observer and executor; other ones as given."""
    usual: dict[str, Any] = {
        "observer": lambda: observer,
        "planner": solve,
        "executor": None if executor is None else lambda: executor,
    }
    return LoopParts(**(usual | changes))


@dataclass
class CannedObserver:
    """Returns the given snapshots, the last one repeatedly."""

    snapshots: list[Snapshot | PlimsollError]
    started: bool = False
    closed: bool = False
    lacking: Replication | None = None
    measured: bool = True
    """Whether loads are known, and not only brokers."""
    lag: ConsumerLag | None = None
    asked_lag: frozenset[TopicName] = frozenset()
    steady: Steadiness | None = None
    late: dict[BrokerId, str] = field(default_factory=dict)
    """Slow brokers, with their times in words."""
    ahead: float = 0.0
    """Seconds by which samples that are left out are ahead of the clock."""

    def start(self) -> None:
        self.started = True

    def replication(self) -> Replication | None:
        return self.lacking

    def consumer_lag(self, topics: Collection[TopicName]) -> ConsumerLag | None:
        self.asked_lag = frozenset(topics)
        return self.lag

    def slow(self) -> dict[BrokerId, str]:
        return self.late

    def steadiness(self) -> Steadiness | None:
        return self.steady

    def ahead_s(self) -> float:
        return self.ahead

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
    in_flight: list[int] = field(default_factory=list)
    """Moves in progress at once, as ordered for each plan."""

    def execute(
        self,
        plan: Plan,
        *,
        observe: Callable[[RunProgress], None],
        moves_in_flight: int,
        check: Callable[[], None] | None = None,
        **_order: Any,
    ) -> RunReport:
        self.plans.append(plan)
        self.in_flight.append(moves_in_flight)
        self.on_execute(plan)
        if check is not None:
            check()
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

    def resume(self, **_order: Any) -> RunReport:
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


@dataclass
class SetClock:
    """A clock set by tests."""

    now_s: float = START_MS / 1000

    def __call__(self) -> float:
        return self.now_s


E = TypeVar("E", bound=RecordingExecutor)


@dataclass
class LoopBench(Generic[E]):
    """A loop that a test turns by hand, over a cluster that is far out of balance."""

    loop: Loop
    observer: CannedObserver
    executor: E
    clock: SetClock

    def turns(self, count: int, seconds: float) -> None:
        """Turn the loop; before each turn, time passes and new loads arrive."""
        for _ in range(count):
            self.clock.now_s += seconds
            newest = cluster([2] * 8, [MB] * 8, taken_at_ms=int(1000 * self.clock.now_s))
            self.observer.snapshots[:] = [newest]
            self.loop.turn(self.observer)

    @property
    def log(self) -> str:
        return "\n".join(line.text for line in self.loop.view.log)


def loop_bench(folder: Path, executor: E, *, settings: Any = None, **parts: Any) -> LoopBench[E]:
    """A loop of `--auto` that acts at once; other settings and parts as given."""
    clock, observer = SetClock(), CannedObserver([cluster([2] * 8, [MB] * 8)])
    usual: dict[str, Any] = {"clock": clock, "steady": clock, "background": AtOnce}
    limits = EAGER.model_copy(update={"confirm": 0.0, "pause": 0.0})
    chosen = {"mode": Mode.AUTO, "limits": limits} | (settings or {})
    found = loop_parts(observer, executor, **(usual | parts))
    return LoopBench(Loop(loop_settings(folder, **chosen), found), observer, executor, clock)

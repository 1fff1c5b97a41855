"""Views of a loop over the demo's cluster, one for each phase, and a loop to show them.

Everything in them is fixed, so that pictures of them repeat.
"""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from control.loop.dependencies import LoopSettings, OpenTask, TaskSite
from control.loop.run_lag import RunLag
from control.loop.view import LogLine, LoopView, Mode, Phase, Retry
from control.planning.plan_overrides import PlanOverrides
from control.settings.auto_limits import EAGER
from control.settings.screen_settings import ScreenSettings
from control.tasks.broker_task import BrokerTask, Operation
from control.tasks.continued_tasks import ContinuedTasks
from control.tasks.operator_tasks import ProposedTask, ResumedTask
from control.tasks.task_listing import TaskListing
from control.tasks.task_parts import FoundPlan
from control.tasks.task_request import NamedBrokers
from executor.journal.journal_replay import Replay
from executor.journal.run_history import PastRun
from executor.run.operator_control import Steering
from executor.schedule.estimate import Forecast
from executor.schedule.simulate import Peak
from model.errors import ConfigError, PlimsollError
from model.evaluate import Evaluation, evaluate
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, TopicName
from model.plan.plan import BrokerChange, Move, Plan, PlanStatus
from model.run import MoveProgress, MoveState, RunProgress, RunReport, RunState
from model.run_health import FreeDisk, RunHealth
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.file import read_snapshot
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Resource, Snapshot, Source, partitions_from_rows
from model.snapshot.what_if import Scenario
from tests.support.paths import FIXTURES
from tui.loop_port import AutoWatchPort

FIXTURE = FIXTURES / "demo.json"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
NAME = "demo"
AT_MS = 1_700_000_000_000
"""The time of every view: 22:13:20 UTC."""
GOALS = Goals()
RUN_ID = "20231114T221310-3cc54011"
HASH = "3cc54011fae8" + "0" * 52
NEWER_HASH = "77aa0e5bd1c2" + "0" * 52

TARGETS = {0: 2, 1: 3, 2: 3, 4: 2}
"""Partition of the topic `orders` to the broker it goes to."""


@functools.cache
def skewed() -> Snapshot:
    """All partitions on broker 1; the newest sample is two seconds old."""
    read = read_snapshot(FIXTURE)
    source = Source(
        name="probe", newest_sample_ms=AT_MS - 2000, window_s=15.0, samples=240, measured_share=1.0
    )
    update = {"cluster_id": CLUSTER_ID, "sources": (source,)}
    return Snapshot(read.header.model_copy(update=update), read.partitions)


@functools.cache
def balanced_cluster() -> Snapshot:
    """The same after the plan."""
    homes = [TARGETS.get(row, 1) for row in range(len(skewed()))]
    columns = skewed().partitions
    brokers = columns.replica_broker.copy()
    brokers[:] = homes
    return Snapshot(skewed().header, replace(columns, replica_broker=brokers, leader=brokers))


def moves() -> tuple[Move, ...]:
    return tuple(_move(p, target) for p, target in TARGETS.items())


def _move(partition: int, target: int) -> Move:
    row = skewed().row(partition)
    return Move(
        topic=row.id.topic,
        topic_id=row.topic_id,
        partition=partition,
        storage=row.storage,
        replicas_before=row.replicas,
        replicas_after=(BrokerId(target),),
        leader_before=row.leader,
        leader_after=BrokerId(target),
        bytes_to_copy=row.local_bytes,
        gain=0.9 / (partition + 1),
        reason=f"relieves broker 1 (net_in 200 % over its level); broker {target} is "
        "100 % under its level",
    )


@functools.cache
def plan(hash_: str = HASH) -> Plan:
    before, after = judged(skewed()), evaluate(skewed(), GOALS, moves())
    return Plan(
        cluster_id=CLUSTER_ID,
        snapshot_fingerprint=skewed().fingerprint,
        snapshot_taken_at_ms=AT_MS,
        live_brokers=tuple(b.id for b in skewed().header.brokers),
        goals=GOALS,
        limits=SolveLimits(),
        status=PlanStatus.OPTIMAL,
        objective_before=before.objective,
        objective=after.objective,
        bound=after.objective,
        move_price=after.move_price,
        levels=before.levels,
        brokers=tuple(_change(b.id, before, after) for b in skewed().header.brokers),
        moves=moves(),
        hash=hash_,
    )


def _change(broker: BrokerId, before: Evaluation, after: Evaluation) -> BrokerChange:
    def off(judged: Evaluation) -> dict[str, float]:
        return {r: by[broker] for r, by in judged.deviations.items()}

    return BrokerChange(
        id=broker,
        rack=skewed().broker[broker].rack,
        state=skewed().broker[broker].state,
        before=before.loads[broker],
        after=after.loads[broker],
        deviation_before=off(before),
        deviation_after=off(after),
        replicas_before=0,
        replicas_after=0,
    )


def judged(snapshot: Snapshot) -> Evaluation:
    return evaluate(snapshot, GOALS, ())


def log(*texts: str, level: str = "info") -> tuple[LogLine, ...]:
    """Lines of one moment, the last one at this level."""
    levels = ["info"] * (len(texts) - 1) + [level]
    return tuple(
        LogLine(at_ms=AT_MS, level=level, text=text)
        for level, text in zip(levels, texts, strict=True)
    )


CONNECTING = LoopView(
    at_ms=AT_MS,
    phase=Phase.CONNECTING,
    mode=Mode.APPROVE,
    cluster_name=NAME,
    bootstrap="127.0.0.1:9092",
    message="waiting for the first answer of the cluster",
    brokers=(),
    snapshot=None,
    evaluation=None,
    plan=None,
    run=None,
    log=(),
)

UNREACHABLE = replace(
    CONNECTING,
    phase=Phase.UNREACHABLE,
    message="no answer from 127.0.0.1:9092 within 10 s; check the address and that the "
    "brokers run.",
    retry=Retry(attempt=2, since_ms=AT_MS, wait_s=5.0),
    log=log("cannot connect: no answer from 127.0.0.1:9092", level="warning"),
)


def measuring() -> LoopView:
    message = "measuring the load of each partition"
    return replace(
        CONNECTING,
        phase=Phase.MEASURING,
        message=message,
        brokers=skewed().header.brokers,
        replication=Replication(under_replicated=0, offline=0),
        log=log(f"measuring: {message}"),
    )


def solving() -> LoopView:
    return replace(
        measuring(),
        phase=Phase.SOLVING,
        message="the cluster is uneven",
        snapshot=skewed(),
        evaluation=judged(skewed()),
        log=(*measuring().log, *log("solving: the cluster is uneven")),
    )


def plan_ready(mode: Mode = Mode.APPROVE, *, of: Plan | None = None) -> LoopView:
    made = of or plan()
    message = f"optimal: 4 moves, imbalance 12 -> {made.objective:.4g}, bound {made.bound:.4g}"
    return replace(
        solving(),
        phase=Phase.PLAN_READY,
        mode=mode,
        message=message,
        plan=made,
        log=(*solving().log, *log(f"plan ready: {message}")),
    )


def progress(state: RunState = RunState.RUNNING) -> RunProgress:
    """One move done, one half copied, two to come; all done in a run that is done."""
    ended = [
        MoveProgress(
            move=move,
            state=MoveState.DONE,
            issued_at_ms=AT_MS - 6000,
            done_at_ms=AT_MS - 3600,
            bytes_copied=move.bytes_to_copy,
        )
        for move in moves()
    ]
    under_way = [
        ended[0],
        MoveProgress(
            move=moves()[1],
            state=MoveState.ISSUED,
            issued_at_ms=AT_MS - 3000,
            bytes_copied=(moves()[1].bytes_to_copy or 0) // 2,
        ),
        *(MoveProgress(move=move) for move in moves()[2:]),
    ]
    return RunProgress(
        run_id=RUN_ID,
        plan_hash=HASH,
        state=state,
        moves=tuple(ended if state is RunState.DONE else under_way),
        started_at_ms=AT_MS - 10_000,
        health=health() if state is not RunState.REFUSED else None,
    )


def health() -> RunHealth:
    """All well, four seconds ago."""
    return RunHealth(
        at_ms=AT_MS - 4000,
        answer_s=0.009,
        first_answer_s=0.004,
        offline=0,
        under_replicated=0,
        under_min_isr=0,
        disk=FreeDisk(broker=BrokerId(3), free_bytes=43_000_000_000, first_bytes=50_000_000_000),
    )


def lag() -> RunLag:
    """Consumers that keep up."""
    now = ConsumerLag(records=1200, seconds=0.4, topic=TopicName("orders"))
    return RunLag(run_id=RUN_ID, now=now, first_records=900, most_seconds=1.1)


def running() -> LoopView:
    message = f"carrying out plan {HASH[:12]}"
    return replace(
        plan_ready(),
        phase=Phase.RUNNING,
        message=message,
        run=progress(),
        lag=lag(),
        log=(*plan_ready().log, *log("plan approved by ann", f"running: {message}")),
    )


def balanced_after_run() -> LoopView:
    message = "largest deviation from the average: bytes in 2 %, bytes out 2 %"
    return replace(
        running(),
        phase=Phase.BALANCED,
        message=message,
        snapshot=balanced_cluster(),
        evaluation=judged(balanced_cluster()),
        plan=None,
        run=progress(RunState.DONE),
        log=(*running().log, *log("run done: 4 moves", f"balanced: {message}")),
    )


def failed() -> LoopView:
    message = (
        "the cluster refused DescribeLogDirs for want of a right; allow plimsoll's "
        "principal DESCRIBE on the cluster and start again"
    )
    return replace(
        plan_ready(),
        phase=Phase.FAILED,
        message=message,
        plan=None,
        log=(*plan_ready().log, *log(f"failed: {message}", level="error")),
    )


def disconnected() -> LoopView:
    """Data stay visible, also while brokers are queried again."""
    return replace(
        plan_ready(),
        phase=Phase.UNREACHABLE,
        message="no answer from 127.0.0.1:9092 within 10 s",
        brokers=(),
        retry=Retry(attempt=4, since_ms=AT_MS, wait_s=5.0),
    )


def no_partitions() -> LoopView:
    header, columns = skewed().header, skewed().partitions
    empty = Snapshot(
        header.model_copy(update={"topics": ()}), partitions_from_rows((), (), columns.loads[:0])
    )
    message = "no resource is loaded enough to be balanced"
    return replace(
        solving(), phase=Phase.BALANCED, message=message, snapshot=empty, evaluation=judged(empty)
    )


def estimated() -> LoopView:
    """The first samples: most loads are not measured yet; capacities are known."""
    header = skewed().header
    sources = tuple(s.model_copy(update={"measured_share": 0.4}) for s in header.sources)
    capacity = {Resource.NET_IN: 10e6, Resource.NET_OUT: 4e6}
    brokers = tuple(b.model_copy(update={"capacity": capacity}) for b in header.brokers)
    known = Snapshot(
        header.model_copy(update={"sources": sources, "brokers": brokers}), skewed().partitions
    )
    return replace(solving(), brokers=brokers, snapshot=known, evaluation=judged(known))


def competing_rebalancer() -> LoopView:
    message = (
        "Confluent's Self-Balancing is on (confluent.balancer.enable=true) and would "
        "undo these moves. Set it to false on brokers and controllers; until then "
        "plimsoll makes plans but executes none."
    )
    return replace(
        plan_ready(),
        phase=Phase.NO_PLAN,
        plan=None,
        message=message,
        log=(*plan_ready().log, *log(f"no plan: {message}", level="error")),
    )


@dataclass
class FakeProposals:
    """Records its calls."""

    refuses: PlimsollError | None = None
    """Error raised by each request."""
    asked: list[PlanOverrides] = field(default_factory=list)
    stopped: int = 0
    undone: int = 0
    traced: int = 0
    chosen: list[int] = field(default_factory=list)
    supposed: list[Scenario | None] = field(default_factory=list)

    def ask(self, asks: PlanOverrides) -> None:
        self._refuse()
        self.asked.append(asks)

    def undo(self) -> None:
        self._refuse()
        self.undone += 1

    def use_best(self) -> None:
        self.stopped += 1

    def trace(self) -> None:
        self._refuse()
        self.traced += 1

    def choose(self, point: int) -> None:
        self._refuse()
        self.chosen.append(point)

    def suppose(self, scenario: Scenario | None) -> None:
        self._refuse()
        self.supposed.append(scenario)

    def _refuse(self) -> None:
        if self.refuses is not None:
            raise self.refuses


@dataclass
class FakePast:
    """Records its calls."""

    interrupted: PastRun | None = None
    listed: Sequence[PastRun] = ()
    replayed: Replay | None = None
    back: tuple[Plan, list[str]] | PlimsollError | None = None
    """The rollback plan, or the reason why there is none."""
    refuses: PlimsollError | None = None
    """Error raised by `resume` and `roll_back`."""
    resumed: list[str] = field(default_factory=list)
    rolled_back: list[tuple[str, str]] = field(default_factory=list)

    def runs(self) -> tuple[PastRun, ...]:
        return tuple(self.listed)

    def replay(self, run_id: str) -> Replay:
        if self.replayed is None:
            raise ConfigError(f"cannot read the journal of {run_id}")
        return self.replayed

    def resume(self, by: str) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.resumed.append(by)

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        assert self.back is not None
        if isinstance(self.back, PlimsollError):
            raise self.back
        return self.back

    def roll_back(self, plan: Plan, by: str) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.rolled_back.append((plan.hash, by))


@dataclass
class FakeTasks:
    """Records its calls."""

    listed: TaskListing = field(default_factory=TaskListing)
    plan: Plan | None = None
    """The plan that waits for approval."""
    idle: str = ""
    """What a requested task does without a plan; empty where it has one."""
    refuses: PlimsollError | None = None
    """Error raised by each request."""
    readings: int = 0
    cancelled: list[tuple[str, str]] = field(default_factory=list)
    requested: list[tuple[str, str, str]] = field(default_factory=list)
    """What, the hash of its plan if it has one, and by whom."""
    marked: list[tuple[tuple[BrokerId, ...], str, bool]] = field(default_factory=list)
    """Brokers, by whom, and whether they were excluded."""
    said: str = ""
    """What became of cordons."""

    def listing(self, cluster_id: str) -> TaskListing:
        self.readings += 1
        return self.listed

    def cancel(self, task_id: str, by: str) -> str:
        if self.refuses is not None:
            raise self.refuses
        self.cancelled.append((task_id, by))
        return self.said

    def proposed(
        self,
        operation: Operation,
        named: NamedBrokers,
        snapshot: Snapshot,
        by: str,
        onto: int | None = None,
    ) -> ProposedTask:
        if self.refuses is not None:
            raise self.refuses
        brokers = named.among(snapshot.header.brokers)
        new = None if onto is None else BrokerId(onto)
        task = BrokerTask.requested(
            f"{operation}-new", CLUSTER_ID, operation, brokers, by=by, ms=AT_MS, onto=new
        )
        if self.idle:
            return ProposedTask(task=task, found=None, note=self.idle)
        note = "no plan empties it with fewer bytes"
        return ProposedTask(task=task, found=FoundPlan.of(plan(), note, left=4), note=note)

    def request(self, proposed: ProposedTask, by: str) -> ResumedTask:
        hash_ = "" if proposed.found is None else proposed.found.plan.hash
        self.requested.append((proposed.task.words(), hash_, by))
        # Nothing works on it here.
        tasks = cast("ContinuedTasks", None)
        return ResumedTask(tasks=tasks, task=proposed.task, by=by, approved=hash_)

    def markable(
        self, named: NamedBrokers, snapshot: Snapshot, *, excluded: bool
    ) -> tuple[BrokerId, ...]:
        if self.refuses is not None:
            raise self.refuses
        return named.among(snapshot.header.brokers)

    def exclude(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        self.marked.append((tuple(brokers), by, True))
        return self.said

    def include(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        self.marked.append((tuple(brokers), by, False))
        return self.said

    def waiting_plan(self, task_id: str) -> Plan | None:
        return self.plan

    def resumed(self, task_id: str, by: str, approved: str = "") -> OpenTask:
        if self.refuses is not None:
            raise self.refuses
        return FakeTask(title=task_id, by=by, approved=approved)


@dataclass(frozen=True)
class FakeTask:
    """A task that was passed on."""

    title: str
    by: str
    approved: str

    def work(self, site: TaskSite) -> str:
        raise NotImplementedError


FORECAST = Forecast(
    seconds=75.0,
    least_s=70.0,
    order=(),
    bytes_to_copy=33_500_000,
    peaks={BrokerId(2): Peak(more_bytes=18_000_000), BrokerId(3): Peak(more_bytes=7)},
    free_bytes={BrokerId(2): 50_000_000_000},
    unknown=0,
    unfit=(),
    known=0,
    leaders_s=3.0,
)


@dataclass
class FakeLoop:
    """Shows the given views and records its calls."""

    view: LoopView = CONNECTING
    running: bool = False
    refuses: PlimsollError | None = None
    """Error raised by `approve`."""
    approved: list[tuple[str, str]] = field(default_factory=list)
    plans_wanted: int = 0
    previews: int = 0
    actions: list[str] = field(default_factory=list)
    steering: Steering = field(default_factory=Steering)
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    keys: dict[str, str] = field(default_factory=dict)
    proposals: FakeProposals = field(default_factory=FakeProposals)
    subscribers: list[Callable[[LoopView], None]] = field(default_factory=list)
    reports: tuple[RunReport, ...] = ()
    clock: Callable[[], float] = time.time
    previous_runs: FakePast = field(default_factory=FakePast)
    tasks: FakeTasks | None = field(default_factory=FakeTasks)
    auto_watch: AutoWatchPort | None = None
    worked_on: list[OpenTask] = field(default_factory=list)
    forecast: Forecast | PlimsollError = FORECAST
    """Value returned or error raised by `preview`."""

    @property
    def settings(self) -> LoopSettings:
        return LoopSettings(
            bootstrap=self.view.bootstrap,
            name=NAME,
            mode=self.view.mode,
            goals=GOALS,
            solve=SolveLimits(),
            limits=EAGER,
            journal_dir=Path("journal"),
            screen=self.screen,
            keys=self.keys,
        )

    def show(self, view: LoopView, *, running: bool | None = None) -> None:
        """Publish a view like the loop does."""
        self.view = view
        self.running = view.phase is Phase.RUNNING if running is None else running
        for subscriber in self.subscribers:
            subscriber(view)

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        self.subscribers.append(subscriber)

    def approve(self, plan_hash: str, by: str) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.approved.append((plan_hash, by))

    def preview(self, plan: Plan) -> Forecast:
        self.previews += 1
        if isinstance(self.forecast, PlimsollError):
            raise self.forecast
        return self.forecast

    def work_on(self, task: OpenTask) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.worked_on.append(task)

    def acted(self, words: str) -> None:
        self.actions.append(words)

    def plan_again(self) -> None:
        self.plans_wanted += 1

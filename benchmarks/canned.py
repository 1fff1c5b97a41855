"""A loop that only shows: a large cluster, its plan, and a run of it.

Takes whatever is asked of it, and does nothing.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from control.loop.dependencies import LoopSettings, OpenTask
from control.loop.questions import Question
from control.loop.view import LOG_LINES, LogLine, LoopView, Mode, Phase
from control.planning.plan_overrides import PlanOverrides
from control.planning.plan_view import PlanningView, Solving, TracedFrontier
from control.service.auto_watch import AutoSeen
from control.settings.auto_limits import EAGER
from control.tasks.broker_task import BrokerTask, Operation
from control.tasks.operator_tasks import ProposedTask, ResumedTask
from control.tasks.task_listing import ListedTask, TaskListing
from control.tasks.task_parts import FoundPlan
from control.tasks.task_request import NamedBrokers
from executor.journal.journal_replay import Replay
from executor.journal.run_history import PastRun
from executor.run.operator_control import Steering
from executor.schedule.estimate import Forecast, forecast
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.errors import GuardrailRefused
from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.frontier import Frontier, FrontierPoint
from model.plan.plan import Plan
from model.run import (
    JournalEvent,
    JournalRecord,
    MoveProgress,
    MoveState,
    RunProgress,
    RunReport,
    RunState,
)
from model.snapshot.snapshot import Snapshot, StorageKind
from model.snapshot.what_if import Scenario

NAME: Final = "bench"
TASKS: Final = 100
AT_MS: Final = 1_700_000_000_000
GOALS: Final = Goals()
SEED: Final = 7
IN_FLIGHT: Final = 30
"""Moves of a run that copy."""
RUNS: Final = 20
RUN_MOVES: Final = 200
"""Of each of them."""
LOG_EVERY_S: Final = 10
SWELL: Final = 0.05
"""How much loads go up and down."""
STATES: Final = 10
"""Snapshots that follow each other, again and again."""


def snapshots(brokers: int, partitions: int) -> tuple[Snapshot, ...]:
    """A cluster in each of some seconds: placement stays, loads go up and down."""
    shape = ClusterShape(
        brokers=brokers, partitions=partitions, rf=3, racks=3, hot=True, young=False
    )
    name = ClusterName(cluster_id=NAME, taken_at_ms=AT_MS)
    rng = np.random.default_rng(SEED)
    mean = cluster(shape, StorageKind.REPLICATED, name, rng)
    phases = rng.uniform(0.0, 2 * np.pi, (partitions, 1))
    found = []
    for second in range(STATES):
        swell = 1 + SWELL * np.sin(phases + 2 * np.pi * second / STATES)
        header = mean.header.model_copy(update={"taken_at_ms": AT_MS + 1000 * second})
        columns = replace(mean.partitions, loads=mean.partitions.loads * swell)
        found.append(Snapshot(header, columns))
    return tuple(found)


def ready(snapshot: Snapshot, plan: Plan) -> LoopView:
    """The plan waits for approval; its frontier has been traced."""
    return LoopView(
        at_ms=AT_MS,
        phase=Phase.PLAN_READY,
        mode=Mode.APPROVE,
        cluster_name=NAME,
        bootstrap="127.0.0.1:9092",
        message=f"{plan.status}: {len(plan.moves)} moves",
        brokers=snapshot.header.brokers,
        snapshot=snapshot,
        evaluation=evaluate(snapshot, GOALS, ()),
        plan=plan,
        run=None,
        log=tuple(log_line(number) for number in range(LOG_LINES)),
        proposed=PlanningView(asks=_asks(plan), traced=_traced(snapshot, plan)),
    )


def solving(view: LoopView) -> LoopView:
    """Another plan is being made."""
    proposed = replace(view.proposed, solving=Solving(started_at_ms=AT_MS))
    return replace(view, phase=Phase.SOLVING, proposed=proposed)


def running(view: LoopView, second: int = 0) -> LoopView:
    """The view while the plan has been running for so many seconds."""
    assert view.plan is not None
    run = progress(view.plan, RunState.RUNNING, second)
    return replace(view, phase=Phase.RUNNING, run=run)


def stopped(view: LoopView, second: int) -> LoopView:
    """A run was stopped after so many seconds; another plan waits for approval."""
    assert view.plan is not None
    return replace(view, run=progress(view.plan, RunState.STOPPED, second))


def log_line(number: int) -> LogLine:
    """One of many."""
    level = "warning" if number % 7 == 0 else "info"
    text = f"balanced: largest deviation from the average: net_in {number % 97}.0 %"
    return LogLine(at_ms=AT_MS + 1000 * number, level=level, text=text)


def progress(plan: Plan, state: RunState, second: int) -> RunProgress:
    """A move is done each second, and the next ones copy."""
    return RunProgress(
        run_id=f"20231114T221320-{plan.hash[:8]}",
        plan_hash=plan.hash,
        state=state,
        moves=tuple(_moves(plan, second)),
        started_at_ms=AT_MS,
        left_s=float(max(0, len(plan.moves) - second)),
    )


def _moves(plan: Plan, done: int) -> Iterator[MoveProgress]:
    for at, move in enumerate(plan.moves):
        if at < done:
            yield MoveProgress(
                move=move,
                state=MoveState.DONE,
                issued_at_ms=AT_MS,
                done_at_ms=AT_MS + 1000 * at,
                bytes_copied=move.bytes_to_copy,
            )
        elif at < done + IN_FLIGHT:
            share = (done + IN_FLIGHT - at) / IN_FLIGHT
            yield MoveProgress(
                move=move,
                state=MoveState.ISSUED,
                issued_at_ms=AT_MS + 1000 * done,
                bytes_copied=int(share * (move.bytes_to_copy or 0)),
            )
        else:
            yield MoveProgress(move=move)


def _asks(plan: Plan) -> PlanOverrides:
    return PlanOverrides().dropping(plan.moves[-1].id)


def _traced(snapshot: Snapshot, plan: Plan) -> TracedFrontier:
    points = tuple(
        FrontierPoint(
            cost=float(cost),
            balance=plan.objective_before / (1 + cost),
            bound=0.0,
            moves=cost,
            leader_changes=cost,
            bytes_to_copy=cost,
            move_price=plan.move_price,
        )
        for cost in range(20)
    )
    frontier = Frontier(
        cluster_id=plan.cluster_id,
        snapshot_fingerprint=plan.snapshot_fingerprint,
        goals=plan.goals,
        limits=plan.limits,
        measure="deviation",
        move_price=plan.move_price,
        balance_before=plan.objective_before,
        points=points,
        knee=5,
        chosen=10,
        lines=(),
        lower=(),
    )
    answers = tuple(None for _ in points)
    return TracedFrontier(frontier=frontier, snapshot=snapshot, answers=answers)


class CannedProposals:
    """Accepts every request, and does nothing."""

    def ask(self, asks: PlanOverrides) -> None:
        """Make no plan."""

    def undo(self) -> None:
        """No request can be undone."""

    def use_best(self) -> None:
        """There is no solve."""

    def trace(self) -> None:
        """There is a frontier."""

    def choose(self, point: int) -> None:
        """The plan stays."""

    def suppose(self, scenario: Scenario | None) -> None:
        """No what-if is planned."""


class CannedPast:
    """The same run, again and again."""

    interrupted: PastRun | None = None

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._short = plan.model_copy(update={"moves": plan.moves[:RUN_MOVES]})
        self._runs = tuple(self._run(day) for day in range(RUNS))

    def runs(self) -> tuple[PastRun, ...]:
        """One a day."""
        return self._runs

    def replay(self, run_id: str) -> Replay:
        """All of the run."""
        records = [self._record(run_id, JournalEvent.STARTED, None)]
        for number in range(len(self._short.moves)):
            records.append(self._record(run_id, JournalEvent.ISSUING, number))
            records.append(self._record(run_id, JournalEvent.MOVED, number))
        return Replay(plan=self._short, records=tuple(records))

    def resume(self, by: str) -> None:
        """Nothing goes on."""

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """As large as the plan itself."""
        return self._plan, []

    def roll_back(self, plan: Plan, by: str) -> None:
        """Nothing goes back."""

    def _run(self, day: int) -> PastRun:
        done = progress(self._short, RunState.DONE, RUN_MOVES)
        at_ms = AT_MS - 86_400_000 * day
        return PastRun(
            run_id=f"day-{day}",
            plan=self._short,
            started_at_ms=at_ms,
            last_at_ms=at_ms + 1000,
            throttled=None,
            suspended_balancer=None,
            lowered_segments=None,
            cancelling=frozenset(),
            moves={of.move.id: of for of in done.moves},
            state=RunState.DONE,
        )

    def _record(self, run_id: str, event: JournalEvent, number: int | None) -> JournalRecord:
        move = None if number is None else self._plan.moves[number]
        return JournalRecord(
            at_ms=AT_MS + 1000 * (number or 0),
            event=event,
            run_id=run_id,
            plan_hash=self._plan.hash,
            cluster_id=NAME,
            topic=None if move is None else move.topic,
            partition=None if move is None else move.partition,
            detail={"again": False, "bytes": 0},
        )


class CannedTasks:
    """Many tasks without a process that works on them."""

    def __init__(self, plan: Plan) -> None:
        """plan: of whatever is requested."""
        self._plan = plan
        self._listed = TaskListing(tasks=tuple(map(_listed_task, range(TASKS))))

    def listing(self, cluster_id: str) -> TaskListing:
        """All of them."""
        return self._listed

    def cancel(self, task_id: str, by: str) -> str:
        """Nothing is cancelled."""
        return ""

    def proposed(
        self,
        operation: Operation,
        named: NamedBrokers,
        snapshot: Snapshot,
        by: str,
        onto: int | None = None,
    ) -> ProposedTask:
        """The same plan for each request."""
        brokers = named.among(snapshot.header.brokers)
        task = BrokerTask.requested(f"{operation}-new", NAME, operation, brokers, by=by, ms=AT_MS)
        return ProposedTask(task=task, found=FoundPlan.of(self._plan, "", left=0), note="")

    def request(self, proposed: ProposedTask, by: str) -> ResumedTask:
        """Nothing is stored."""
        raise GuardrailRefused("these tasks are only shown")

    def markable(
        self, named: NamedBrokers, snapshot: Snapshot, *, excluded: bool
    ) -> tuple[BrokerId, ...]:
        """All that are named."""
        return named.among(snapshot.header.brokers)

    def exclude(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        """Nothing is marked."""
        return ""

    def include(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        """Nothing is marked."""
        return ""

    def waiting_plan(self, task_id: str) -> Plan | None:
        """No plan waits for approval."""
        return None

    def resumed(self, task_id: str, by: str, approved: str = "") -> OpenTask:
        """No task can be resumed."""
        raise GuardrailRefused("these tasks are only shown")


def _listed_task(number: int) -> ListedTask:
    operation = (Operation.REMOVE, Operation.DEMOTE, Operation.ADD)[number % 3]
    task_id = f"{operation}-{number}"
    brokers = (BrokerId(number),)
    task = BrokerTask.requested(task_id, NAME, operation, brokers, by="ann", ms=AT_MS)
    return ListedTask(task=task)


class CannedAuto:
    """A `run --auto` that leaves a plan to a person."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        question = Question(
            asked_at_ms=AT_MS,
            cluster_id=NAME,
            plan_hash=plan.hash,
            trigger_name="uneven_load",
            reason="uneven_load asks",
            moves=len(plan.moves),
            bytes_to_copy=None,
        )
        self._seen = AutoSeen(
            decision="ask", why=question.why, reconsidered="at any moment", waiting=question
        )

    def seen(self, cluster_id: str, now_ms: int) -> AutoSeen:
        """The same at any time."""
        return self._seen

    def plan(self, plan_hash: str) -> Plan:
        """The plan that waits."""
        return self._plan

    def approve(self, plan_hash: str, by: str, now_ms: int) -> None:
        """No run begins."""


class CannedLoop:
    """Shows the views that it is given."""

    reports: tuple[RunReport, ...] = ()

    def __init__(self, view: LoopView, *, running: bool = False, auto: bool = False) -> None:
        """auto: whether another process leaves the plan to a person."""
        assert view.plan is not None
        self.view = view
        self.running = running
        self.steering = Steering()
        self.proposals = CannedProposals()
        self.previous_runs = CannedPast(view.plan)
        self.tasks = CannedTasks(view.plan)
        self.auto_watch = CannedAuto(view.plan) if auto else None
        self.settings = LoopSettings(
            bootstrap=view.bootstrap,
            name=NAME,
            mode=view.mode,
            goals=GOALS,
            solve=SolveLimits(),
            limits=EAGER,
            journal_dir=Path("journal"),
        )
        self._forecasts: dict[str, Forecast] = {}
        self._subscribers: list[Callable[[LoopView], None]] = []

    def clock(self) -> float:
        """The time of the view."""
        return self.view.at_ms / 1000

    def show(self, view: LoopView) -> None:
        """Publish a view as the loop does."""
        self.view = view
        for subscriber in self._subscribers:
            subscriber(view)

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call it with each view that is shown."""
        self._subscribers.append(subscriber)

    def approve(self, plan_hash: str, by: str) -> None:
        """No run begins."""

    def preview(self, plan: Plan) -> Forecast:
        """Nothing is asked of a cluster; a plan is estimated once."""
        if plan.hash not in self._forecasts:
            self._forecasts[plan.hash] = forecast(plan, RunLimits(), Pace.of([]))
        return self._forecasts[plan.hash]

    def work_on(self, task: OpenTask) -> None:
        """No run begins."""

    def acted(self, words: str) -> None:
        """Nothing is logged."""

    def plan_again(self) -> None:
        """No plan is made."""


def seconds(first: LoopView, states: Sequence[Snapshot]) -> Iterator[LoopView]:
    """A view for each second of a run: other loads, more copied, a log that grows."""
    evaluations = [evaluate(state, GOALS, ()) for state in states]
    log = first.log
    for second in itertools.count():
        at = second % len(states)
        if second % LOG_EVERY_S == 0:
            log = (*log[1 - LOG_LINES :], log_line(second))
        yield replace(
            running(first, second),
            at_ms=AT_MS + 1000 * second,
            snapshot=states[at],
            evaluation=evaluations[at],
            log=log,
        )

"""Try one policy: the loop's own code on a simulated cluster, by a clock that jumps.

Between two turns of the loop, time jumps to the next moment at which a decision could change: new
loads, a broker that dies or returns, or the end of a wait that the loop is in. Planning takes no
simulated time; runs do.
"""

import logging
import math
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.holding_rule import holding_rule
from control.loop.loop import Loop
from control.loop.policy import Decision, DecisionInputs, earliest_change_s
from control.loop.view import LoopView, Mode
from control.planning.background_call import AtOnce
from control.planning.planner import Planner, planner
from control.settings.auto_limits import AutoLimits
from control.settings.schedule_table import ScheduleTable
from control.settings.trigger_table import Response, Trigger, TriggerTable
from control.simulation.hindsight import Hindsight
from control.simulation.outcome import HOUR_S, HourFigures, PolicyOutcome
from control.simulation.tally import Tally
from executor.journal.run_history import RunUsage
from lab.simulated_cluster.quiet_observer import QuietObserver
from lab.time_lapse.time_lapse_cluster import Course, TimeLapseCluster
from lab.time_lapse.time_lapse_executor import COPY_RATE, TimeLapseExecutor
from model.evaluate import Evaluation
from model.goals.effort import Effort
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.plan import Move, Plan
from model.run import RunReport, RunState
from model.snapshot.snapshot import Broker, RecentMove, Snapshot
from model.stop_rules import StopRules
from solver.report.result import Result
from solver.search.observer import SolveObserver

if TYPE_CHECKING:
    from executor.run.operator_control import Steering
    from model.run import RunProgress

TICK_S: Final = 0.5
"""Time between two turns while the loop is about to do something."""
LOGGER: Final = "plimsoll.control"
FOLDER: Final = "plimsoll-simulate-"
"""Prefix of temporary folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPolicy:
    """A policy with its name, and what else decides what the loop does."""

    name: str
    limits: AutoLimits
    goals: Goals
    triggers: TriggerTable = field(default_factory=TriggerTable)
    schedule: ScheduleTable = field(default_factory=ScheduleTable)
    effort: Effort = Effort.GOOD
    dead_broker_after_s: float = 3600.0
    copy_rate: float = COPY_RATE
    """Bytes/s that a broker copies in each direction during a run."""
    stop_rules: StopRules = field(default_factory=StopRules)
    """Those on the window and on brokers that die act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A simulation: the course of the cluster, its length, and the search budget of each plan."""

    course: Course
    length_s: float
    solve: SolveLimits


def try_policy(
    policy: TrialPolicy,
    trial: Trial,
    *,
    plan: Planner = planner,
    passed: Callable[[float], None] = lambda _share: None,
    folder: Path | None = None,
) -> PolicyOutcome:
    """Simulate one policy; equal arguments give equal outcomes.

    What a run in progress at the end would still have done is not counted.

    passed: called now and then with the share of the simulation that has passed. folder: where
    temporary files are kept; None for the system's folder.
    Raises PlimsollError where the loop fails, which a policy alone cannot make it do. Internal
    errors that the loop survives are logged, each once.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER, dir=folder) as name, _quiet(policy.name):
        return _PolicyTrial(policy, trial, plan, Path(name), passed).run()


@contextmanager
def _quiet(policy: str) -> Iterator[None]:
    """Keep the log of the simulated loop from the program's, but for internal errors."""
    logger, errors = logging.getLogger(LOGGER), _InternalErrors(policy)
    before = logger.level
    logger.setLevel(logging.ERROR)
    logger.addFilter(errors)
    try:
        yield
    finally:
        logger.removeFilter(errors)
        logger.setLevel(before)


class _InternalErrors(logging.Filter):
    """Lets records with an exception pass: each once, in a line that names the policy."""

    def __init__(self, policy: str) -> None:
        super().__init__()
        self._policy = policy
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return False
        words = f"{self._policy}: {record.getMessage()}: internal error: {error!r}"
        if words in self._seen:
            return False
        self._seen.add(words)
        record.msg, record.args, record.exc_info = words, (), None
        return True


@dataclass
class _Records:
    """Runs of the simulation, in place of journals."""

    moves: deque[RecentMove] = field(default_factory=deque)
    usage: deque[RunUsage] = field(default_factory=deque)

    def moves_since(self, cluster_id: str, since_ms: int) -> tuple[RecentMove, ...]:
        del cluster_id
        while self.moves and self.moves[0].at_ms < since_ms:
            self.moves.popleft()
        return tuple(self.moves)

    def usage_since(self, cluster_id: str, since_ms: int) -> tuple[RunUsage, ...]:
        del cluster_id
        while self.usage and self.usage[0].started_at_ms < since_ms:
            self.usage.popleft()
        return tuple(self.usage)


class _Observer(QuietObserver):
    """What the loop sees of the simulated cluster."""

    def __init__(self, cluster: TimeLapseCluster) -> None:
        self._cluster = cluster
        self._seen: Snapshot | None = None
        self._seen_at_s = -math.inf

    def brokers(self) -> tuple[Broker, ...]:
        return self.snapshot().header.brokers

    def snapshot(self) -> Snapshot:
        if self._seen is None or self._cluster.now_s != self._seen_at_s:
            self._seen, self._seen_at_s = self._cluster.snapshot(), self._cluster.now_s
        return self._seen

    def slow(self) -> dict[BrokerId, str]:
        return dict.fromkeys(sorted(self._cluster.slow), "as --fault says")


class _Executor(TimeLapseExecutor):
    """The same, with runs in the records."""

    ended: Callable[[RunReport], None]

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: "Callable[[RunProgress], None]",
        steering: "Steering",
        check: Callable[[], None] | None = None,
    ) -> RunReport:
        report = super().execute(
            plan,
            journal_dir=journal_dir,
            moves_in_flight=moves_in_flight,
            observe=observe,
            steering=steering,
            check=check,
        )
        self.ended(report)
        return report


class _PolicyTrial:
    """One simulation in progress."""

    def __init__(
        self,
        policy: TrialPolicy,
        trial: Trial,
        plan: Planner,
        folder: Path,
        passed: Callable[[float], None],
    ) -> None:
        self._policy, self._passed = policy, passed
        self._cluster = TimeLapseCluster(trial.course)
        self._begin_s = self._cluster.now_s
        self._end_s = self._begin_s + trial.length_s
        self._plan, self._solve = plan, trial.solve
        self._solves = self._turns = 0
        self._evaluation: Evaluation | None = None
        self._decision: tuple[DecisionInputs, Decision] | None = None
        """The newest decision of this turn."""
        self._records = _Records()
        self._hindsight = Hindsight(
            cluster=self._cluster,
            goals=policy.goals,
            limits=policy.limits,
            solve=lambda snapshot, goals: plan(snapshot, goals, trial.solve, SolveObserver(), None),
            heeds_slow=policy.triggers.response(Trigger.SLOW_BROKER) is not Response.OFF,
        )
        # What lasts for seconds at the full hour must not count for all of it.
        self._next_sample_s = self._begin_s + HOUR_S / 2
        self._tally = Tally(
            goals=policy.goals, begin_s=self._begin_s, regret_of=self._hindsight.regret
        )
        self._observer = _Observer(self._cluster)
        self._loop = self._made(folder)
        self._loop.subscribe(self._saw)

    def run(self) -> PolicyOutcome:
        """Simulate to the end."""
        cluster, loop = self._cluster, self._loop
        while cluster.now_s < self._end_s:
            self._turn()
            if loop.error is not None:
                raise loop.error
            wait_s = self._wait_s()
            self._pass(min(cluster.next_change_s, cluster.now_s + wait_s, self._end_s))
        self._tally.close(self._end_s)
        return self._outcome()

    def _made(self, folder: Path) -> Loop:
        policy, cluster = self._policy, self._cluster
        executor = _Executor(
            cluster,
            self._advance,
            self._moved,
            copy_rate=policy.copy_rate,
            stop_rules=policy.stop_rules,
            holds=self._holds,
            ends_s=self._end_s,
        )
        executor.ended = self._run_ended
        settings = LoopSettings(
            bootstrap="simulated",
            operator="simulation",
            name=policy.name,
            mode=Mode.AUTO,
            goals=policy.goals,
            solve=self._solve,
            effort=policy.effort,
            limits=policy.limits,
            triggers=policy.triggers,
            schedule=policy.schedule,
            dead_broker_after_s=policy.dead_broker_after_s,
            stop_rules=policy.stop_rules,
            journal_dir=folder,
            tick_s=TICK_S,
        )
        parts = LoopParts(
            observer=lambda: self._observer,
            planner=self._counted,
            executor=lambda: executor,
            clock=lambda: cluster.now_s,
            steady=lambda: cluster.now_s,
            background=AtOnce,
            records=self._records,
            decided=self._decided,
        )
        return Loop(settings, parts)

    def _counted(
        self,
        snapshot: Snapshot,
        goals: Goals,
        limits: SolveLimits,
        observer: SolveObserver,
        earlier: Plan | None,
    ) -> Result:
        self._solves += 1
        return self._plan(snapshot, goals, limits, observer, earlier)

    def _turn(self) -> None:
        self._turns += 1
        self._decision = None
        self._loop.turn(self._observer)

    def _wait_s(self) -> float:
        """Seconds until the loop could decide something else, were nothing new to be seen."""
        if self._decision is None or self._decision[1] in (Decision.PLAN, Decision.APPROVE):
            # A result is to be taken, or has just been.
            return TICK_S
        facts, step = self._decision
        wait_s = earliest_change_s(facts, step)
        return max(TICK_S, wait_s) if wait_s > 0 else math.inf

    def _advance(self, to_s: float) -> None:
        """Let time pass during a run, while the loop looks on; until the run is to stop at most.

        At the end of the simulation, time stands still.
        """
        cluster, stopping = self._cluster, self._loop.steering.stopping
        stops, to_s = stopping.is_set(), min(to_s, self._end_s)
        while cluster.now_s < to_s and stopping.is_set() == stops:
            self._pass(min(to_s, cluster.next_change_s))
            if cluster.now_s < to_s:
                self._turn()

    def _pass(self, to_s: float) -> None:
        """Let time pass without a turn, and count it."""
        cluster = self._cluster
        while cluster.now_s < to_s:
            if self._next_sample_s <= cluster.now_s < self._end_s:
                self._hindsight.sample()
                self._next_sample_s += HOUR_S
                self._passed((cluster.now_s - self._begin_s) / (self._end_s - self._begin_s))
            next_s = to_s
            if cluster.now_s < self._end_s:
                next_s = min(to_s, self._next_sample_s, self._end_s)
            # A run may end later, which is not counted.
            self._tally.passed(self._evaluation, cluster.now_s, min(next_s, self._end_s))
            cluster.advance(next_s)

    def _saw(self, view: LoopView) -> None:
        self._evaluation = view.evaluation

    def _decided(self, facts: DecisionInputs, step: Decision, reason: str) -> None:
        del reason
        self._decision = facts, step
        self._tally.decided(holding_rule(facts, step))

    def _holds(self, rule: str) -> None:
        self._tally.decided(rule)

    def _moved(self, move: Move) -> None:
        now_s = self._cluster.now_s
        if now_s <= self._end_s:
            self._tally.moved(move, now_s)
        self._records.moves.append(
            RecentMove(
                topic=move.topic,
                partition=move.partition,
                left=move.removed,
                leader_left=_leader_left(move),
                at_ms=int(1000 * now_s),
            )
        )

    def _run_ended(self, report: RunReport) -> None:
        # What the end of the simulation stops is not counted.
        if self._cluster.now_s < self._end_s or report.state is RunState.DONE:
            self._tally.run_ended(report.state is RunState.DONE)
        for each in filter(None, (report, report.rollback)):
            copied = sum(move.bytes_copied or 0 for move in each.moves)
            self._records.usage.append(
                RunUsage(started_at_ms=each.started_at_ms, bytes_copied=copied)
            )

    def _outcome(self) -> PolicyOutcome:
        tally = self._tally
        total, whole, hours = tally.total, tally.whole.hour(0), tuple(tally.hours)
        nothing = HourFigures(at_ms=int(1000 * self._begin_s), outside=0, imbalance=0, deviation=0)
        return PolicyOutcome(
            policy=self._policy.name,
            outside=whole.outside,
            imbalance=whole.imbalance,
            worst=max(hours, key=lambda hour: hour.imbalance, default=nothing),
            runs=total.runs,
            stopped_runs=total.stopped,
            moves=total.moves,
            leader_changes=total.leader_changes,
            bytes_copied=total.bytes_copied,
            undone=total.undone,
            regret=sum(day.regret for day in tally.days) / max(1, len(tally.days)),
            held=tally.held,
            solves=self._solves,
            turns=self._turns,
            days=tuple(tally.days),
            hours=hours,
        )


def _leader_left(move: Move) -> BrokerId | None:
    """The broker that passes on the leadership and keeps a replica; None where there is none."""
    before = move.leader_before
    return before if before != move.leader_after and before in move.replicas_after else None

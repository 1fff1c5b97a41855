"""One process that runs the loop of `--auto`: it decides, plans, approves within limits and runs.

Loop, questions, decisions and executor are the shipped code. The planner is a greedy one, which in
some worlds ignores the budgets, so that the loop has to refuse its plans. While a run pauses, the
loop continues its turns, as it does beside a run in a thread.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.fire.auto_invariants import AutoInvariants
from benchmarks.fire.scenarios import CLUSTER_ID, RACKS, Scenario, twin
from control.loop import questions
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import RETRY_S, Loop
from control.loop.policy import Decision, DecisionInputs
from control.loop.view import Mode
from control.planning.background_call import AtOnce
from executor.executor import Executor
from executor.run.operator_control import Steering
from executor.timing import Timing
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.quiet_observer import QuietObserver
from model.errors import ClusterUnreachable, ConfigError, GuardrailRefused, PlanOutdated
from model.goals.goals import Goals, SolveLimits
from model.ids import NO_BROKER, BrokerId
from model.plan.plan import Plan, PlanStatus
from model.plan.proposal import Proposal
from model.run import RunReport
from model.snapshot.snapshot import (
    Bools,
    Broker,
    BrokerState,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    Topic,
    partitions_from_rows,
)
from solver.report.given_plan import given_plan
from solver.report.result import Result

if TYPE_CHECKING:
    from model.errors import PlimsollError

TURN_S: Final = 4.0
"""Time between two turns of a loop."""
_SAMPLE_S: Final = 6.0
"""Time between two snapshots."""
_MOST_MOVES: Final = 4
_PERSON: Final = "ada"
_GOALS: Final = Goals(cooldown={})
_RESOURCES: Final = (Resource.NET_IN, Resource.DISK)


@dataclass(slots=True, kw_only=True)
class WorldObserver(QuietObserver):
    """What a collector beside the loop knows: the newest snapshot that it could take."""

    scenario: Scenario
    cluster: SimulatedCluster
    timing: Timing
    is_cut: Callable[[], bool]
    _seen: Snapshot | None = None
    _next_s: float = -np.inf

    def brokers(self) -> tuple[Broker, ...]:
        """As of the newest snapshot."""
        found = self.snapshot()
        return () if found is None else found.header.brokers

    def snapshot(self) -> Snapshot | None:
        """The newest one; another one every few seconds while the cluster can be reached."""
        now_s = self.timing.steady_s()
        if now_s >= self._next_s and not self.is_cut():
            self._seen, self._next_s = self._taken(), now_s + _SAMPLE_S
        return self._seen

    def _taken(self) -> Snapshot:
        of = self.cluster.partitions
        pids = sorted(of)
        storage = {pid.topic: of[pid].storage for pid in pids}
        ids = {pid.topic: of[pid].topic_id for pid in pids}
        topics = [
            Topic(name=name, topic_id=topic_id, storage=storage[name])
            for name, topic_id in sorted(ids.items())
        ]
        size = int(self.scenario.log_bytes)
        rows = [
            PartitionRow(
                id=pid,
                topic_id=of[pid].topic_id,
                storage=of[pid].storage,
                internal=False,
                replicas=tuple(of[pid].target),
                leader=of[pid].leader,
                size_bytes=size,
                local_bytes=size,
            )
            for pid in pids
        ]
        alive = self.cluster.alive
        header = SnapshotHeader(
            cluster_id=CLUSTER_ID,
            taken_at_ms=self.timing.now_ms(),
            brokers=tuple(
                Broker(
                    id=BrokerId(b),
                    rack=rack,
                    state=BrokerState.ALIVE if b in alive else BrokerState.DEAD,
                )
                for b, rack in enumerate(RACKS, 1)
            ),
            topics=tuple(topics),
            resources=_RESOURCES,
        )
        loads = np.array([[1e8, float(size)]] * len(rows)).reshape(-1, 2)
        return Snapshot(header, partitions_from_rows(topics, rows, loads))


class WatchedExecutor:
    """The shipped executor as the loop sees it; each run is checked before it begins."""

    def __init__(self, process: "LoopProcess", executor: Executor) -> None:
        self._process, self._executor = process, executor

    def execute(self, plan: Plan, **how: Any) -> RunReport:
        """As of the executor."""
        process = self._process
        process.invariants.begins(plan, process.name, process.timing.steady_s())
        return self._run(lambda: self._executor.execute(plan, **how), how["steering"])

    def resume(self, **how: Any) -> RunReport:
        """As of the executor."""
        self._process.invariants.resumes(self._process.name)
        return self._run(lambda: self._executor.resume(**how), how["steering"])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def _run(self, run: Callable[[], RunReport], steering: Steering) -> RunReport:
        process = self._process
        process.steers(steering)
        process.is_running, has_reported = True, False
        try:
            report = run()
            has_reported = True
        finally:
            process.is_running = False
            now_s = process.timing.steady_s()
            process.invariants.ends(process.name, now_s, has_reported=has_reported)
        process.reported(report)
        return report


@dataclass(slots=True, kw_only=True)
class LoopProcess:
    """One process with a loop; it knows only its disk and the bucket."""

    scenario: Scenario
    name: str
    folder: Path
    timing: Timing
    cluster: SimulatedCluster
    executor: Callable[[Timing], Executor]
    is_cut: Callable[[], bool]
    """Whether the cluster cannot be reached."""
    is_healed: Callable[[], bool]
    invariants: AutoInvariants
    steers: Callable[[Steering], None]
    """Receives what steers the run that begins."""
    note: Callable[..., None]
    """Adds to the trace of the world."""
    reported: Callable[[RunReport], None]
    resumes: bool
    """Whether it resumes the run that an earlier process left."""
    is_running: bool = False
    _asked_s: dict[str, float] = field(default_factory=dict)
    _is_turning: bool = False

    def act(self) -> bool:
        """Turn until nothing fails any more."""
        observer = WorldObserver(
            scenario=self.scenario, cluster=self.cluster, timing=self.timing, is_cut=self.is_cut
        )
        timing = replace(self.timing, pause=lambda seconds: self._pause(seconds, loop, observer))
        loop = self._loop(timing, observer)
        try:
            while not self.is_healed():
                wait_s = TURN_S
                try:
                    loop.turn(observer)
                except ClusterUnreachable:
                    wait_s = RETRY_S
                self._answer()
                self.timing.pause(wait_s)
            loop.close()
        finally:
            _unlock(loop)
        return True

    def _pause(self, seconds: float, loop: Loop, observer: WorldObserver) -> None:
        self.timing.pause(seconds)
        if self.is_running and not self._is_turning and seconds >= 1.0:
            self._is_turning = True
            try:
                loop.turn(observer)
            finally:
                self._is_turning = False

    def _loop(self, timing: Timing, observer: WorldObserver) -> Loop:
        policy = self.scenario.auto
        assert policy is not None
        settings = LoopSettings(
            bootstrap="simulated",
            operator="operator",
            name="fire",
            mode=Mode.AUTO,
            goals=_GOALS,
            solve=SolveLimits(),
            limits=policy.limits,
            triggers=policy.triggers,
            dead_broker_after_s=policy.dead_broker_after_s,
            journal_dir=self.folder,
            decisions_dir=self.folder / "state",
            resume=self.resumes,
            tick_s=TURN_S,
        )
        parts = LoopParts(
            observer=lambda: observer,
            planner=self._plan,
            executor=lambda: WatchedExecutor(self, self.executor(timing)),
            clock=timing.now_s,
            steady=timing.steady_s,
            background=AtOnce,
            decided=self._decided,
            failed=self._failed,
        )
        return Loop(settings, parts)

    def _decided(self, facts: DecisionInputs, step: Decision, why: str) -> None:
        # The folder of a world has another name each time.
        self.note(self.name, step, why.replace(str(self.folder.parent), ""))
        if step is Decision.APPROVE and facts.plan is not None:
            self.invariants.approved(facts.plan)

    def _failed(self, error: "PlimsollError") -> None:
        self.invariants.failed(str(error))

    def _answer(self) -> None:
        """Approve, as a person, the plan that has waited long enough."""
        policy = self.scenario.auto
        folder = self.folder / "state"
        if policy is None or policy.answers_s is None or not (folder / questions.FOLDER).exists():
            return
        now_s = self.timing.steady_s()
        for question in questions.questions(folder):
            if not question.is_due(self.timing.now_ms()):
                continue
            if now_s - self._asked_s.setdefault(question.plan_hash, now_s) < policy.answers_s:
                continue
            try:
                with suppress(ConfigError, GuardrailRefused, PlanOutdated):
                    questions.approve(folder, question.plan_hash, _PERSON, self.timing.now_ms())
            finally:
                # Once it is on the disk, it counts, even where the process dies in the call.
                if questions.answered_by(folder, question) is not None:
                    self.invariants.by_person.add(question.plan_hash)

    # ---- plans

    def _plan(self, snapshot: Snapshot, goals: Goals, *_: Any) -> Result:
        """A plan that leaves dead brokers and evens out replicas, one move after the other."""
        policy = self.scenario.auto
        assert policy is not None
        most = _MOST_MOVES
        if policy.keeps_budgets:
            most = min(policy.limits.replica_moves, policy.limits.partitions_per_topic)
        forced = Proposal(snapshot, goals, ()).forced.rows
        places = dict(self._places(snapshot, goals, most, forced))
        if any(row not in places for row in np.flatnonzero(forced).tolist()):
            return Result(
                status=PlanStatus.INFEASIBLE,
                best=None,
                objective=None,
                bound=None,
                work=0.0,
                seconds=0.0,
                reasons=("a replica has to leave its broker, and its twin cannot take it",),
            )
        plan = given_plan(snapshot, goals, SolveLimits(), places, "drawn")
        return Result(
            status=plan.status if plan.moves else PlanStatus.ALREADY_BALANCED,
            best=plan,
            objective=plan.objective,
            bound=0.0,
            work=0.0,
            seconds=0.0,
        )

    def _places(
        self, snapshot: Snapshot, goals: Goals, most: int, forced: Bools
    ) -> Iterator[tuple[int, tuple[tuple[BrokerId, ...], BrokerId]]]:
        dead = {b for b, at in snapshot.broker.items() if at.state is BrokerState.DEAD}
        held = dict.fromkeys(snapshot.broker, 0)
        for row in range(len(snapshot)):
            for broker in snapshot.replicas(row):
                held[broker] += 1
        # As in a plan of the solver, what has to move does so before anything else.
        for row in sorted(range(len(snapshot)), key=lambda row: not forced[row]):
            partition = snapshot.row(row)
            deferred = goals.keeps(partition.id.topic, partition.id.partition)
            if most <= 0 or deferred or partition.leader == NO_BROKER:
                continue
            gone = [b for b in partition.replicas if b in dead]
            full = [b for b in partition.replicas if held[b] > held[twin(b)] + 1]
            for old in (*gone, *full):
                new = twin(old)
                after = tuple(new if b == old else b for b in partition.replicas)
                if new in dead or new in partition.replicas or after[0] in dead:
                    continue
                held[old], held[new], most = held[old] - 1, held[new] + 1, most - 1
                # Kafka elects the first replica.
                yield row, (after, after[0] if partition.leader == old else partition.leader)
                break


def _unlock(loop: Loop) -> None:
    """Give back the lock on its decisions, as the system does for a process that dies.

    Otherwise the next process would get it once Python has collected this one's garbage, which
    happens at another step each time.
    """
    decisions = loop._decisions  # noqa: SLF001 - nothing else of a process outlives it here
    if decisions is not None:
        decisions._unlock()  # noqa: SLF001

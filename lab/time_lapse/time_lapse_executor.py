"""Runs on a cluster whose time jumps: copies share the brokers' rates, and time passes in them."""

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from executor.run.operator_control import Steering
from executor.throttle.fair_share import fair_rates
from lab.time_lapse.time_lapse_cluster import TimeLapseCluster
from model.errors import ConfigError, PlanOutdated
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move, Plan
from model.run import MoveProgress, MoveReport, MoveState, RunProgress, RunReport, RunState
from model.snapshot.snapshot import StorageKind

if TYPE_CHECKING:
    from executor.schedule.estimate import Forecast

COPY_RATE: Final = 50e6
"""Bytes/s that a broker copies in each direction, unless a throttle says otherwise."""
SLOW: Final = 0.1
"""Rate of a slow broker, as a share."""
HANDOVER_S: Final = 1.0
"""Duration of a move that copies nothing."""
SHARED_S: Final = 1.5
"""The same in shared storage, where a broker opens the partition."""

_Flow = tuple[PartitionId, BrokerId]
_Limit = tuple[BrokerId, bool]
"""One direction of a broker; True for into it."""


@dataclass
class _Flight:
    """A move in progress."""

    move: Move
    began_s: float
    left: dict[BrokerId, float]
    """Bytes still to copy, by new replica."""
    ends_s: float
    """Earliest end."""

    def done(self, now_s: float) -> bool:
        return now_s >= self.ends_s and not any(left > 0.5 for left in self.left.values())


@dataclass
class _Run:
    """A run in progress."""

    plan: Plan
    started_s: float
    dead: frozenset[BrokerId]
    """Brokers that were dead when it started."""
    waiting: deque[Move]
    flying: list[_Flight] = field(default_factory=list)
    ended: list[MoveProgress] = field(default_factory=list)
    stopped: str = ""
    """Why no further move starts."""


class TimeLapseExecutor:
    """Executes plans on the cluster; a plan's moves start in its order.

    A broker that dies during a run stops it: moves that need the broker are cancelled, others in
    flight end. Nothing is written to `journal_dir`.
    """

    def __init__(
        self,
        cluster: TimeLapseCluster,
        advance: Callable[[float], None],
        moved: Callable[[Move], None],
        *,
        copy_rate: float = COPY_RATE,
    ) -> None:
        """Set up for a cluster.

        advance: lets time pass until a time in seconds since the epoch. moved: called with each
        move when it has taken effect. copy_rate: bytes/s of a broker in each direction.
        """
        self._cluster, self._advance, self._moved = cluster, advance, moved
        self._copy_rate = copy_rate
        self._runs = 0

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        check: Callable[[], None] | None = None,
    ) -> RunReport:
        """Execute a plan while time passes; PlanOutdated where a partition has moved."""
        del journal_dir, steering
        if check is not None:
            check()
        cluster = self._cluster
        if why := cluster.refused(plan.moves):
            raise PlanOutdated(f"the cluster changed since this plan: {why}")
        self._runs += 1
        run = _Run(plan, cluster.now_s, cluster.dead, deque(plan.moves))
        observe(self._progress(run, RunState.RUNNING))
        while run.flying or (run.waiting and not run.stopped):
            while run.waiting and not run.stopped and len(run.flying) < moves_in_flight:
                run.flying.append(self._begun(run.waiting.popleft()))
            self._fly(run)
            self._check_brokers(run)
        run.ended += [MoveProgress(move=m, state=MoveState.DROPPED) for m in run.waiting]
        state = RunState.STOPPED if run.stopped else RunState.DONE
        observe(self._progress(run, state))
        return self._report(run, state)

    def resume(
        self,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        """Refuse: no run is interrupted here."""
        raise ConfigError("a simulated run cannot be resumed")

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        """Refuse: nobody asks for it here."""
        raise ConfigError("a simulated run cannot be rolled back")

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Do nothing: runs leave no settings."""
        del journal_dir, idle
        return []

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> "Forecast":
        """Refuse: nobody asks for it here."""
        raise ConfigError("a simulated run is not estimated")

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """None."""
        del shared
        return ()

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> Sequence[str]:
        """The moves."""
        del journal_dir
        return [str(move.id) for move in plan.moves]

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _begun(self, move: Move) -> _Flight:
        now_s, copied = self._cluster.now_s, move.bytes_to_copy or 0
        each = copied / len(move.added) if move.added else 0.0
        shared = move.storage is StorageKind.SHARED
        left = {} if shared else dict.fromkeys(move.added, each)
        return _Flight(move, now_s, left, now_s + (SHARED_S if shared else HANDOVER_S))

    def _fly(self, run: _Run) -> None:
        """Let time pass until a copy or a move may have ended, or a broker changes."""
        cluster, rates = self._cluster, self._rates(run)
        now_s = cluster.now_s
        ends = [
            now_s + flight.left[broker] / rates[flight.move.id, broker]
            for flight in run.flying
            for broker in flight.left
            if flight.left[broker] > 0.5 and rates[flight.move.id, broker] > 0
        ]
        ends += [flight.ends_s for flight in run.flying if flight.ends_s > now_s]
        until_s = min((*ends, cluster.next_event_s))
        if until_s == math.inf:
            run.stopped = "no move in flight makes progress"
            self._cancel(run, {b.move.id for b in run.flying})
            return
        # Never in steps that the clock's precision swallows.
        self._advance(max(until_s, now_s + 1e-3))
        passed_s = cluster.now_s - now_s
        for flight in run.flying:
            for broker, left in flight.left.items():
                flight.left[broker] = max(0.0, left - passed_s * rates[flight.move.id, broker])
        for flight in [f for f in run.flying if f.done(cluster.now_s)]:
            run.flying.remove(flight)
            cluster.apply(flight.move)
            run.ended.append(_ended(flight, cluster.now_s))
            self._moved(flight.move)

    def _rates(self, run: _Run) -> dict[_Flow, float]:
        """Bytes/s of each copy."""
        dead, slow = self._cluster.dead, self._cluster.slow
        flows: dict[_Flow, Sequence[_Limit]] = {}
        for flight in run.flying:
            move = flight.move
            sources = [b for b in (move.leader_before, *move.replicas_before) if b not in dead]
            for broker in flight.left:
                out = [(sources[0], False)] if sources else []
                flows[move.id, broker] = [*out, (broker, True)]
        free = {
            limit: self._copy_rate * (SLOW if limit[0] in slow else 1.0)
            for limits in flows.values()
            for limit in limits
        }
        return fair_rates(flows, free)

    def _check_brokers(self, run: _Run) -> None:
        """Stop the run where a broker has died since it started."""
        lost = self._cluster.dead - run.dead
        if not lost:
            return
        run.stopped = run.stopped or f"broker {min(lost)} is dead"
        hit = {f.move.id for f in run.flying if lost.intersection(f.move.replicas_after)}
        self._cancel(run, hit)

    def _cancel(self, run: _Run, ids: Collection[PartitionId]) -> None:
        for flight in [f for f in run.flying if f.move.id in ids]:
            run.flying.remove(flight)
            run.ended.append(MoveProgress(move=flight.move, state=MoveState.DROPPED))

    def _progress(self, run: _Run, state: RunState) -> RunProgress:
        waiting = () if run.ended else tuple(MoveProgress(move=m) for m in run.plan.moves)
        return RunProgress(
            run_id=f"run-{self._runs}",
            plan_hash=run.plan.hash,
            state=state,
            moves=waiting or tuple(run.ended),
            started_at_ms=int(1000 * run.started_s),
            reason=run.stopped,
        )

    def _report(self, run: _Run, state: RunState) -> RunReport:
        return RunReport(
            run_id=f"run-{self._runs}",
            plan_hash=run.plan.hash,
            state=state,
            reason=run.stopped,
            started_at_ms=int(1000 * run.started_s),
            duration_s=self._cluster.now_s - run.started_s,
            preparation_s=0.0,
            moves=tuple(map(_reported, run.ended)),
        )


def _ended(flight: _Flight, now_s: float) -> MoveProgress:
    return MoveProgress(
        move=flight.move,
        state=MoveState.DONE,
        issued_at_ms=int(1000 * flight.began_s),
        done_at_ms=int(1000 * now_s),
        bytes_copied=flight.move.bytes_to_copy,
    )


def _reported(item: MoveProgress) -> MoveReport:
    return MoveReport(
        topic=item.move.topic,
        partition=item.move.partition,
        replicas_before=item.move.replicas_before,
        replicas_after=item.move.replicas_after,
        state=item.state,
        duration_s=item.seconds,
        bytes_copied=item.bytes_copied,
    )

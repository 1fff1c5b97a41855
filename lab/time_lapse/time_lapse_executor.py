"""Runs on a cluster whose time jumps: copies share the brokers' rates, and time passes in them."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
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
from model.stop_rules import Reaction, StopRule, StopRules

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

_RULES: Final = StopRules()

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
    planned: frozenset[int]
    """Rows of its moves."""
    incomplete: frozenset[int]
    """Rows that had replicas on dead brokers when it started."""
    offline: frozenset[int]
    """Rows that had no leader when it started."""
    waiting: deque[Move]
    flying: list[_Flight] = field(default_factory=list)
    ended: list[MoveProgress] = field(default_factory=list)
    stopped: str = ""
    """Why no further move starts."""
    rolls_back: bool = False
    """Whether moves that are done return."""
    paused: StopRule | None = None
    """The rule for which no move starts for now."""
    paused_at_s: float = 0.0
    calm_at_s: float = math.inf
    """When the pause ends unless a rule is broken again; inf while one is broken."""

    @property
    def left(self) -> bool:
        """Whether a move is in flight, or still to be started."""
        return bool(self.flying or (self.waiting and not self.stopped))


class TimeLapseExecutor:
    """Executes plans on the cluster; a plan's moves start in its order.

    The stop rules on the window and on brokers that die act as in a run; nothing else that they
    watch happens here. Moves in flight to a broker that dies are cancelled. Nothing is written to
    `journal_dir`.
    """

    def __init__(
        self,
        cluster: TimeLapseCluster,
        advance: Callable[[float], None],
        moved: Callable[[Move], None],
        *,
        copy_rate: float = COPY_RATE,
        stop_rules: StopRules = _RULES,
        holds: Callable[[str], None] = lambda _rule: None,
        ends_s: float = math.inf,
    ) -> None:
        """Set up for a cluster.

        advance: lets time pass until a time in seconds since the epoch, or until the run is to stop
        if that is earlier. moved: called with each move when it has taken effect. copy_rate:
        bytes/s of a broker in each direction. holds: called with the setting for which a run
        pauses, and with nothing when it continues. ends_s: when whatever is in flight is dropped,
        in seconds since the epoch.
        """
        self._cluster, self._advance, self._moved = cluster, advance, moved
        self._copy_rate, self._rules, self._holds = copy_rate, stop_rules, holds
        self._ends_s = ends_s
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
        del journal_dir
        if check is not None:
            check()
        cluster = self._cluster
        if why := cluster.refused(plan.moves):
            raise PlanOutdated(f"the cluster changed since this plan: {why}")
        run = self._begun_run(plan, plan.moves)
        observe(self._progress(run, RunState.RUNNING))
        self._perform(run, self._rules, moves_in_flight, steering)
        back = self._rolled_back(run, moves_in_flight) if run.rolls_back else None
        observe(self._progress(run, _state(run)))
        return self._report(run, back)

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

    def _begun_run(self, plan: Plan, moves: Iterable[Move]) -> _Run:
        cluster, waiting = self._cluster, deque(moves)
        self._runs += 1
        return _Run(
            plan,
            cluster.now_s,
            cluster.dead,
            planned=cluster.rows_of(waiting),
            incomplete=cluster.rows_on(cluster.dead),
            offline=cluster.offline,
            waiting=waiting,
        )

    def _perform(
        self, run: _Run, rules: StopRules, moves_in_flight: int, steering: Steering | None
    ) -> None:
        """Make the moves of a run, as far as the rules and the operator let it."""
        while run.left:
            if steering is not None and steering.stopping.is_set():
                run.stopped = run.stopped or "stopped by the loop"
            if self._cluster.now_s >= self._ends_s:
                # Slow copies might take years more.
                run.stopped = run.stopped or "time is up"
                self._cancel(run, {flight.move.id for flight in run.flying})
                break
            self._heed(run, rules)
            while run.waiting and not (run.stopped or run.paused):
                if len(run.flying) >= moves_in_flight:
                    break
                run.flying.append(self._begun(run.waiting.popleft()))
            if run.left:
                self._fly(run, rules)
                self._check_brokers(run, rules)
        if run.paused:
            self._holds("")
        run.ended += [MoveProgress(move=m, state=MoveState.DROPPED) for m in run.waiting]
        run.waiting.clear()

    def _rolled_back(self, run: _Run, moves_in_flight: int) -> RunReport:
        """Move back what a run has moved, but to dead brokers; report on that."""
        done = [item.move for item in run.ended if item.state is MoveState.DONE]
        dead = self._cluster.dead
        moves = [_reversed(move) for move in done if not dead.intersection(move.replicas_before)]
        back = self._begun_run(run.plan, moves)
        self._perform(back, self._rules.for_rollback(), moves_in_flight, None)
        return self._report(back, None)

    def _heed(self, run: _Run, rules: StopRules) -> None:
        """Stop, pause or continue a run by its rules; the most severe reaction counts."""
        if run.stopped:
            return
        now_s = self._cluster.now_s
        broken = self._broken(run, rules)
        found = {rules.reaction(rule): rule for rule in reversed(broken)}
        for final in (Reaction.ROLL_BACK, Reaction.STOP):
            if final in found:
                run.stopped, run.rolls_back = broken[found[final]], final is Reaction.ROLL_BACK
                if run.rolls_back:
                    self._cancel(run, {flight.move.id for flight in run.flying})
                return
        holding = found.get(Reaction.PAUSE)
        if holding is None:
            if run.paused and run.calm_at_s == math.inf:
                run.calm_at_s = now_s + rules.calm_s
            if run.paused and now_s >= run.calm_at_s:
                run.paused = None
                self._holds("")
            return
        run.calm_at_s = math.inf
        if holding is not run.paused:
            run.paused, run.paused_at_s = holding, now_s
            self._holds(f"stop_rules.{holding}")
        if now_s >= _gives_up_s(run, rules):
            run.stopped = broken[holding]

    def _broken(self, run: _Run, rules: StopRules) -> dict[StopRule, str]:
        """Why each broken rule is broken, in the order of the rules."""
        cluster, broken = self._cluster, dict[StopRule, str]()
        if lost := cluster.dead - run.dead:
            broken[StopRule.BROKER_LOST] = f"broker {min(lost)} is dead"
            hit = cluster.rows_on(lost) - run.planned
            if cluster.offline - run.offline - run.planned:
                broken[StopRule.OFFLINE] = "partitions outside the plan lost their leaders"
            if hit - run.incomplete:
                broken[StopRule.UNDER_REPLICATED] = (
                    "partitions outside the plan lost replicas in sync"
                )
            if hit & run.incomplete:
                broken[StopRule.ISR_SHRINK] = (
                    "partitions outside the plan lost still more replicas in sync"
                )
        if not rules.is_open(cluster.now_s):
            broken[StopRule.WINDOW] = "the window for moves is closed"
        return broken

    def _begun(self, move: Move) -> _Flight:
        now_s, copied = self._cluster.now_s, move.bytes_to_copy or 0
        each = copied / len(move.added) if move.added else 0.0
        shared = move.storage is StorageKind.SHARED
        left = {} if shared else dict.fromkeys(move.added, each)
        return _Flight(move, now_s, left, now_s + (SHARED_S if shared else HANDOVER_S))

    def _fly(self, run: _Run, rules: StopRules) -> None:
        """Let time pass until a copy or a move may have ended, or the rules may say otherwise."""
        cluster, rates = self._cluster, self._rates(run)
        now_s = cluster.now_s
        ends = [
            now_s + flight.left[broker] / rates[flight.move.id, broker]
            for flight in run.flying
            for broker in flight.left
            if flight.left[broker] > 0.5 and rates[flight.move.id, broker] > 0
        ]
        ends += [flight.ends_s for flight in run.flying if flight.ends_s > now_s]
        until_s = min((*ends, cluster.next_event_s, *_heeds_s(run, rules, now_s)))
        if until_s == math.inf and run.flying:
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

    def _check_brokers(self, run: _Run, rules: StopRules) -> None:
        """Cancel moves in flight to brokers that have died since the run started; it ends then."""
        lost = self._cluster.dead - run.dead
        hit = {f.move.id for f in run.flying if lost.intersection(f.move.replicas_after)}
        if hit:
            self._heed(run, rules)
            run.stopped = run.stopped or f"broker {min(lost)} is dead"
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

    def _report(self, run: _Run, rollback: RunReport | None) -> RunReport:
        return RunReport(
            run_id=f"run-{self._runs}",
            plan_hash=run.plan.hash,
            state=_state(run),
            reason=run.stopped,
            started_at_ms=int(1000 * run.started_s),
            duration_s=self._cluster.now_s - run.started_s,
            preparation_s=0.0,
            moves=tuple(map(_reported, run.ended)),
            rollback=rollback,
        )


def _state(run: _Run) -> RunState:
    return RunState.STOPPED if run.stopped else RunState.DONE


def _heeds_s(run: _Run, rules: StopRules, now_s: float) -> tuple[float, ...]:
    """When the rules may say otherwise without a change of brokers."""
    if run.stopped:
        return (math.inf,)
    window_s = math.inf if rules.window is Reaction.OFF else rules.next_change_s(now_s)
    if run.paused is None:
        return (window_s,)
    return window_s, run.calm_at_s, _gives_up_s(run, rules)


def _gives_up_s(run: _Run, rules: StopRules) -> float:
    """When a pause has lasted too long; never for that of the window."""
    if run.paused in (None, StopRule.WINDOW):
        return math.inf
    return run.paused_at_s + rules.pause_limit_s


def _reversed(move: Move) -> Move:
    """The move back; replicas that were removed are copied again."""
    each = (move.bytes_to_copy or 0) / len(move.added) if move.added else 0
    return move.model_copy(
        update={
            "replicas_before": move.replicas_after,
            "replicas_after": move.replicas_before,
            "leader_before": move.leader_after,
            "leader_after": move.leader_before,
            "bytes_to_copy": int(each * len(move.removed)),
            "log_dirs_before": move.log_dirs_after,
            "log_dirs_after": move.log_dirs_before,
        }
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

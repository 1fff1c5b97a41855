"""Plan the rollback of a run, and roll a run back where a stop rule demands it."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from executor.client.responses import PartitionView
from executor.journal.run_history import HAD_MOVED, RESTORES, PastRun, past_run, undone_run
from executor.platforms.move_progress import text
from executor.platforms.platform import MoveStage, ObservedMove, PlatformReads
from executor.run.operator_control import Steering
from executor.run.run_outcome import balance, view_of
from executor.timing import Timing
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.files import rounded
from model.goals.goals import ObjectiveKind
from model.ids import BrokerId, PartitionId
from model.plan.plan import BrokerChange, Move, Plan
from model.plan.replication_change import ReplicationChange
from model.run import MoveProgress, MoveState, RunReport, RunState
from model.snapshot.snapshot import Count, Resource, StorageKind

_CALM_S: Final = 60.0
"""Seconds before a partition may return: AutoMQ stalls while the broker still uploads its data."""

_CALM_WITHIN_S: Final = 180.0
"""Seconds after which AutoMQ lets every partition return."""
_RETRY_S: Final = 1.0

_LONGEST_S: Final = 120
"""Longest duration in seconds of a move whose end was not seen: after 60 s AutoMQ
deals with stuck moves, checking every 30 s."""


def plan_rollback(
    past: PastRun,
    found: Mapping[PartitionId, ObservedMove],
    alive: Collection[BrokerId],
    now_ms: int,
) -> tuple[Plan, list[str]]:
    """Return the plan that undoes a run in reverse order, and why moves are left out.

    `found`: the present state of each move that was sent. Raises GuardrailRefused where
    a move is still in progress, or ended too recently.
    """
    back, left = [], []
    for move in past.plan.moves:
        seen = found.get(move.id)
        if seen is None or seen.stage is MoveStage.NOT_BEGUN:
            continue
        if seen.view is None:
            left.append(seen.reason)
            continue
        if seen.stage is MoveStage.MOVING and not _only_lags(past, move, seen.view, alive):
            raise GuardrailRefused(
                f"{move.id} is still being moved by the run {past.run_id}. Wait until "
                "that has ended, or use plimsoll run --resume, then roll back."
            )
        _refuse_too_early(past, move, now_ms)
        undoing = _reversed(move, seen.view, seen.log_dirs, past.run_id)
        if not _changes_nothing(undoing):
            back.append(undoing)
    return _plan_of(past, tuple(reversed(back)), found, alive), left


def observed(
    past: PastRun, platforms: Mapping[StorageKind, PlatformReads]
) -> dict[PartitionId, ObservedMove]:
    """The present state of each move that was sent, or may have been."""
    sent = [m for m in past.plan.moves if past.has_losses or past.moves[m.id].issued_at_ms]
    found: dict[PartitionId, ObservedMove] = {}
    for kind, platform in platforms.items():
        found |= platform.progress([move for move in sent if move.storage is kind])
    return found


def refuse_undoing_rollback(past: PastRun) -> None:
    """Refuse to undo an unfinished rollback by default.

    Whoever repeats an interrupted rollback wants to finish it, not to redo the moves
    that it undoes. Raises GuardrailRefused.
    """
    if restores(past.plan) and past.is_unfinished:
        raise GuardrailRefused(
            f"The newest run {past.run_id} is a rollback that has not finished. Finish "
            "it with plimsoll run --resume --allow-changes, or undo it with plimsoll "
            f"rollback {past.run_id} --allow-changes."
        )


def restores(plan: Plan) -> bool:
    """Whether a plan claims to undo a run; `rolls_back` verifies that."""
    return plan.limited_by.startswith(RESTORES)


def rolls_back(plan: Plan, journal_dir: Path) -> bool:
    """Whether a plan undoes a run, according to the journal of that run.

    The plan's own claim proves nothing: each of its moves must restore what a requested
    move has found. Only then is it exempt from the goals.
    """
    if not restores(plan):
        return False
    run_id = undone_run(plan)
    try:
        past = past_run(journal_dir, plan.cluster_id, run_id)
    except ConfigError:
        return False
    return past.run_id == run_id and all(_is_undone_by(past, m) for m in plan.moves)


def _is_undone_by(past: PastRun, move: Move) -> bool:
    made = past.moves.get(move.id)
    if made is None or not (past.has_losses or made.issued_at_ms):
        return False
    return (move.replicas_after, move.leader_after, move.log_dirs_after) == (
        made.move.replicas_before,
        made.move.replicas_before[0],
        made.move.log_dirs_before,
    )


def _changes_nothing(move: Move) -> bool:
    """Whether nothing changes; an election of the preferred leader is not undone."""
    return (move.replicas_before, move.leader_before, move.log_dirs_before) == (
        move.replicas_after,
        move.leader_after,
        move.log_dirs_after,
    )


def _only_lags(past: PastRun, move: Move, view: PartitionView, alive: Collection[BrokerId]) -> bool:
    """Whether a move has ended, and replicas have fallen out of sync since.

    A new broker that dies is a reason to roll back.
    """
    behind = set(view.replicas) - view.in_sync
    if not behind or view.replicas != move.replicas_after:
        return False
    return past.moves[move.id].state is MoveState.DONE or behind.isdisjoint(alive)


def _refuse_too_early(past: PastRun, move: Move, now_ms: int) -> None:
    calm_s = _CALM_S - (now_ms - _ended_ms(past.moves[move.id], now_ms)) / 1000
    if move.storage is StorageKind.SHARED and calm_s > 0:
        raise GuardrailRefused(
            f"{move.id} left broker {text(move.replicas_before)} less than {_CALM_S:.0f} s ago, "
            f"and AutoMQ stalls when it returns so soon. Roll back in {calm_s:.0f} s."
        )


def _ended_ms(at: MoveProgress, now_ms: int) -> int:
    """When a move ended, in milliseconds since the epoch; an upper bound if unseen."""
    if at.done_at_ms is not None:
        return at.done_at_ms
    return min(now_ms, (at.issued_at_ms or now_ms) + 1000 * _LONGEST_S)


def _bytes_back(move: Move, back: int) -> int | None:
    """Bytes that a move copies when it is undone with so many new replicas; None if unknown.

    A move that only removed replicas copied nothing, and its plan has no size of the partition
    but the load on disk.
    """
    if not move.resizes:
        return move.bytes_to_copy
    if not back or move.storage is StorageKind.SHARED:
        return 0
    size = move.follower_load.get(Resource.DISK)
    return None if size is None else back * int(size)


def _reversed(move: Move, view: PartitionView, log_dirs: tuple[str, ...], run_id: str) -> Move:
    return move.model_copy(
        update={
            "replicas_before": view.replicas,
            "replicas_after": move.replicas_before,
            "leader_before": view.leader,
            # Kafka's own leader balancing would soon elect it anyway.
            "leader_after": move.replicas_before[0],
            "log_dirs_before": log_dirs,
            "log_dirs_after": move.log_dirs_before,
            "bytes_to_copy": _bytes_back(move, len({*move.replicas_before} - {*view.replicas})),
            "gain": 0.0,
            "reason": f"as before the run {run_id}",
        }
    )


def _plan_of(
    past: PastRun,
    moves: tuple[Move, ...],
    found: Mapping[PartitionId, ObservedMove],
    alive: Collection[BrokerId],
) -> Plan:
    plan = past.plan
    views = {m.id: view_of(m, made=False) for m in plan.moves}
    views |= {pid: seen.view for pid, seen in found.items() if seen.view is not None}
    brokers = _brokers(plan, views)
    return plan.model_copy(
        update={
            "live_brokers": tuple(sorted(alive)),
            "objective_before": _objective_left(plan, brokers),
            "objective": plan.objective_before,
            "limited_by": f"{RESTORES}{past.run_id}{HAD_MOVED}",
            "brokers": brokers,
            "moves": moves,
            "replication": _replication_back(plan, moves),
        }
    ).seal()


def _replication_back(plan: Plan, moves: Collection[Move]) -> tuple[ReplicationChange, ...]:
    """The changes of the replication factor, back."""
    topics = {m.topic for m in moves if m.resizes}
    return tuple(
        change.model_copy(update={"before": change.after, "after": change.before})
        for change in plan.replication
        if change.topic in topics
    )


def _objective_left(plan: Plan, brokers: tuple[BrokerChange, ...]) -> float:
    """The objective F as the run has left the brokers, without the cost of moves.

    Per-topic balance counts as before the run, since plans have no more detail. The
    plan's own objective where its brokers' loads are unknown.
    """
    if not brokers:
        return plan.objective
    change = sum(
        _cost(plan, key, deviation) - _cost(plan, key, broker.deviation_after[key])
        for broker in brokers
        for key, deviation in broker.deviation_before.items()
        # A dimension may count at one of two replication factors only.
        if key in broker.deviation_after
    )
    return rounded(max(0.0, plan.objective_before + change))


def _cost(plan: Plan, key: str, deviation: float) -> float:
    """The cost of a broker's deviation in a dimension; see docs/explanation/planning.md."""
    measure = key.partition("@")[0]
    goal = next((g for g in plan.goals.balance if g.resource.value == measure), None)
    if goal is None:
        return 0.0
    slots = plan.forecast.slots if plan.forecast is not None else ()
    at_all_hours = goal.resource in (*Resource, Count.LEADER_NET_IN)
    weight = goal.weight / (1 + len(slots) * at_all_hours)
    if plan.goals.objective is ObjectiveKind.VARIANCE:
        return weight * deviation**2
    excess = max(0.0, abs(deviation) - goal.tolerance)
    return plan.goals.excess_price * plan.move_price * weight * excess


def _brokers(plan: Plan, views: Mapping[PartitionId, PartitionView]) -> tuple[BrokerChange, ...]:
    """Brokers from their present balance back to the one before the run.

    Empty where the run ended early and its plan has no loads of partitions.
    """
    left = {broker.id: broker for broker in balance(plan, views)}
    replicas = Counter(b for view in views.values() for b in view.replicas)
    replicas.subtract(Counter(b for m in plan.moves for b in m.replicas_after))
    return tuple(
        _reversed_change(change).model_copy(
            update={
                "before": left[change.id].achieved,
                "deviation_before": change.deviation_after | left[change.id].deviation_achieved,
                "replicas_before": change.replicas_after + replicas[change.id],
            }
        )
        if left[change.id].achieved != change.after
        else _reversed_change(change)
        for change in plan.brokers
        if change.id in left
    )


def _reversed_change(change: BrokerChange) -> BrokerChange:
    return change.model_copy(
        update={
            "before": change.after,
            "after": change.before,
            "deviation_before": change.deviation_after,
            "deviation_after": change.deviation_before,
            "replicas_before": change.replicas_after,
            "replicas_after": change.replicas_before,
        }
    )


def rolled_back(
    report: RunReport,
    *,
    plan_rollback: Callable[[], tuple[Plan, list[str]]],
    execute: Callable[[Plan], RunReport],
    steering: Steering,
    timing: Timing,
) -> RunReport:
    """Roll a run back; return its report with the outcome. Raises no PlimsollError.

    `plan_rollback` is retried for a while where it refuses because it is too early.
    """
    try:
        plan, left = _retried(plan_rollback, steering, timing)
        if not plan.moves:
            return _with(report, "nothing had to be moved back", None)
        back = execute(plan)
    except PlimsollError as exc:
        return _with(report, f"not rolled back: {exc}", None)
    outcome = [f"rolled back by the run {back.run_id}"]
    if back.state is not RunState.DONE:
        outcome = [f"the run {back.run_id}, which rolls it back, {back.state}"]
    return _with(report, "; ".join([*outcome, *left]), back)


def _retried(
    plan_rollback: Callable[[], tuple[Plan, list[str]]], steering: Steering, timing: Timing
) -> tuple[Plan, list[str]]:
    end_s = timing.steady_s() + _CALM_WITHIN_S
    while True:
        try:
            return plan_rollback()
        except GuardrailRefused:
            if timing.steady_s() >= end_s or steering.stopping.is_set():
                raise
            timing.pause(_RETRY_S)


def _with(report: RunReport, outcome: str, back: RunReport | None) -> RunReport:
    reason = f"{report.reason}; {outcome}"
    return report.model_copy(update={"reason": reason, "rollback": back})

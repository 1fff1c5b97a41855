"""Checks before a run that the cluster still fits the plan."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from executor.client.cluster_admin import ClusterReads
from executor.client.responses import ClusterView, LogDirView, PartitionView
from executor.platforms import move_progress
from executor.platforms.detect import storage_kinds
from executor.run import log_dir_checks
from model.errors import GuardrailRefused, PlanOutdated
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move, Plan
from model.plan.replication_change import ReplicationChange
from model.snapshot.snapshot import StorageKind
from model.units import count_text

_NAMED: Final = 5
"""Number of differences listed in a message."""
MIN_IN_SYNC: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The state of the cluster that a plan is checked against."""

    cluster: ClusterView
    partitions: Mapping[PartitionId, PartitionView]
    storage: Mapping[TopicName, StorageKind]
    reassignments: Mapping[PartitionId, tuple[BrokerId, ...]]
    log_dirs: Mapping[BrokerId, Sequence[LogDirView]]
    """By live broker of moves that name directories."""
    cordoned: Collection[BrokerId] = ()
    """Target brokers that take no new replicas (KIP-1066)."""
    failed: Collection[BrokerId] = ()
    """Live brokers that lose offline replicas, and report a log directory whose disk has failed."""
    min_in_sync: Mapping[TopicName, int] = field(default_factory=dict)
    """`min.insync.replicas` of topics that lose replicas."""


def observe(admin: ClusterReads, plan: Plan) -> Observed:
    """Read the state of the cluster that the checks need. Raises as its calls do."""
    ids = [move.id for move in plan.moves]
    cluster = admin.cluster()
    partitions = admin.partitions(ids)
    return Observed(
        cluster=cluster,
        partitions=partitions,
        storage=storage_kinds(admin, {pid.topic for pid in ids}),
        reassignments=admin.reassignments(),
        log_dirs=log_dir_checks.look(admin, plan.moves, cluster.alive),
        cordoned=_cordoned(admin, plan.moves, cluster.alive),
        failed=_failed(admin, plan.moves, partitions, cluster.alive),
        min_in_sync=_min_in_sync(admin, plan.moves),
    )


def _min_in_sync(admin: ClusterReads, moves: Sequence[Move]) -> dict[TopicName, int]:
    shrinking = sorted({m.topic for m in moves if len(m.removed) > len(m.added)})
    if not shrinking:
        return {}
    found = admin.topic_configs(shrinking, [MIN_IN_SYNC])
    return {topic: int(values.get(MIN_IN_SYNC, 1)) for topic, values in found.items()}


def _failed(
    admin: ClusterReads,
    moves: Sequence[Move],
    partitions: Mapping[PartitionId, PartitionView],
    alive: Collection[BrokerId],
) -> list[BrokerId]:
    offline = {
        broker
        for move in moves
        if move.id in partitions
        for broker in partitions[move.id].offline.intersection(move.removed, alive)
    }
    return [b for b in sorted(offline) if any(d.offline for d in admin.log_dirs(b, ()))]


def _cordoned(
    admin: ClusterReads, moves: Sequence[Move], alive: Collection[BrokerId]
) -> list[BrokerId]:
    copying = [m for m in moves if m.storage is not StorageKind.SHARED]
    targets = {broker for move in copying for broker in move.added} & {*alive}
    seen = {broker: admin.log_dirs(broker, ()) for broker in sorted(targets)}
    return [b for b, dirs in seen.items() if dirs and all(d.cordoned for d in dirs)]


def check(
    plan: Plan,
    seen: Observed,
    ours: Mapping[PartitionId, str] | None = None,
    *,
    undoes: bool = False,
) -> None:
    """Raise unless the plan can be executed as it is.

    `ours`: run id by partition that an earlier run moved without seeing the end. `undoes`: whether
    it rolls a run back, which may restore any number of replicas that there were. Raises
    PlanOutdated or GuardrailRefused with the differences, or RightsMissing where log
    directories cannot be described.
    """
    if seen.cluster.cluster_id != plan.cluster_id:
        raise GuardrailRefused(
            f"The plan is for the cluster {plan.cluster_id}, but this is "
            f"{seen.cluster.cluster_id}. Set the right bootstrap servers, or plan again."
        )
    log_dir_checks.refuse_unclear(plan.moves)
    _refuse_idle(plan.moves)
    _refuse_moving(plan, seen, ours or {})
    drift = [*_broker_drift(plan, seen.cluster.alive), *_placement_drift(plan, seen)]
    if drift:
        more = f"; and {len(drift) - _NAMED} more" if len(drift) > _NAMED else ""
        raise PlanOutdated(
            f"The cluster has changed since the plan was made: "
            f"{'; '.join(drift[:_NAMED])}{more}. Plan again."
        )
    asked = {change.topic: change for change in plan.replication}
    for move in plan.moves:
        if move.resizes:
            _refuse_resizing(move, asked.get(move.topic), seen, undoes=undoes)
        _refuse_unsafe(move, seen)
    log_dir_checks.refuse_unfit(plan.moves, seen.log_dirs)


def _refuse_idle(moves: Sequence[Move]) -> None:
    """Raise GuardrailRefused for a move without a request, whose end nobody could see."""
    for move in moves:
        if move.changes_nothing:
            raise GuardrailRefused(
                f"The plan cannot be executed: its move of {move.id} changes nothing: replicas "
                f"{move_progress.text(move.replicas_before)}, led by {_leader(move.leader_before)},"
                " before and after. Plan again, or write the plan without that move."
            )


def _refuse_moving(plan: Plan, seen: Observed, ours: Mapping[PartitionId, str]) -> None:
    """Raise GuardrailRefused where a partition is being moved already."""
    moving = log_dir_checks.receiving_dirs(plan.moves, seen.log_dirs)
    moving |= {pid: move_progress.text(target) for pid, target in seen.reassignments.items()}
    for pid in sorted(moving):
        if pid in ours:
            raise GuardrailRefused(
                f"{pid} is still being moved by plimsoll's run {ours[pid]}, which was "
                "interrupted. Wait until that move has ended, then plan again."
            )
        raise GuardrailRefused(
            f"{pid} is being moved to {moving[pid]} by someone else. Wait until that "
            "has ended, then plan again."
        )


def _broker_drift(plan: Plan, alive: Collection[BrokerId]) -> Iterator[str]:
    for broker in sorted(set(plan.live_brokers) - set(alive)):
        yield f"broker {broker} is dead or fenced"
    for broker in sorted(set(alive) - set(plan.live_brokers)):
        yield f"broker {broker} is new"


def _placement_drift(plan: Plan, seen: Observed) -> Iterator[str]:
    for move in plan.moves:
        view = seen.partitions.get(move.id)
        if view is None:
            yield f"{move.id} does not exist"
        elif view.topic_id != move.topic_id:
            yield f"{move.topic} was deleted and created again"
        elif view.replicas != move.replicas_before:
            yield (
                f"{move.id} is on {move_progress.text(view.replicas)}, "
                f"the plan expects {move_progress.text(move.replicas_before)}"
            )
        elif view.leader != move.leader_before:
            yield (
                f"{move.id} is led by {_leader(view.leader)}, the plan expects "
                f"{_leader(move.leader_before)}"
            )
        elif (kind := seen.storage.get(move.topic)) is not move.storage:
            yield f"{move.topic} is {kind}, the plan took it for {move.storage}"
        else:
            yield from log_dir_checks.drift(move, seen.log_dirs)


def _refuse_resizing(
    move: Move, asked: ReplicationChange | None, seen: Observed, *, undoes: bool
) -> None:
    before, after = len(move.replicas_before), len(move.replicas_after)
    if asked is None and not undoes:
        raise GuardrailRefused(
            f"The plan changes the replication factor of {move.id} from {before} to {after} "
            f"without naming {move.topic} among the topics whose replication factor it changes. "
            "Plan again."
        )
    if asked and not undoes and (fault := asked.fault(move.replicas_before, move.replicas_after)):
        raise GuardrailRefused(f"The plan cannot be executed: {move.id} {fault}. Plan again.")
    if after < before:
        _refuse_losing(move, seen)


def _refuse_losing(move: Move, seen: Observed) -> None:
    """Raise GuardrailRefused where too few replicas would stay in sync."""
    after, least = len(move.replicas_after), seen.min_in_sync.get(move.topic, 1)
    if after < least:
        raise GuardrailRefused(
            f"The plan leaves {move.id} {count_text(after, 'replica')}, and {MIN_IN_SYNC} of "
            f"{move.topic} is {least}: producers with acks=all would get errors. Lower it first."
        )
    if behind := move_progress.out_of_sync(seen.partitions[move.id], move.replicas_after):
        raise GuardrailRefused(
            f"The plan cannot be executed: broker {behind[0]}, whose replica of {move.id} is to "
            "stay, is not in sync. Wait until it is, or plan again."
        )


def _refuse_unsafe(move: Move, seen: Observed) -> None:
    if reason := move_progress.dead_target([move], seen.cluster.alive):
        raise GuardrailRefused(f"The plan cannot be executed: {reason}. Plan again.")
    for broker in sorted({*move.added} & {*seen.cordoned}):
        raise GuardrailRefused(
            f"The plan cannot be executed: broker {broker}, where {move.id} goes, "
            "is cordoned and takes no new replicas. Plan again."
        )
    if reason := move_progress.offline([move], seen.partitions):
        raise GuardrailRefused(
            f"The plan cannot be executed: {reason}. Bring one of its replicas back first."
        )


def _leader(broker: BrokerId) -> str:
    return "nobody" if broker < 0 else f"broker {broker}"

"""Moves between the log directories of brokers (JBOD, KIP-113).

A broker copies a replica into another directory while it keeps using the old one, and
then switches over. A broker that will get a new replica remembers the directory in
memory only, so a replica created elsewhere is moved again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import LogDirView, PartitionResponse, PartitionView, ResponseStatus
from executor.platforms.platform import MoveStage, ObservedMove
from model.ids import BrokerId, PartitionId
from model.plan.plan import ANY_DIR, Move

LogDirsByBroker = Mapping[BrokerId, Sequence[LogDirView]]
"""Log directories by broker; empty for brokers that do not answer."""


def assigned_dirs(move: Move) -> dict[BrokerId, str]:
    """Directory by broker, of replicas that the plan gives a new or a first directory."""
    before = dict(zip(move.replicas_before, move.log_dirs_before, strict=False))
    after = zip(move.replicas_after, move.log_dirs_after, strict=False)
    return {b: new for b, new in after if new not in (ANY_DIR, before.get(b))}


def changed_dirs(move: Move) -> dict[BrokerId, tuple[str, str]]:
    """Old and new directory by broker, of replicas that stay on their broker."""
    before = dict(zip(move.replicas_before, move.log_dirs_before, strict=False))
    return {b: (before[b], new) for b, new in assigned_dirs(move).items() if b in before}


def requests(move: Move) -> tuple[str, ...]:
    """The AlterReplicaLogDirs requests of a move, as text."""
    old = {b: f"{was} -> " for b, (was, _) in changed_dirs(move).items()}
    return tuple(
        f"AlterReplicaLogDirs {move.id} on broker {broker}: {old.get(broker, '')}{new}"
        for broker, new in assigned_dirs(move).items()
    )


def assign_dirs(admin: ClusterAdmin, moves: Iterable[Move]) -> dict[PartitionId, PartitionResponse]:
    """Request the directories at each broker; return the responses that are not ACCEPTED.

    Brokers are asked one after the other; this may be repeated.
    """
    targets: dict[BrokerId, dict[PartitionId, str]] = {}
    for move in moves:
        for broker, path in assigned_dirs(move).items():
            targets.setdefault(broker, {})[move.id] = path
    return {
        pid: answer
        for broker, paths in targets.items()
        for pid, answer in admin.alter_log_dirs(broker, paths).items()
        if answer.status is not ResponseStatus.ACCEPTED
    }


def progress_of(move: Move, now: ObservedMove, seen: LogDirsByBroker) -> ObservedMove:
    """Refine the progress of a move by the directories of its replicas.

    `now` is the progress of its replica lists.
    """
    if not move.log_dirs_after or now.view is None:
        return now
    places = {b: _place(move, b, seen.get(b, ())) for b in assigned_dirs(move)}
    for broker, place in places.items():
        if place is _Place.ELSEWHERE:
            reason = f"someone else changes the log directory of {move.id} on broker "
            return ObservedMove(stage=MoveStage.LOST, reason=f"{reason}{broker}")
    stage = _stage(move, now, {places[b] for b in changed_dirs(move)}, {*places.values()})
    return replace(now, stage=stage, log_dirs=_dirs_of(now.view, seen))


class _Place(Enum):
    """The directory state of one replica."""

    ABSENT = auto()
    """Its broker has no replica, or does not show it."""
    WAITING = auto()
    """In the old directory, and not being copied."""
    COPYING = auto()
    THERE = auto()
    ELSEWHERE = auto()
    """In, or on its way to, an unplanned directory."""


def _place(move: Move, broker: BrokerId, dirs: Sequence[LogDirView]) -> _Place:
    new = assigned_dirs(move)[broker]
    holding, receiving = dirs_holding(move.id, dirs), dirs_receiving(move.id, dirs)
    if not holding:
        return _Place.ABSENT
    if receiving:
        return _Place.COPYING if receiving == [new] else _Place.ELSEWHERE
    if len(holding) > 1:
        # While the broker switches over, it shows both.
        return _Place.COPYING
    if holding == [new]:
        return _Place.THERE
    old = changed_dirs(move).get(broker)
    return _Place.WAITING if old is None or holding == [old[0]] else _Place.ELSEWHERE


def _stage(move: Move, now: ObservedMove, stay: set[_Place], every: set[_Place]) -> MoveStage:
    if move.replicas_before == move.replicas_after and stay == {_Place.WAITING}:
        return MoveStage.NOT_BEGUN
    match now.stage:
        case MoveStage.ARRIVED | MoveStage.DONE:
            if not every.isdisjoint({_Place.COPYING, _Place.ABSENT}):
                return MoveStage.MOVING
            return MoveStage.HALFWAY if _Place.WAITING in every else now.stage
        case MoveStage.NOT_BEGUN if _Place.COPYING in stay:
            return MoveStage.MOVING
        case MoveStage.NOT_BEGUN if _Place.THERE in stay:
            return MoveStage.HALFWAY
    return now.stage


def _dirs_of(view: PartitionView, seen: LogDirsByBroker) -> tuple[str, ...]:
    """The directory of each replica, `any` where unknown."""
    found = (dirs_holding(view.id, seen.get(broker, ())) for broker in view.replicas)
    return tuple(paths[0] if len(paths) == 1 else ANY_DIR for paths in found)


def dirs_holding(pid: PartitionId, dirs: Iterable[LogDirView]) -> list[str]:
    """Directories of one broker that hold the replica in use; more than one while switching."""
    return [entry.path for entry in dirs if pid in entry.sizes]


def sizes_of(pid: PartitionId, dirs: Iterable[LogDirView]) -> list[int]:
    """Bytes of a replica in each directory that holds it."""
    return [entry.sizes[pid] for entry in dirs if pid in entry.sizes]


def dirs_receiving(pid: PartitionId, dirs: Iterable[LogDirView]) -> list[str]:
    """Directories that the replica is being copied into."""
    return [entry.path for entry in dirs if pid in entry.coming]


def bytes_copied(move: Move, view: PartitionView | None, seen: LogDirsByBroker) -> int | None:
    """Bytes on added replicas and in new directories; None if a replica is not visible."""
    held = view.replicas if view else ()
    total = 0
    for broker in (b for b in move.added if b in held):
        sizes = sizes_of(move.id, seen.get(broker, ()))
        if not sizes:
            return None
        total += max(sizes)
    for broker, (_, new) in changed_dirs(move).items():
        for entry in (d for d in seen.get(broker, ()) if d.path == new):
            total += entry.sizes.get(move.id, entry.coming.get(move.id, 0))
    return total


def bytes_left(move: Move, view: PartitionView | None, seen: LogDirsByBroker) -> int | None:
    """Bytes that the added replica furthest behind its leader lacks.

    None if none is behind, or one is not visible.
    """
    held = () if view is None else [b for b in move.added if b in view.replicas]
    sizes = {b: max(sizes_of(move.id, seen.get(b, ())), default=None) for b in held}
    if view is None or None in sizes.values():
        return None
    whole = max(sizes_of(move.id, seen.get(view.leader, ())), default=None)
    behind = [n for b, n in sizes.items() if b not in view.in_sync and n is not None]
    return None if whole is None or not behind else max(0, whole - min(behind))


def bytes_inside_brokers(move: Move, seen: LogDirsByBroker) -> int:
    """Bytes so far of all copies between directories of the brokers of this move."""
    return sum(
        size
        for broker in changed_dirs(move)
        for entry in seen.get(broker, ())
        for size in entry.coming.values()
    )

"""Checks that a plan's log directories can take its replicas."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from executor.client.cluster_admin import ClusterReads
from executor.client.responses import LogDirView
from executor.platforms.replica_log_dirs import (
    LogDirsByBroker,
    assigned_dirs,
    changed_dirs,
    dirs_holding,
    dirs_receiving,
    sizes_of,
)
from model.errors import ClusterUnreachable, GuardrailRefused, PlanOutdated, RightsMissing
from model.ids import BrokerId, PartitionId
from model.plan.plan import ANY_DIR, Move
from model.snapshot.snapshot import StorageKind
from model.units import bytes_text


def look(
    admin: ClusterReads, moves: Iterable[Move], alive: frozenset[BrokerId]
) -> dict[BrokerId, Sequence[LogDirView]]:
    """Log directories by live broker, for moves that name any."""
    by_broker: dict[BrokerId, list[PartitionId]] = defaultdict(list)
    for move in moves:
        if move.log_dirs_after:
            for broker in alive & {*move.replicas_before, *move.replicas_after}:
                by_broker[broker].append(move.id)
    return {b: admin.log_dirs(b, ids) for b, ids in sorted(by_broker.items())}


def inside_bytes(
    admin: ClusterReads, moves: Sequence[Move]
) -> dict[tuple[PartitionId, BrokerId], int]:
    """Bytes of replicas that move within their broker; 0 or absent where unknown."""
    if not any(map(changed_dirs, moves)):
        return {}
    try:
        seen = look(admin, moves, admin.cluster().alive)
    except ClusterUnreachable:
        # Without sizes there is no estimate; other checks report a silent cluster.
        return {}
    return {
        (move.id, broker): _size(move, broker, seen)
        for move in moves
        for broker in changed_dirs(move)
    }


def refuse_unclear(moves: Iterable[Move]) -> None:
    """Raise GuardrailRefused for moves whose directories are invalid on any cluster."""
    for move in moves:
        if not move.log_dirs_after:
            continue
        if move.storage is StorageKind.SHARED:
            raise GuardrailRefused(
                f"The plan names log directories for {move.id}, which is in object "
                "storage. Plan without level_directories."
            )
        pairs = (
            (move.replicas_before, move.log_dirs_before),
            (move.replicas_after, move.log_dirs_after),
        )
        if any(len(brokers) != len(paths) for brokers, paths in pairs):
            raise GuardrailRefused(
                f"The plan does not name the current and the new log directory "
                f"of each replica of {move.id}. Plan again."
            )
        for broker, (old, _) in changed_dirs(move).items():
            if old == ANY_DIR:
                raise GuardrailRefused(
                    f"The plan does not name the log directory of broker {broker} "
                    f"that has {move.id} now. Plan again."
                )


def drift(move: Move, seen: LogDirsByBroker) -> Iterator[str]:
    """Sentences about replicas in another directory than the plan expects."""
    planned = zip(move.replicas_before, move.log_dirs_before, strict=False)
    for broker, expected in planned:
        found = dirs_holding(move.id, seen.get(broker, ()))
        if found and expected not in (ANY_DIR, *found):
            yield f"{move.id} is in {found[0]} of broker {broker}, the plan expects {expected}"


def receiving_dirs(moves: Iterable[Move], seen: LogDirsByBroker) -> dict[PartitionId, str]:
    """The directory, in words, that replicas of these moves are being copied to."""
    return {
        move.id: f"{path} of broker {broker}"
        for move in moves
        for broker, dirs in seen.items()
        for path in dirs_receiving(move.id, dirs)
    }


def refuse_unfit(moves: Sequence[Move], seen: LogDirsByBroker) -> None:
    """Check that the directories exist, are online, not cordoned and large enough.

    Raises GuardrailRefused, PlanOutdated, or RightsMissing where they cannot be described.
    """
    incoming: dict[tuple[BrokerId, str], int] = defaultdict(int)
    for move in moves:
        for broker, path in assigned_dirs(move).items():
            _refuse_closed(move, broker, path, seen.get(broker, ()))
            incoming[broker, path] += _size(move, broker, seen)
    for (broker, path), size in incoming.items():
        (entry,) = (d for d in seen[broker] if d.path == path)
        if entry.usable_bytes is not None and size > entry.usable_bytes:
            raise GuardrailRefused(
                f"{path} of broker {broker} has {bytes_text(entry.usable_bytes)} free, "
                f"but the plan copies {bytes_text(size)} there. Free disk space, or "
                "plan again with fewer bytes."
            )


def _refuse_closed(move: Move, broker: BrokerId, path: str, dirs: Sequence[LogDirView]) -> None:
    if not dirs:
        raise RightsMissing(
            f"Broker {broker} does not show its log directories. Give plimsoll's user "
            "the right DESCRIBE on the cluster."
        )
    found = [d for d in dirs if d.path == path]
    if not found:
        known = " and ".join(sorted(d.path for d in dirs))
        raise PlanOutdated(
            f"Broker {broker} has no log directory {path}, where {move.id} goes; "
            f"it has {known}. Plan again."
        )
    # Kafka copies nothing inside a broker of which any directory is offline.
    failed = [d.path for d in dirs if d.offline] if broker in changed_dirs(move) else []
    if found[0].offline or failed:
        raise GuardrailRefused(
            f"The log directory {path if found[0].offline else failed[0]} of broker {broker} is "
            f"offline, so {move.id} cannot go to {path}. Bring it back first."
        )
    if found[0].cordoned:
        raise GuardrailRefused(
            f"The log directory {path} of broker {broker}, where {move.id} goes, "
            "is cordoned. Plan again."
        )


def _size(move: Move, broker: BrokerId, seen: LogDirsByBroker) -> int:
    """Bytes of the replica itself, or of the leader's replica that is copied."""
    source = broker if broker in changed_dirs(move) else move.leader_before
    return max(sizes_of(move.id, seen.get(source, ())), default=0)

"""Which waiting moves may start now."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final

from executor.platforms.replica_log_dirs import changed_dirs
from executor.timing import RunLimits
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move
from model.units import bytes_text

NO_LIMIT: Final[Mapping[BrokerId, int]] = {}


def in_order(moves: Iterable[Move]) -> list[Move]:
    """Return the moves in the plan's order: leader changes first, internal topics last."""
    return sorted(moves, key=lambda move: (is_internal(move), not is_leader_change(move)))


def startable(
    waiting: Iterable[Move],
    running: Sequence[Move],
    limits: RunLimits,
    free_bytes: Mapping[BrokerId, int] = NO_LIMIT,
    urgent: Collection[PartitionId] = (),
) -> list[Move]:
    """Return the waiting moves that may start now, in order.

    waiting: leader changes come before all moves that wait for them, as `in_order` has it.
    Leader changes are a first stage with a limit of their own: other moves wait until all
    have ended, except `urgent` ones, which leave dead or draining brokers.
    Moves of internal topics, on which consumer groups and transactions depend, run
    alone. A move waits while one of its new brokers lacks disk space for it and for the
    moves in flight; `free_bytes` has the brokers whose free space is known.
    """
    waiting = list(waiting)
    chosen = _leader_changes(waiting, running, limits, urgent)
    copying = [move for move in running if not is_leader_change(move)]
    if chosen or len(copying) < len(running):
        waiting = [m for m in waiting if m.id in urgent and not is_leader_change(m)]
    begun: list[Move] = []
    free = Counter(free_bytes)
    for move in running:
        free.subtract(dict.fromkeys(move.added, bytes_per_replica(move)))
    busy = Counter(broker for move in copying for broker in brokers_of(move))
    for move in waiting:
        in_flight = [*running, *chosen, *begun]
        if len(copying) + len(begun) >= limits.moves_in_flight or any(map(is_internal, in_flight)):
            break
        if is_internal(move) and in_flight:
            break
        if max(busy[b] for b in brokers_of(move)) >= limits.moves_per_broker:
            continue
        needs = dict.fromkeys(move.added, bytes_per_replica(move))
        if any(b in free_bytes and free[b] < size for b, size in needs.items()):
            continue
        begun.append(move)
        busy.update(brokers_of(move))
        free.subtract(needs)
    return [*chosen, *begun]


def _leader_changes(
    waiting: Sequence[Move],
    running: Sequence[Move],
    limits: RunLimits,
    urgent: Collection[PartitionId],
) -> list[Move]:
    """Leader changes among the first of the waiting moves that may start now."""
    if any(map(is_internal, running)):
        return []
    first = takewhile(lambda move: is_leader_change(move) or move.id in urgent, waiting)
    room = limits.leader_changes_in_flight - sum(map(is_leader_change, running))
    return list(islice(filter(is_leader_change, first), max(0, room)))


def bytes_per_replica(move: Move) -> int:
    """Bytes copied by each new replica according to the plan; 0 where unknown."""
    return (move.bytes_to_copy or 0) // len(move.added) if move.added else 0


def too_big(move: Move, free_bytes: Mapping[BrokerId, int]) -> str:
    """Why a move cannot start even when nothing is in flight, in words."""
    size = bytes_per_replica(move)
    tight = [b for b in move.added if b in free_bytes and free_bytes[b] < size]
    free = max(0, free_bytes[tight[0]])
    return (
        f"broker {tight[0]} has {bytes_text(free)} free beyond its reserve, and "
        f"{move.id} needs {bytes_text(size)}"
    )


def brokers_of(move: Move) -> set[BrokerId]:
    """Brokers that take part in a move: sources, targets and leaders."""
    return {move.leader_before, move.leader_after, *move.added, *move.removed}


def is_leader_change(move: Move) -> bool:
    """Whether a move copies nothing, and nothing depends on its topic: only its leader changes."""
    return not (move.added or is_internal(move) or changed_dirs(move))


def is_internal(move: Move) -> bool:
    """Whether consumer groups or transactions depend on its topic."""
    return move.topic.startswith("__")

"""Which of the moves that wait may start now."""

from collections import Counter
from collections.abc import Iterable, Sequence

from executor.timing import RunLimits
from model.ids import BrokerId
from model.plan import Move


def in_order(moves: Iterable[Move]) -> list[Move]:
    """The plan's order, with internal topics last."""
    return sorted(moves, key=_is_internal)


def startable(
    waiting: Iterable[Move], running: Sequence[Move], limits: RunLimits
) -> list[Move]:
    """Those that may start beside the running ones, in order.

    Moves of internal topics, on which groups and transactions hang, run alone.
    """
    chosen: list[Move] = []
    busy = Counter(broker for move in running for broker in brokers_of(move))
    for move in waiting:
        beside = [*running, *chosen]
        if len(beside) >= limits.moves_in_flight or any(map(_is_internal, beside)):
            break
        if _is_internal(move) and beside:
            break
        if max(busy[b] for b in brokers_of(move)) >= limits.moves_per_broker:
            continue
        chosen.append(move)
        busy.update(brokers_of(move))
    return chosen


def brokers_of(move: Move) -> set[BrokerId]:
    """Brokers with work on a move: those that give, take or lead."""
    return {move.leader_before, move.leader_after, *move.added, *move.removed}


def _is_internal(move: Move) -> bool:
    return move.topic.startswith("__")

"""How far a run is."""

from collections.abc import Iterable

from model.run import MoveProgress, MoveState, RunProgress, RunState

ENDED = (MoveState.DONE, MoveState.DROPPED, MoveState.STUCK)
ACTIVE = (RunState.CHECKING, RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)
NEARLY = 0.99
"""What is not over shows no more than this."""


def share_done(run: RunProgress) -> float:
    """Bytes that have arrived as a share of all; of moves, where none are copied.

    What was dropped counts as done only while the run goes on: as no more to do.
    """
    is_active = run.state in ACTIVE
    over = ENDED if is_active else (MoveState.DONE,)
    if run.moves and all(m.state in over for m in run.moves):
        return 1.0
    counted = [m for m in run.moves if is_active or m.state is not MoveState.DROPPED]
    total = bytes_total(run)
    by_moves = sum(map(move_share, counted)) / max(1, len(run.moves))
    share = _bytes_arrived(counted) / total if total else by_moves
    return min(NEARLY, share)


def bytes_total(run: RunProgress) -> int:
    """Bytes that the plan wants to be copied, of moves whose size is known."""
    return sum(m.move.bytes_to_copy or 0 for m in run.moves)


def _bytes_arrived(moves: Iterable[MoveProgress]) -> float:
    """The same of moves that ended, and of the others what was copied."""
    return sum(move_share(m) * (m.move.bytes_to_copy or 0) for m in moves)


def bytes_copied(run: RunProgress) -> int:
    """Bytes copied so far, where that can be seen."""
    return sum(m.bytes_copied or 0 for m in run.moves)


def move_share(move: MoveProgress) -> float:
    """How much of one move is done; of one that was dropped nothing is left to do."""
    if move.state in (MoveState.DONE, MoveState.DROPPED):
        return 1.0
    if move.state is MoveState.PLANNED or not move.bytes_copied:
        return 0.0
    # The log grows while it is copied and may exceed the plan's figure.
    return min(NEARLY, move.bytes_copied / max(1, move.move.bytes_to_copy or 0))


def rate_of_move(move: MoveProgress, now_ms: int) -> float | None:
    """Bytes per second from the request on; None where nothing is seen to arrive."""
    if move.issued_at_ms is None or not move.bytes_copied:
        return None
    until_ms = now_ms if move.done_at_ms is None else move.done_at_ms
    seconds = (until_ms - move.issued_at_ms) / 1000
    return move.bytes_copied / seconds if seconds > 0 else None


def rate_now(run: RunProgress, now_ms: int) -> float:
    """Bytes per second of all moves that are under way."""
    in_flight = [m for m in run.moves if m.state is MoveState.ISSUED]
    return sum(rate_of_move(m, now_ms) or 0.0 for m in in_flight)

"""Shares, bytes and rates of a run and its moves."""

from collections.abc import Iterable

from model.run import MoveProgress, MoveState, RunProgress, RunState
from tui.viewmodel.memoize import memoized

ENDED = (MoveState.DONE, MoveState.DROPPED, MoveState.STUCK)
ACTIVE = (RunState.CHECKING, RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)
NEARLY = 0.99
"""The most that an unfinished run or move shows."""


@memoized
def share_done(run: RunProgress) -> float:
    """The share of bytes that have arrived, or of moves if no bytes are copied.

    Skipped moves count as done only during the run: nothing is left to do for them.
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


@memoized
def bytes_total(run: RunProgress) -> int:
    """Bytes to copy by the plan, of the moves whose size is known."""
    return sum(m.move.bytes_to_copy or 0 for m in run.moves)


def _bytes_arrived(moves: Iterable[MoveProgress]) -> float:
    """Bytes of the moves that ended, and those copied so far of the others."""
    return sum(move_share(m) * (m.move.bytes_to_copy or 0) for m in moves)


@memoized
def bytes_copied(run: RunProgress) -> int:
    """Bytes copied so far, as far as known."""
    return sum(m.bytes_copied or 0 for m in run.moves)


def move_share(move: MoveProgress) -> float:
    """The share of one move that is done; 1 if it was skipped."""
    if move.state in (MoveState.DONE, MoveState.DROPPED):
        return 1.0
    if move.state is MoveState.PLANNED or not move.bytes_copied:
        return 0.0
    # The log grows while it is copied and may exceed the plan's figure.
    return min(NEARLY, move.bytes_copied / max(1, move.move.bytes_to_copy or 0))


def rate_of_move(move: MoveProgress, now_ms: int) -> float | None:
    """Bytes per second since the request; None while nothing has arrived.

    None in the first second, too: what is known of bytes and of time differs by about as much.
    """
    if move.issued_at_ms is None or not move.bytes_copied:
        return None
    until_ms, least_ms = (now_ms, 1000) if move.done_at_ms is None else (move.done_at_ms, 1)
    elapsed_ms = until_ms - move.issued_at_ms
    return move.bytes_copied / (elapsed_ms / 1000) if elapsed_ms >= least_ms else None


def rate_now(run: RunProgress, now_ms: int) -> float:
    """Bytes per second of all in-flight moves."""
    in_flight = [m for m in run.moves if m.state is MoveState.ISSUED]
    return sum(rate_of_move(m, now_ms) or 0.0 for m in in_flight)

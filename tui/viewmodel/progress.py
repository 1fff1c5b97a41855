"""How far a run is."""

from model.run import MoveProgress, MoveState, RunProgress, RunState

ENDED = (MoveState.DONE, MoveState.DROPPED, MoveState.STUCK)
ACTIVE = (RunState.CHECKING, RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


def moves_done(run: RunProgress) -> float:
    """Moves that ended, and the copied share of those under way."""
    return sum(map(_share, run.moves))


def share_done(run: RunProgress) -> float:
    """The same as a share of all moves."""
    return moves_done(run) / len(run.moves) if run.moves else 0.0


def bytes_copied(run: RunProgress) -> int:
    """Bytes copied so far, where that can be seen."""
    return sum(m.bytes_copied or 0 for m in run.moves)


def _share(move: MoveProgress) -> float:
    if move.state in ENDED:
        return 1.0
    if move.state is MoveState.PLANNED or not move.bytes_copied:
        return 0.0
    # The log grows while it is copied, so the plan's figure may be exceeded.
    return min(0.99, move.bytes_copied / max(1, move.move.bytes_to_copy))

"""Log lines for what changed in a run: its state, and each move's start and end."""

from collections.abc import Iterator

from model.run import MoveProgress, MoveState, RunProgress, RunState

WARNED = (RunState.PAUSED, RunState.STOPPING)
FAILED = (MoveState.DROPPED, MoveState.STUCK)


def run_lines(
    before: RunProgress | None, after: RunProgress
) -> Iterator[tuple[str, str]]:
    """The level and the text of each line."""
    same = before is not None and before.run_id == after.run_id
    if not same or before is None or before.state is not after.state:
        reason = f": {after.reason}" if after.reason else ""
        level = "warning" if after.state in WARNED else "info"
        yield level, f"run {after.run_id} {after.state}{reason}"
    known = {m.move.id: m.state for m in before.moves} if same and before else {}
    for item in after.moves:
        if item.state is not known.get(item.move.id, MoveState.PLANNED):
            yield _move_line(item)


def _move_line(item: MoveProgress) -> tuple[str, str]:
    move = item.move
    if item.state is MoveState.ISSUED:
        old = ",".join(map(str, move.replicas_before))
        new = ",".join(map(str, move.replicas_after))
        return "info", f"{move.id} started: {old} -> {new}"
    took = f" in {item.seconds:.1f} s" if item.seconds is not None else ""
    note = f": {item.note}" if item.note else ""
    level = "warning" if item.state in FAILED else "info"
    return level, f"{move.id} {item.state}{took}{note}"

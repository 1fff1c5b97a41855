"""The plan or the run: a title, lines of figures, a table of moves."""

from collections.abc import Sequence
from dataclasses import dataclass

from control.view import LoopView, Phase
from model.ids import BrokerId
from model.plan import Move
from model.run import MoveProgress, MoveState, RunProgress, RunState
from model.units import bytes_text, count_text, seconds_text
from tui.viewmodel.ages import ticking
from tui.viewmodel.cells import (
    Cell,
    Column,
    Role,
    Row,
    Span,
    Table,
    cell,
    flow,
    right,
    shorten,
    shorten_middle,
)
from tui.viewmodel.progress import ACTIVE, ENDED, bytes_copied, moves_done

MOVES_SHOWN = 500
"""Rows of the table; further ones are counted in words."""

REASON_LEAST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What the panel of the plan shows."""

    title: str
    lines: tuple[Cell, ...]
    table: Table
    progress: tuple[float, int] | None = None
    """Moves done and all moves, of a run."""
    note: str = ""


def run_panel(view: LoopView, width: int) -> Panel:
    """The run that goes on, else the last one."""
    if view.run is not None:
        return _run_panel(view, view.run, width)
    why = "No run was made yet. Approve a plan, and its moves are listed here."
    return Panel(title="Run", lines=(), table=Table(columns=(), rows=(), why_empty=why))


def why_no_plan(view: LoopView) -> str:
    """Why there are no moves to show, and what would bring some."""
    match view.phase:
        case Phase.CONNECTING | Phase.UNREACHABLE:
            return "There is no plan yet; the cluster has to answer first."
        case Phase.MEASURING:
            return "There is no plan yet; loads have to be known first."
        case Phase.SOLVING:
            return "A plan is being made; this may take some seconds."
        case Phase.LEVEL:
            return (
                "There is nothing to move: every broker is within its band. "
                "When one leaves it, a plan is made."
            )
        case Phase.FAILED:
            return "There will be no plan: plimsoll has stopped. Quit and start again."
        case _:
            return f"There is no plan: {view.message}."


def from_to(move: Move) -> str:
    """`1 → 2`: the replicas that change, or the lists where only their order does."""
    if move.added or move.removed:
        return f"{listed(move.removed)} → {listed(move.added)}"
    return f"{listed(move.replicas_before)} → {listed(move.replicas_after)}"


def listed(brokers: tuple[BrokerId, ...]) -> str:
    """Broker ids with commas; a dash for none."""
    return ",".join(map(str, brokers)) or "-"


def _columns(
    moves: Sequence[Move], *middle: Column, last: str, width: int
) -> tuple[Column, ...]:
    """Partitions as wide as they need, up to a third; the last takes what is left."""
    longest = max((len(str(m.id)) for m in moves), default=0)
    wanted = max(len("partition"), longest) + 1
    first = Column("partition", "partition", min(wanted, max(16, width // 3)))
    left = width - first.width - sum(c.width for c in middle)
    return (first, *middle, Column(last, last, max(REASON_LEAST, left)))


# ---- a run


RUN_ROLES = {
    RunState.DONE: Role.GOOD,
    RunState.FAILED: Role.ALARM,
    RunState.STOPPED: Role.UNDER,
}
MOVE_ROLES = {
    MoveState.PLANNED: Role.MUTED,
    MoveState.ISSUED: Role.STRONG,
    MoveState.DONE: Role.GOOD,
    MoveState.DROPPED: Role.UNDER,
    MoveState.STUCK: Role.ALARM,
}


def _run_panel(view: LoopView, run: RunProgress, width: int) -> Panel:
    columns = _columns(
        [m.move for m in run.moves[:MOVES_SHOWN]],
        Column("brokers", "from → to", 12),
        Column("state", "state", 8),
        Column("time", "      time", 11),
        Column("copied", "   copied", 10),
        Column("bytes", "  to copy", 10),
        last="note",
        width=width,
    )
    rows = tuple(_progress_row(m, columns, view.at_ms) for m in run.moves[:MOVES_SHOWN])
    more = len(run.moves) - MOVES_SHOWN
    return Panel(
        title=f"Run {run.run_id} of plan {run.plan_hash[:12]}",
        lines=flow(_run_items(run), width),
        table=Table(columns=columns, rows=rows, why_empty="This run has no moves."),
        progress=(moves_done(run), len(run.moves)),
        note=f"and {count_text(more, 'more move')}" if more > 0 else "",
    )


def _run_items(run: RunProgress) -> list[Cell]:
    to_copy = sum(m.move.bytes_to_copy for m in run.moves)
    ended = [m for m in run.moves if m.state in ENDED and m.seconds is not None]
    slowest = max((m.seconds or 0.0 for m in ended), default=0.0)
    items = [
        cell(run.state.value.upper(), RUN_ROLES.get(run.state, Role.STRONG)),
        cell(f"{run.count(MoveState.DONE)} of {count_text(len(run.moves), 'move')}"),
        cell(f"{bytes_text(bytes_copied(run))} of {bytes_text(to_copy)} copied"),
    ]
    items += [
        cell(f"{count} {state.value}", MOVE_ROLES[state])
        for state in (MoveState.ISSUED, MoveState.DROPPED, MoveState.STUCK)
        if (count := run.count(state))
    ]
    if run.preparation_s:
        items.append(cell(f"prepared in {seconds_text(run.preparation_s)}"))
    if ended and run.state not in ACTIVE:
        items.append(cell(f"slowest move {seconds_text(slowest)}"))
    if run.reason:
        items.append((Span("because: "), Span(run.reason, Role.UNDER)))
    return items


def _progress_row(item: MoveProgress, columns: tuple[Column, ...], at_ms: int) -> Row:
    partition, brokers, _state, time, copied, size, note = columns
    words = item.note or item.move.reason
    arrived = "-" if item.bytes_copied is None else bytes_text(item.bytes_copied)
    return Row(
        key=str(item.move.id),
        cells=(
            cell(shorten_middle(str(item.move.id), partition.width - 1)),
            cell(shorten(from_to(item.move), brokers.width - 1)),
            cell(item.state.value, MOVE_ROLES[item.state]),
            right(_time(item, at_ms), time.width),
            right(arrived, copied.width),
            right(bytes_text(item.move.bytes_to_copy), size.width),
            cell(shorten(words, note.width), Role.UNDER if item.note else Role.PLAIN),
        ),
    )


def _time(item: MoveProgress, at_ms: int) -> str:
    """How long the move took, or has been going on."""
    if item.seconds is not None:
        return seconds_text(item.seconds)
    if item.state is not MoveState.ISSUED or item.issued_at_ms is None:
        return "-"
    return ticking(max(0, at_ms - item.issued_at_ms) // 1000)

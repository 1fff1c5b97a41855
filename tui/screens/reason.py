"""One move in full, with its reason."""

from typing import Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Label, Static

from control.loop.view import LoopView
from model.plan.plan import Move
from model.units import bytes_text
from tui.screens.backdrop import Over
from tui.viewmodel.plan.moves import cost_line, reason_of, removal_table
from tui.viewmodel.plan.shown_plan import Shown, shown
from tui.viewmodel.plan.wording import listed


def open_move(over: Screen[Any], view: LoopView, partition: str) -> None:
    """Show the planned move of a partition, or say that it is not moved."""
    now = shown(view)
    moves = now.plan.moves if now.plan is not None and not now.supposed else ()
    move = next((m for m in moves if str(m.id) == partition), None)
    if move is not None:
        over.app.push_screen(ReasonScreen(move, shown=now))
    else:
        over.notify(f"{partition} is not moved by the plan", timeout=4, markup=False)


class ReasonScreen(Over[None]):
    """Show one move; escape, enter or q closes it."""

    BINDINGS = [Binding("escape,enter,q", "close", "Close", id="reason.close")]

    def __init__(self, move: Move, shown: Shown | None = None) -> None:
        """Show `move`, and its cost if `shown`, the plan it belongs to, is given."""
        super().__init__()
        self._move, self._shown = move, shown

    def compose(self) -> ComposeResult:
        move, shown = self._move, self._shown
        title = shown.title(str(move.id)) if shown is not None else str(move.id)
        with VerticalScroll(classes="dialog"):
            yield Label(title, classes="title -long", markup=False)
            yield Static(
                f"replicas  {listed(move.replicas_before)} → "
                f"{listed(move.replicas_after)}\n"
                f"leader    {move.leader_before} → {move.leader_after}\n"
                f"to copy   {bytes_text(move.bytes_to_copy)} ({move.storage} storage)"
                + _gain(move)
                + (cost_line(move, shown) if shown is not None else ""),
                markup=False,
            )
            yield Static(reason_of(move), id="reason", markup=False)
            if shown is not None and (lost := removal_table(move, shown)):
                yield Static(lost, id="without", markup=False)
            yield Label("escape closes", classes="hint")

    def action_close(self) -> None:
        self.dismiss()


def _gain(move: Move) -> str:
    """A line on the imbalance score; empty for a rollback move, which has no gain."""
    if not move.gain:
        return ""
    words = "without this move the imbalance score would be higher by this"
    return f"\ngain      {move.gain:.4g}: {words}"

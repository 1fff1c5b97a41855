"""One move in full, with its reason."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from model.plan.plan import Move
from model.units import bytes_text
from tui.viewmodel.plan.moves import cost_line, removal_table
from tui.viewmodel.plan.shown_plan import Shown
from tui.viewmodel.plan.wording import listed


class ReasonScreen(ModalScreen[None]):
    """Show one move; escape, enter or q closes it."""

    BINDINGS = [Binding("escape,enter,q", "close", "Close", id="reason.close")]

    def __init__(self, move: Move, shown: Shown | None = None) -> None:
        """Show `move`, and its cost if `shown`, the plan it belongs to, is given."""
        super().__init__()
        self._move, self._shown = move, shown

    def on_mount(self) -> None:
        # Otherwise each step of its layout would be painted, with the screen below.
        self.app.delay_update()

    def compose(self) -> ComposeResult:
        move, shown = self._move, self._shown
        title = shown.title(str(move.id)) if shown is not None else str(move.id)
        with VerticalScroll(classes="dialog"):
            yield Label(title, classes="title", markup=False)
            yield Static(
                f"replicas  {listed(move.replicas_before)} → "
                f"{listed(move.replicas_after)}\n"
                f"leader    {move.leader_before} → {move.leader_after}\n"
                f"to copy   {bytes_text(move.bytes_to_copy)} ({move.storage} storage)"
                + _gain(move)
                + (cost_line(move, shown) if shown is not None else ""),
                markup=False,
            )
            yield Static(move.reason_text, id="reason", markup=False)
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

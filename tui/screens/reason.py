"""One move in full, with its reason."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from model.plan import Move
from model.units import bytes_text
from tui.viewmodel.plan import listed


class ReasonScreen(ModalScreen[None]):
    """Shows a move; escape, enter or q closes it."""

    BINDINGS = [Binding("escape,enter,q", "close", "Close", id="reason.close")]

    def __init__(self, move: Move) -> None:
        super().__init__()
        self._move = move

    def compose(self) -> ComposeResult:
        move = self._move
        with VerticalScroll(classes="dialog"):
            yield Label(str(move.id), classes="title", markup=False)
            yield Static(
                f"replicas  {listed(move.replicas_before)} → "
                f"{listed(move.replicas_after)}\n"
                f"leader    {move.leader_before} → {move.leader_after}\n"
                f"copies    {bytes_text(move.bytes_to_copy)} ({move.storage} storage)\n"
                f"gain      {move.gain:.4g}: the score would rise by it without this "
                "move",
                markup=False,
            )
            yield Static(move.reason, id="reason", markup=False)
            yield Label("escape closes", classes="hint")

    def action_close(self) -> None:
        self.dismiss()

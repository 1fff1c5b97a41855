"""The question at which rate moves may copy from now on."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from tui.viewmodel.throttle import typed_rate


class ThrottleScreen(ModalScreen[None]):
    """Takes a rate; what is none is told in words, and nothing is asked of the run."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="throttle.cancel")]
    AUTO_FOCUS = "Input"

    def __init__(self, now: str, ask: Callable[[int | None], None]) -> None:
        super().__init__()
        self._now = now
        self._ask = ask

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Label("Let moves copy at another rate?", classes="title")
            yield Static(f"Now: {self._now}.", markup=False)
            yield Static(
                "Bytes per second into a broker and out of it, as 50MB/s; none for no "
                "throttle, auto to follow what clients leave free."
            )
            yield Input(placeholder="50MB/s", max_length=40)
            yield Static(id="refused", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", variant="primary")
                yield Button("Ask for it", id="yes", variant="warning")

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self._send()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._send()
        else:
            self.dismiss()

    def action_no(self) -> None:
        self.dismiss()

    def _send(self) -> None:
        try:
            rate = typed_rate(self.query_one(Input).value)
        except ValueError as exc:
            refused = self.query_one("#refused", Static)
            refused.update(f"{exc}.")
            refused.display = True
        else:
            self._ask(rate)
            self.dismiss()

"""The dialog that changes the throttle of the run in progress."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Input, Label, Static

from tui.screens.dialog import Dialog
from tui.viewmodel.run.throttle import typed_rate
from tui.widgets.compact import compact


class ThrottleScreen(Dialog):
    """Ask for a rate; an invalid one is explained, and the run is not changed."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="throttle.cancel")]
    AUTO_FOCUS = "Input"

    def __init__(self, now: str, ask: Callable[[int | None], None]) -> None:
        super().__init__()
        self._now = now
        self._ask = ask

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Label("Change the throttle?", classes="title")
            yield Static(f"Now: {self._now}.", markup=False)
            yield Static(
                "Bytes per second into and out of each broker, for example 50MB/s. "
                "`none` removes the throttle, `auto` follows what clients leave free.",
                markup=False,
            )
            yield compact(Input(placeholder="50MB/s", max_length=40))
            yield Static(id="refused", markup=False)
            with Horizontal(classes="buttons"):
                yield compact(Button("Cancel", id="no", variant="primary"))
                yield compact(Button("Apply", id="yes", variant="warning"))

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        if not self.is_covered:
            self.send()

    def send(self) -> None:
        """Request the typed rate if it is valid."""
        try:
            rate = typed_rate(self.query_one(Input).value)
        except ValueError as exc:
            self.say(f"{exc}.")
        else:
            self._ask(rate)
            self.dismiss()

"""The question whether what a run has moved is to be moved back."""

import asyncio
from collections.abc import Callable, Sequence

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from model.errors import PlimsollError
from model.plan import Plan
from tui.viewmodel.approval import counts, touched


class RollBackScreen(ModalScreen[None]):
    """Acts on the plan back that it shows, and only for the typed name."""

    BINDINGS = [Binding("escape", "no", "Cancel", id="rollback.cancel")]
    AUTO_FOCUS = "#no"

    def __init__(
        self,
        run_id: str,
        plan: Plan,
        left: Sequence[str],
        cluster_name: str,
        roll_back: Callable[[Plan], None],
    ) -> None:
        super().__init__()
        self._run_id = run_id
        self._plan = plan
        self._left = left
        self._cluster_name = cluster_name
        self._roll_back = roll_back
        self._sent = False

    def compose(self) -> ComposeResult:
        plan = self._plan
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Label(f"Roll back run {self._run_id}?", classes="title")
            yield Static(
                f"{counts(plan)}\n"
                f"brokers: {touched(plan)}\n"
                f"plan {plan.hash[:12]}, cluster {self._cluster_name}, "
                f"id {plan.cluster_id}",
                markup=False,
            )
            if self._left:
                yield Static(f"Left alone: {'; '.join(self._left)}", markup=False)
            yield Static(id="refused", markup=False)
            yield Label(
                f"Tab, then type the cluster's name to go back: {self._cluster_name}",
                markup=False,
            )
            yield Input(id="name", placeholder="the cluster's name")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", variant="primary")
                yield Button("Roll back", id="yes", variant="warning", disabled=True)

    def on_input_changed(self, _event: Input.Changed) -> None:
        self._arm()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        # A second enter goes back, so that one typed too many does not.
        if self._armed:
            self.query_one("#yes", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id != "yes":
            self.dismiss()
        elif self._armed:
            self._send()

    def action_no(self) -> None:
        self.dismiss()

    @property
    def _armed(self) -> bool:
        typed = self.query_one("#name", Input).value
        return bool(typed) and typed == self._cluster_name and not self._sent

    def _arm(self) -> None:
        self.query_one("#yes", Button).disabled = not self._armed

    @work(exclusive=True)
    async def _send(self) -> None:
        self._sent = True
        self._arm()
        try:
            # The loop may hold its lock for a moment; the screen goes on meanwhile.
            await asyncio.to_thread(self._roll_back, self._plan)
        except PlimsollError as exc:
            self._sent = False
            refused = self.query_one("#refused", Static)
            refused.update(f"Not rolled back: {exc}.")
            refused.display = True
            self._arm()
        else:
            self.dismiss()

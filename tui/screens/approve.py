"""The question whether exactly this plan is to be carried out."""

import asyncio
from collections.abc import Callable

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from model.errors import PlimsollError
from model.plan import Plan
from tui.moment import Moment
from tui.viewmodel.approval import asked, counts, replaced, throttle_line, touched


class ApproveScreen(ModalScreen[None]):
    """Acts on the plan it shows, by its hash, and only for the typed name.

    It never takes up a newer plan: it says that there is one.
    """

    BINDINGS = [Binding("escape", "no", "Cancel", id="approve.cancel")]
    AUTO_FOCUS = "#no"

    def __init__(
        self, plan: Plan, moment: Moment, approve: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._plan = plan
        self._cluster_name = moment.view.cluster_name
        self._more = asked(moment.view) + throttle_line(moment.throttle)
        self._approve = approve
        self._gone = ""
        """Why the plan can no longer be approved; empty while it can."""
        self._sent = False

    def compose(self) -> ComposeResult:
        plan = self._plan
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Label(f"Approve plan {plan.hash[:12]}?", classes="title")
            yield Static(
                f"{counts(plan)}\n"
                f"brokers: {touched(plan)}\n"
                f"{self._more}"
                f"cluster {self._cluster_name}, id {plan.cluster_id}",
                markup=False,
            )
            yield Static(id="refused", markup=False)
            yield Label(
                f"Tab, then type the cluster's name to approve: {self._cluster_name}",
                markup=False,
            )
            yield Input(id="name", placeholder="the cluster's name")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", variant="primary")
                yield Button(
                    "Approve and run", id="yes", variant="warning", disabled=True
                )

    def on_mount(self) -> None:
        self.watch(self.app, "moment", self._arrived)

    def _arrived(self, moment: Moment) -> None:
        if self._gone or self._sent:
            return
        self._gone = replaced(moment.view, self._plan)
        if self._gone:
            self._say(self._gone)
            self._arm()

    def on_input_changed(self, _event: Input.Changed) -> None:
        self._arm()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        # A second enter approves, so that one typed too many does not.
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
        fits = bool(self._cluster_name) and typed == self._cluster_name
        return fits and not self._gone and not self._sent

    def _arm(self) -> None:
        self.query_one("#yes", Button).disabled = not self._armed

    def _say(self, sentence: str) -> None:
        refused = self.query_one("#refused", Static)
        refused.update(sentence)
        refused.display = bool(sentence)

    @work(exclusive=True)
    async def _send(self) -> None:
        self._sent = True
        self._arm()
        try:
            # The loop may hold its lock for a moment; the screen goes on meanwhile.
            await asyncio.to_thread(self._approve, self._plan.hash)
        except PlimsollError as exc:
            self._sent = False
            self._say(f"Not approved: {exc}.")
            self._arm()
        else:
            self.dismiss()

"""What can be requested for one broker."""

from typing import Final

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Label, OptionList, Static
from textual.widgets.option_list import Option

from control.tasks.broker_task import Operation
from model.ids import BrokerId
from tui.screens.too_small import Covered

EXCLUDE: Final = "exclude"
INCLUDE: Final = "include"
_CHOICES: Final = {
    Operation.REMOVE.value: "remove           move all replicas to other brokers",
    Operation.ADD.value: "add              fill it up to its tolerance",
    Operation.DEMOTE.value: "demote           let other replicas lead",
    Operation.UNDEMOTE.value: "undemote         elect its leaders back",
    Operation.MAINTENANCE.value: "maintenance on   as demote, before it is stopped",
    Operation.MAINTENANCE_OFF.value: "maintenance off  elect its leaders back",
    EXCLUDE: "exclude          keep new replicas away; moves nothing",
    INCLUDE: "include          let it take new replicas again",
}


class BrokerMenu(Covered[str]):
    """Answers with an operation, `EXCLUDE` or `INCLUDE`; escape answers with nothing."""

    BINDINGS = [Binding("escape,q", "close", "Close", id="menu.close")]
    AUTO_FOCUS = "OptionList"

    def __init__(self, broker: BrokerId) -> None:
        super().__init__()
        self._broker = broker

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog menu"):
            yield Label(f"Request for broker {self._broker}", classes="title", markup=False)
            options = [Option(words, id=name) for name, words in _CHOICES.items()]
            yield OptionList(*options, compact=True, markup=False)
            yield Static(
                "Enter shows the plan first. plimsoll broker takes several brokers, and replaces.",
                classes="hint",
                markup=False,
            )

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if not self.is_covered:
            self.dismiss(event.option_id)

    def action_close(self) -> None:
        self.dismiss(None)

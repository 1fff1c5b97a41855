"""What can be requested for one broker, for several, or for whole racks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from control.tasks.broker_task import Operation, brokers_text
from control.tasks.task_request import NamedBrokers
from model.errors import ConfigError
from model.ids import BrokerId
from model.snapshot.snapshot import Broker
from tui.screens.too_small import Covered
from tui.widgets.compact import compact

EXCLUDE: Final = "exclude"
INCLUDE: Final = "include"
MOST_TYPED: Final = 2_000
"""Characters of the brokers' names."""
_SHOWN: Final = 8
"""Brokers named below the field; the question after it has all of them."""
_HINT: Final = "Enter shows the plan. Tab: others, as 4 5 --rack az-1"
_CHOICES: Final = {
    Operation.REMOVE.value: "remove           move all replicas to other brokers",
    Operation.REPLACE.value: "replace          move all to one other broker",
    Operation.ADD.value: "add              fill it up to its tolerance",
    Operation.DEMOTE.value: "demote           let other replicas lead",
    Operation.UNDEMOTE.value: "undemote         elect its leaders back",
    Operation.MAINTENANCE.value: "maintenance on   demote it before it is stopped",
    Operation.MAINTENANCE_OFF.value: "maintenance off  end that, and elect its leaders back",
    EXCLUDE: "exclude          keep new replicas away; moves nothing",
    INCLUDE: "include          let it take new replicas again",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The answer of the menu."""

    name: str
    """Of an operation, `EXCLUDE` or `INCLUDE`."""
    brokers: NamedBrokers


class BrokerMenu(Covered[Chosen]):
    """Answers with an operation and its brokers; escape answers with nothing."""

    BINDINGS = [Binding("escape,q", "close", "Close", id="menu.close")]
    AUTO_FOCUS = "OptionList"

    def __init__(self, broker: BrokerId, members: Sequence[Broker]) -> None:
        """broker: the one to begin with. members: those that can be named."""
        super().__init__()
        self._broker, self._members = broker, members

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog menu"):
            with Horizontal(classes="asked"):
                yield Label("Request for broker ", classes="title", markup=False)
                yield compact(
                    Input(
                        str(self._broker), id="named", max_length=MOST_TYPED, select_on_focus=False
                    )
                )
            yield Static(id="refused", markup=False)
            options = [Option(words, id=name) for name, words in _CHOICES.items()]
            yield OptionList(*options, compact=True, markup=False)
            yield Static(_HINT, classes="hint", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show which brokers are named, or what is wrong."""
        event.stop()
        line = self.query_one("#refused", Static)
        try:
            words, fault = brokers_text(self._named.among(self._members), _SHOWN), False
        except ConfigError as exc:
            words, fault = str(exc), True
        line.update(words)
        line.set_class(fault, "-fault")
        line.display = event.value != str(self._broker)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(OptionList).focus()

    @property
    def _named(self) -> NamedBrokers:
        """The brokers typed; raises ConfigError where they cannot be read."""
        return NamedBrokers.of(self.query_one("#named", Input).value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.is_covered:
            return
        try:
            chosen = Chosen(event.option_id or "", self._named)
        except ConfigError as exc:
            self.app.notify(str(exc), severity="error", timeout=8, markup=False)
            return
        self.dismiss(chosen)

    def action_close(self) -> None:
        self.dismiss(None)

"""The line that opens a screen or a list by its name."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widgets import Input, Static

from control.loop.view import LoopView
from tui.screens.backdrop import Over
from tui.viewmodel.cells import shorten
from tui.viewmodel.command_names import OFFERED, command_of, completions
from tui.widgets.compact import compact

LONGEST = 260
"""Characters; a topic's name has at most 249."""


class _Names(Suggester):
    """Suggests the first completion."""

    def __init__(self, view: LoopView) -> None:
        super().__init__(use_cache=False, case_sensitive=False)
        self._view = view

    async def get_suggestion(self, value: str) -> str | None:
        return next(iter(completions(value, self._view)), None) if value.strip() else None


class CommandLine(Over[str]):
    """Returns the action that was named; tab completes, escape closes it."""

    BINDINGS = [
        Binding("escape", "close", "Close", id="command.close"),
        Binding("tab", "complete", "Complete", show=False, priority=True, id="command.complete"),
    ]
    AUTO_FOCUS = "Input"

    def __init__(self, view: Callable[[], LoopView]) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        with Vertical(id="command-line"):
            yield Static(self._offered(""), id="names", markup=False)
            yield compact(
                Input(
                    placeholder="a screen, broker ID or topic NAME",
                    suggester=_Names(self._view()),
                    max_length=LONGEST,
                    select_on_focus=False,
                )
            )

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one("#names", Static).update(self._offered(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        found = command_of(event.value, self._view())
        if found.fault:
            self.query_one("#names", Static).update(found.fault)
        else:
            self.dismiss(found.action)

    def action_complete(self) -> None:
        """Type the rest of the first completion."""
        field = self.query_one(Input)
        first = next(iter(completions(field.value, self._view())), None)
        if first is not None:
            field.value = first
            field.cursor_position = len(first)

    def action_close(self) -> None:
        self.dismiss("")

    def _offered(self, typed: str) -> str:
        found = completions(typed, self._view())
        words = found if not typed.strip() else found[:OFFERED]
        more = f", and {len(found) - len(words)} more" if len(found) > len(words) else ""
        return ", ".join(shorten(w, 60) for w in words) + more

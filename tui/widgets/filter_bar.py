"""The input line of a filter, and the actions of a widget that has one."""

from typing import ClassVar

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.viewmodel.sort_filter import LONGEST
from tui.widgets.compact import compact


class FilterBar(Input):
    """Visible while it has the focus or holds a filter."""

    def __init__(self) -> None:
        super().__init__(
            placeholder="regular expression; a leading ! inverts, escape clears",
            max_length=LONGEST,
            select_on_focus=False,
        )
        compact(self)
        self.cursor_blink = False

    def on_mount(self) -> None:
        self.display = False

    def open(self) -> None:
        """Show the input line and focus it."""
        self.display = True
        self.focus()

    def close(self) -> None:
        """Hide the line unless it holds a filter."""
        self.display = bool(self.value)


class Filterable(Widget):
    """A widget with a filter bar, and a note that is hidden while empty."""

    BINDINGS = [
        Binding(
            "slash",
            "filter",
            "Filter",
            tooltip="Show rows that match a regular expression; a leading ! inverts it",
            key_display="/",
            id="table.filter",
        ),
        Binding("escape", "clear", "Clear filter", show=False, id="table.clear"),
    ]
    FILTERED: ClassVar[type[Widget]]
    """The widget that the filter applies to; it gets the focus back."""
    _note: str | None = None

    def show_note(self, text: str) -> None:
        """Show a note; hide it if the text is empty."""
        note = self.query_one(".note", Static)
        if self._note is None:
            # A layout requested before the first one has finished may be lost.
            note.call_after_refresh(note.refresh, layout=True)
        if text != self._note:
            self._note = text
            note.display = bool(text)
            note.update(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let escape clear a filter while there is one, and go back otherwise."""
        return action != "clear" or any(b.display for b in self.query(FilterBar))

    def action_filter(self) -> None:
        """Open the filter bar."""
        self.query_one(FilterBar).open()

    def action_clear(self) -> None:
        """Show everything again."""
        self.query_one(FilterBar).value = ""
        self._close()

    def _close(self) -> None:
        self.query_one(FilterBar).close()
        self.query_one(self.FILTERED).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close()

"""The line in which a filter is typed."""

from textual.binding import Binding
from textual.widgets import Input

from tui.viewmodel.sort_filter import LONGEST

FILTER_KEYS = [
    Binding(
        "slash",
        "filter",
        "Filter",
        tooltip="Show what matches a regular expression; ! before it inverts",
        key_display="/",
        id="table.filter",
    ),
    Binding("escape", "clear", "Clear filter", show=False, id="table.clear"),
]
"""For what has a filter bar."""


class FilterBar(Input):
    """Shows while it is typed in or holds a filter."""

    def __init__(self) -> None:
        super().__init__(
            placeholder="regular expression; ! before it inverts, escape clears",
            max_length=LONGEST,
            select_on_focus=False,
            compact=True,
        )
        self.cursor_blink = False

    def on_mount(self) -> None:
        self.display = False

    def open(self) -> None:
        """Ask for a filter."""
        self.display = True
        self.focus()

    def close(self) -> None:
        """Hide, unless a filter is in force."""
        self.display = bool(self.value)

"""A table that a person filters and sorts; it says why it is empty."""

from collections.abc import Callable
from dataclasses import replace

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import Input, Static

from tui.screen_state import Moment
from tui.viewmodel.cells import Table
from tui.viewmodel.sort_filter import Filter, Wish
from tui.widgets.filter_bar import FILTER_KEYS, FilterBar
from tui.widgets.keyed_table import KeyedTable

Make = Callable[[Moment, int, Wish], Table]
"""The table of a moment, in this many columns of the terminal, as it is wanted."""


class TablePane(Vertical):
    """`/` filters, `s` and a click on a header sort, escape clears the filter."""

    BINDINGS = [
        *FILTER_KEYS,
        Binding(
            "s",
            "sort",
            "Sort",
            tooltip="Sort by the next column; a click on its header does, too",
            id="table.sort",
        ),
        Binding(
            "S",
            "turn",
            "Turn order",
            tooltip="Sort the other way round",
            show=False,
            id="table.turn",
        ),
    ]

    def __init__(self, make: Make, *, table_id: str) -> None:
        super().__init__(classes="table-pane")
        self.moment: Moment | None = None
        self.wish = Wish()
        self._make = make
        self._said: str | None = None
        self._table_id = table_id

    def compose(self) -> ComposeResult:
        yield FilterBar()
        yield KeyedTable(id=self._table_id)
        yield Static(classes="note", markup=False)

    @property
    def table(self) -> KeyedTable:
        """The table itself."""
        return self.query_one(KeyedTable)

    def show(self, moment: Moment) -> None:
        """Show this moment instead."""
        self.moment = moment
        self.renew()

    def renew(self) -> None:
        """Show the moment as it is wanted now."""
        # A scrollbar that comes and goes must not change what the columns have.
        width = self.size.width - self.table.scrollbar_size_vertical
        if self.moment is None or width <= 0:
            return
        with self.app.batch_update():
            made = self._make(self.moment, width, self.wish)
            self.table.show(made)
            words = made.note if made.rows else made.why_empty
            self._say(self.wish.filter.fault or words)

    def _say(self, words: str) -> None:
        note = self.query_one(".note", Static)
        if self._said is None:
            # A layout asked for before the first one is over may be lost.
            note.call_after_refresh(note.refresh, layout=True)
        if words != self._said:
            self._said = words
            note.display = bool(words)
            note.update(words)

    def on_resize(self, _event: Resize) -> None:
        self.renew()

    # ---- what a person asks for

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape clears a filter while there is one, and else goes back."""
        return action != "clear" or any(b.display for b in self.query(FilterBar))

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.query_one(FilterBar).open()

    def action_clear(self) -> None:
        """Show all rows again."""
        self.query_one(FilterBar).value = ""
        self._close()

    def _close(self) -> None:
        self.query_one(FilterBar).close()
        self.table.focus()

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._want(self.wish.sorted_next(self.table.columns_shown))

    def action_turn(self) -> None:
        """Sort the other way round."""
        self._want(replace(self.wish, down=not self.wish.down))

    def _want(self, wish: Wish) -> None:
        self.wish = wish
        self.renew()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._want(replace(self.wish, filter=Filter(event.value)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close()

    def on_data_table_header_selected(self, event: KeyedTable.HeaderSelected) -> None:
        event.stop()
        self._want(self.wish.sorted_by(str(event.column_key.value)))

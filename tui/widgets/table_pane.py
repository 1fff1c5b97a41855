"""A table that can be filtered and sorted, and explains why it is empty."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import Input, Static

from model.printable import printable
from tui.viewmodel.cells import Table, shorten_middle
from tui.viewmodel.sort_filter import Filter, Wish
from tui.widgets.filter_bar import Filterable, FilterBar
from tui.widgets.keyed_table import GUTTER, KeyedTable

ROW_AND_HEAD = 2
MARGIN = 1
"""Blanks before the full name."""

M = TypeVar("M")
"""What is shown: a moment of the loop, or of a fleet."""
Make = Callable[[M, int, Wish], Table]
"""Make the table of a moment for this width, filtered and sorted."""


class TablePane(Filterable, Vertical, Generic[M]):
    """`/` filters, `s` and a click on a header sort, escape clears the filter."""

    BINDINGS = [
        Binding(
            "s",
            "sort",
            "Sort",
            tooltip="Sort by the next column, or click on a header",
            id="table.sort",
        ),
        Binding(
            "S",
            "turn",
            "Reverse order",
            tooltip="Reverse the sort order",
            show=False,
            id="table.turn",
        ),
    ]

    FILTERED = KeyedTable

    def __init__(self, make: Make[M], *, table_id: str) -> None:
        super().__init__(classes="table-pane")
        self.moment: M | None = None
        self.wish = Wish()
        self._make = make
        self._table_id = table_id
        self._full = ""

    def compose(self) -> ComposeResult:
        yield FilterBar()
        yield KeyedTable(id=self._table_id)
        yield Static(classes="full", markup=False)
        yield Static(classes="note", markup=False)

    @property
    def table(self) -> KeyedTable:
        """The table itself."""
        return self.query_one(KeyedTable)

    @property
    def table_width(self) -> int:
        """Columns that rows may take.

        A scrollbar that appears must not change the widths of the columns.
        """
        return self.size.width - self.table.styles.scrollbar_size_vertical - GUTTER

    def show(self, moment: M) -> None:
        """Show this moment."""
        self.moment = moment
        self.renew()

    def renew(self) -> None:
        """Show the moment with the current filter and order."""
        width = self.table_width
        if self.moment is None or width <= 0:
            return
        with self.app.batch_update():
            made = self._make(self.moment, width, self.wish)
            self.table.show(made)
            words = made.note if made.rows else made.why_empty
            self.show_note(self.wish.filter.fault or words)
        self._show_full()

    def _show_full(self) -> None:
        """Show below the table what the row under the cursor had to shorten.

        Where there is little room, the row itself comes first.
        """
        rows, at = self.table.rows_shown, self.table.cursor_row
        full = printable(rows[at].full) if 0 <= at < len(rows) else ""
        room = (self.size.height - ROW_AND_HEAD) * max(0, self.size.width - MARGIN)
        full = shorten_middle(full, room) if room > 0 else ""
        if full != self._full:
            self._full = full
            line = self.query_one(".full", Static)
            line.update(full)
            line.set_class(bool(full), "-shown")

    def on_resize(self, _event: Resize) -> None:
        self.renew()

    def on_data_table_row_highlighted(self, _event: KeyedTable.RowHighlighted) -> None:
        self._show_full()

    # ---- actions of the operator

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._apply(self.wish.sorted_next(self.table.columns_shown))

    def action_turn(self) -> None:
        """Reverse the sort order."""
        self._apply(replace(self.wish, down=not self.wish.down))

    def _apply(self, wish: Wish) -> None:
        self.wish = wish
        self.renew()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply(replace(self.wish, filter=Filter(event.value)))

    def on_data_table_header_selected(self, event: KeyedTable.HeaderSelected) -> None:
        event.stop()
        self._apply(self.wish.sorted_by(str(event.column_key.value)))

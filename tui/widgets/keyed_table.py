"""A table that changes only the cells that differ from what it shows."""

from typing import Any

from rich.text import Text
from textual.binding import Binding
from textual.widgets import DataTable

from tui.viewmodel.cells import Cell, Column, Row, Table
from tui.widgets.paint import Palette, painted, palette_of


class First(Text):
    """A row's first cell, which knows its row, since sorting is told cells alone."""

    row_key = ""


class KeyedTable(DataTable[Text]):
    """Rows keyed by name, columns of fixed width; the cursor stays with its row."""

    BINDINGS = [
        Binding("home", "scroll_top", "First row", show=False, id="table.first"),
        Binding("end", "scroll_bottom", "Last row", show=False, id="table.last"),
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(cell_padding=0, zebra_stripes=False, **options)
        self.columns_shown: tuple[Column, ...] = ()
        self._rows_shown: tuple[Row, ...] = ()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._repaint())

    def show(self, table: Table) -> None:
        """Show this table instead."""
        keys = {row.key for row in table.rows}
        gone = [row for row in self._rows_shown if row.key not in keys]
        if table.columns != self.columns_shown or 2 * len(gone) >= len(keys):
            self._rebuild(table.columns, table.rows)
        else:
            self._change(table.rows, gone)

    def _rebuild(self, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
        kept = self.key_at_cursor
        if columns != self.columns_shown:
            self.clear(columns=True)
            for column in columns:
                # A label as text: brackets in it are not markup.
                label = Text(column.label, style="bold", no_wrap=True)
                self.add_column(label, key=column.key, width=column.width)
        else:
            self.clear()
        self.columns_shown, self._rows_shown = columns, rows
        self._add(rows)
        self._return_to(kept)

    def _change(self, rows: tuple[Row, ...], gone: list[Row]) -> None:
        kept = self.key_at_cursor
        shown = {row.key: row for row in self._rows_shown}
        for row in gone:
            self.remove_row(row.key)
        self._add([row for row in rows if row.key not in shown])
        for row in rows:
            old = shown.get(row.key, row)
            if old is not row and old.cells != row.cells:
                self._update(old, row)
        before = [row.key for row in self._rows_shown]
        self._rows_shown = rows
        if before != (keys := [row.key for row in rows]):
            order = {key: number for number, key in enumerate(keys)}
            first = self.columns_shown[0].key
            self.sort(first, key=lambda cell: order[cell.row_key])
            self._return_to(kept)

    def _add(self, rows: list[Row] | tuple[Row, ...]) -> None:
        colours = palette_of(self.app)
        for row in rows:
            first = _first(row.key, row.cells[0], colours)
            others = (painted(c, colours) for c in row.cells[1:])
            self.add_row(first, *others, key=row.key)

    def _update(self, old: Row, new: Row) -> None:
        colours = palette_of(self.app)
        cells = zip(self.columns_shown, old.cells, new.cells, strict=True)
        for number, (column, before, after) in enumerate(cells):
            if before != after:
                drawn = painted(after, colours)
                shown = drawn if number else _first(new.key, after, colours)
                self.update_cell(new.key, column.key, shown)

    def _return_to(self, key: str | None) -> None:
        keys = [row.key for row in self._rows_shown]
        if key in keys:
            self.move_cursor(row=keys.index(key))

    @property
    def key_at_cursor(self) -> str | None:
        """The key of the row under the cursor."""
        if not 0 <= self.cursor_row < len(self._rows_shown):
            return None
        return self._rows_shown[self.cursor_row].key

    def _repaint(self) -> None:
        self._rebuild(self.columns_shown, self._rows_shown)


def _first(key: str, shown: Cell, colours: Palette) -> First:
    drawn = painted(shown, colours)
    first = First(drawn.plain, no_wrap=True, end="", spans=drawn.spans)
    first.row_key = key
    return first

"""A table that changes only the cells that differ from what it shows."""

from typing import Any

from rich.text import Text
from textual.widgets import DataTable

from tui.viewmodel.cells import Column, Row, Table
from tui.widgets.paint import painted, palette_of


class KeyedTable(DataTable[Text]):
    """Rows keyed by name, columns of fixed width; the cursor stays with its row."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cell_padding=0, zebra_stripes=False, **options)
        self._columns_shown: tuple[Column, ...] = ()
        self._rows_shown: tuple[Row, ...] = ()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._repaint())

    def show(self, table: Table) -> None:
        """Show this table instead; hidden when it has no rows."""
        same_rows = [r.key for r in table.rows] == [r.key for r in self._rows_shown]
        if table.columns != self._columns_shown or not same_rows:
            self._rebuild(table.columns, table.rows)
        else:
            self._change(table.rows)
        self._rows_shown = table.rows

    def _rebuild(self, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
        kept = self.key_at_cursor
        if columns != self._columns_shown:
            self.clear(columns=True)
            for column in columns:
                # A label as text: brackets in it are not markup.
                label = Text(column.label, style="bold", no_wrap=True)
                self.add_column(label, key=column.key, width=column.width)
            self._columns_shown = columns
        else:
            self.clear()
        colours = palette_of(self.app)
        for row in rows:
            self.add_row(*(painted(c, colours) for c in row.cells), key=row.key)
        keys = [row.key for row in rows]
        if kept in keys:
            self.move_cursor(row=keys.index(kept))

    def _change(self, rows: tuple[Row, ...]) -> None:
        colours = palette_of(self.app)
        for old, new in zip(self._rows_shown, rows, strict=True):
            if old == new:
                continue
            cells = zip(self._columns_shown, old.cells, new.cells, strict=True)
            for column, before, after in cells:
                if before != after:
                    self.update_cell(new.key, column.key, painted(after, colours))

    @property
    def key_at_cursor(self) -> str | None:
        """The key of the row under the cursor."""
        if not 0 <= self.cursor_row < len(self._rows_shown):
            return None
        return self._rows_shown[self.cursor_row].key

    def _repaint(self) -> None:
        self._rebuild(self._columns_shown, self._rows_shown)

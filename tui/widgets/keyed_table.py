"""A table that draws only its visible lines."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets.data_table import ColumnKey, RowKey

from model.printable import masked
from tui.driver import draws_ascii
from tui.viewmodel.cells import (
    Cell,
    Column,
    LazyRows,
    Role,
    Row,
    Span,
    Table,
    cell,
    figure_at,
    fitted,
    keys_of,
    plain,
    shorten_line,
)
from tui.widgets.paint import Palette, palette_of

HEAD = 1
"""Lines of the header, which does not scroll."""
GUTTER = 1
"""Columns at the left edge, for the bar that marks the cursor's row."""
CURSOR, CURSOR_BLURRED = "▌", "▏"
CURSOR_ASCII = ">"
"""Where all is drawn in ASCII: half a block would be `#`, and broker 1 read as `#1`."""


class KeyedTable(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows keyed by name, columns of fixed width; the cursor stays on its row.

    Textual's DataTable draws each cell that changes, visible or not, which costs more
    than the rest of the screen if many change every second. Messages and handlers have
    the same names as there.
    """

    COMPONENT_CLASSES = {"keyed-table--cursor", "keyed-table--cursor-blurred", "keyed-table--bar"}
    BINDINGS = [
        Binding("enter", "select", "Open", show=False, id="table.open"),
        Binding("up", "move(-1)", "Previous row", show=False, id="table.up"),
        Binding("down", "move(1)", "Next row", show=False, id="table.down"),
        Binding("pageup", "page(-1)", "Previous page", show=False, id="table.page_up"),
        Binding("pagedown", "page(1)", "Next page", show=False, id="table.page_down"),
        Binding("home,ctrl+home", "ends(0)", "First row", show=False, id="table.first"),
        Binding("end,ctrl+end", "ends(-1)", "Last row", show=False, id="table.last"),
        Binding("left", "scroll_left", "Left", show=False, id="table.left"),
        Binding("right", "scroll_right", "Right", show=False, id="table.right"),
    ]

    cursor_row: reactive[int] = reactive(0, repaint=False)

    class _OfRow(Message, bubble=True):
        """A message about a row; the key is None if there is no row."""

        def __init__(self, table: "KeyedTable", key: str | None) -> None:
            super().__init__()
            self.data_table = table
            self.row_key = RowKey(key)

    class RowHighlighted(_OfRow, namespace="data_table"):
        """The cursor moved to another row."""

    class RowSelected(_OfRow, namespace="data_table"):
        """Enter was pressed, or the selected row clicked."""

    class HeaderSelected(Message, namespace="data_table"):
        """A column's header was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.column_key = ColumnKey(key)

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.columns_shown: tuple[Column, ...] = ()
        self.rows_shown: Sequence[Row] = ()
        self._shown: Table | None = None
        self._keys: Sequence[str] = ()
        self._place: dict[str, int] = {}

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    @property
    def key_at_cursor(self) -> str | None:
        """The key of the selected row."""
        if not 0 <= self.cursor_row < len(self.rows_shown):
            return None
        return self._keys[self.cursor_row]

    # ---- content

    def show(self, table: Table) -> None:
        """Show this table."""
        if table is self._shown:
            return
        self._shown = table
        kept, old = self.key_at_cursor, self.rows_shown
        self.rows_shown, self._keys = table.rows, keys_of(table.rows)
        if not self._fit(table.columns):
            self._refresh_changed(old)
        self._return_to(kept)

    def _fit(self, columns: tuple[Column, ...]) -> bool:
        """Fit the columns to the rows, and draw all of them again if that changes any."""
        rows, top = self.rows_shown, self.scroll_offset.y
        if isinstance(rows, LazyRows):
            rows = rows[top : top + self.size.height]
        columns = fitted(columns, rows)
        size = Size(GUTTER + sum(c.width for c in columns), len(self.rows_shown) + HEAD)
        resized, changed = size != self.virtual_size, columns != self.columns_shown
        self.columns_shown = columns
        if resized:
            self.virtual_size = size
            self.refresh(layout=True)
        elif changed:
            self.refresh()
        return resized or changed

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._fit_to_more()

    def on_resize(self) -> None:
        self._fit_to_more()

    def _fit_to_more(self) -> None:
        """Other rows are shown, which may be wider than those before."""
        if isinstance(self.rows_shown, LazyRows):
            self._fit(self.columns_shown)

    def _refresh_changed(self, old: Sequence[Row]) -> None:
        first = self.scroll_offset.y
        for at in range(first, min(len(old), first + self.size.height)):
            if old[at].cells != self.rows_shown[at].cells:
                self.refresh_line(at + HEAD)

    def _return_to(self, key: str | None) -> None:
        self._place = {key: at for at, key in enumerate(self._keys)}
        last = max(0, len(self.rows_shown) - 1)
        at = self._place.get(key or "", min(self.cursor_row, last))
        if at != self.cursor_row:
            self.cursor_row = at
        elif self.key_at_cursor != key:
            self.call_later(self._report)

    @property
    def _visible_size(self) -> Size:
        """Columns and lines not covered by scrollbars."""
        return self.scrollable_content_region.size

    def render_line(self, y: int) -> Strip:
        width, base = self._visible_size.width - GUTTER, self.rich_style
        at = self.scroll_offset.y + y - HEAD
        left = self.scroll_offset.x
        right = left + width
        gutter, style = Segment(" "), Style()
        if y < HEAD:
            labels = ((Span(c.label, Role.STRONG),) for c in self.columns_shown)
            line = self.line(labels, left, right)
        elif at < len(self.rows_shown):
            line = self.line(self.rows_shown[at].cells, left, right)
            if at == self.cursor_row:
                gutter, style = self._cursor()
        else:
            return Strip.blank(width + GUTTER, base)
        cut = line.crop_extend(left, right, base)
        return Strip([gutter, *cut]).apply_style(style).apply_style(base)

    def _cursor(self) -> tuple[Segment, Style]:
        """The bar at the left edge of the cursor's row, and the row's background.

        Never reversed, which would change the colours of what the row says.
        """
        bar = self.get_component_rich_style("keyed-table--bar", partial=True)
        # Not the partial style, which drops the alpha of the background.
        if self.has_focus:
            letter = CURSOR_ASCII if draws_ascii(self.app) else CURSOR
            return Segment(letter, bar), self.get_component_rich_style("keyed-table--cursor")
        blurred = self.get_component_rich_style("keyed-table--cursor-blurred")
        return Segment(CURSOR_BLURRED, bar), blurred

    def line(self, cells: Iterable[Cell], left: int, right: int) -> Strip:
        """Draw cells side by side, visible from one edge to the other."""
        colours = palette_of(self.app)
        segments: list[Segment] = []
        for column, shown in zip(self.columns_shown, cells, strict=True):
            seen = unless_cut(shown, column.width, left, right)
            segments += _segments(seen, column.width, colours)
            left, right = left - column.width, right - column.width
        return Strip(segments)

    # ---- the cursor

    def move_cursor(self, *, row: int) -> None:
        """Move the cursor to this row, or to the nearest one that exists."""
        self.cursor_row = max(0, min(row, len(self.rows_shown) - 1))

    def select_key(self, key: str) -> None:
        """Move the cursor to the row with this key, if there is one."""
        if key in self._place:
            self.cursor_row = self._place[key]

    def watch_cursor_row(self, before: int, after: int) -> None:
        self.refresh_line(before + HEAD)
        self.refresh_line(after + HEAD)
        self._scroll_to_row(after)
        self.call_later(self._report)

    def _report(self) -> None:
        # Deferred: a message sent from a parent's handler would stop at the parent.
        self.post_message(self.RowHighlighted(self, self.key_at_cursor))

    def _scroll_to_row(self, at: int) -> None:
        top, rows = self.scroll_offset.y, max(1, self._visible_size.height - HEAD)
        if at < top or at >= top + rows:
            y = at if at < top else at - rows + 1
            self.scroll_to(y=y, animate=False, force=True)

    def on_focus(self) -> None:
        self.refresh_line(self.cursor_row + HEAD)

    def on_blur(self) -> None:
        self.refresh_line(self.cursor_row + HEAD)

    # ---- actions of the operator

    def action_move(self, rows: int) -> None:
        """Move the cursor by a number of rows."""
        self.move_cursor(row=self.cursor_row + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a number of pages."""
        self.action_move(pages * max(1, self._visible_size.height - HEAD))

    def action_ends(self, row: int) -> None:
        """Move the cursor to the first row (0) or the last (-1)."""
        self.move_cursor(row=row % max(1, len(self.rows_shown)))

    def action_select(self) -> None:
        """Post that the selected row was chosen."""
        if (key := self.key_at_cursor) is not None:
            self.post_message(self.RowSelected(self, key))
        else:
            self.notify("there is nothing to open", timeout=3)

    def on_click(self, event: Click) -> None:
        at = self.scroll_offset.y + event.y - HEAD
        if event.y < HEAD:
            ends = accumulate(column.width for column in self.columns_shown)
            hit = self.scroll_offset.x + event.x - GUTTER
            for column, end in zip(self.columns_shown, ends, strict=True):
                if hit < end:
                    self.post_message(self.HeaderSelected(column.key))
                    return
        elif at == self.cursor_row:
            self.action_select()
        elif at < len(self.rows_shown):
            self.move_cursor(row=at)


def unless_cut(shown: Cell, width: int, left: int, right: int) -> Cell:
    """Return the cell without a figure that an edge of the table would split.

    left, right: the edges, relative to the start of the cell.
    """
    text = plain(shown)
    if 0 < right < width and figure_at(text, right):
        return shorten_line(shown, right)
    if left > 0 and figure_at(text, left):
        return cell("…".rjust(width))
    return shown


def _segments(shown: Cell, width: int, colours: Palette) -> Iterable[Segment]:
    """The segments of a cell, as wide as its column."""
    strip = Strip([Segment(masked(span.text), colours[span.role]) for span in shown])
    return strip if strip.cell_length == width else strip.crop_extend(0, width, None)

"""The panel of a run: its figures, progress and moves."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import ProgressBar

from tui.screen_state import Moment
from tui.screens.reason import ReasonScreen
from tui.viewmodel.cells import Table
from tui.viewmodel.run.run import RunShown, moves_table
from tui.viewmodel.sort_filter import Wish
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.table_pane import TablePane
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle

SCROLL_BAR = 1
"""Columns that the table's scroll bar may take."""
MARGINS = 2
"""Blank columns beside the figures."""

BELOW_FIGURES = 4
"""Lines of the progress bar, of the table's header and of two moves."""
LEAST_FIGURES = 2

Show = Callable[[Moment, int], RunShown]
"""Select the run of a moment, with figures for this width."""


class RunPanel(Vertical):
    """Moves that need attention are at the top; enter shows one in full."""

    HELP = """\
## Run

The gauges are what stop rules watch: the figure, the limit, and what the rule does there.
Counts are of partitions that have got worse since the run began; `spare disk` is the free
space beyond the reserve on the target broker that has least. A group that keeps up has a lag
of seconds, since groups commit only every few seconds.

A `change` with `*` changes the leader as well. `copied` is what has arrived on new replicas.
`no leader` is the longest time in which the partition had no leader. Moves that are stuck
or were skipped come first, then those in flight, waiting and done.

Enter shows a move in full, with its reason.
"""

    moment: Moment | None = None

    def __init__(self, show: Show) -> None:
        super().__init__()
        self._show = show
        self._shown = RunShown(title="")

    def compose(self) -> ComposeResult:
        yield Lines(id="figures")
        yield ProgressBar(id="progress", show_eta=False, total=1.0)
        yield TablePane(self._table, table_id="moves")

    def show(self, moment: Moment) -> None:
        """Show this moment."""
        self.moment = moment
        width = self.size.width
        if not width:
            return
        self._shown = shown = self._show(moment, width - MARGINS)
        entitle(self, shown.title)
        figures, bar = self.query_one(Lines), self.query_one(ProgressBar)
        lines = shown.lines[: max(LEAST_FIGURES, self.content_size.height - BELOW_FIGURES)]
        figures.show(lines)
        figures.display = bool(lines)
        bar.display = shown.share is not None
        bar.update(progress=shown.share or 0.0)
        pane = self.query_one(TablePane)
        on_top = pane.table.cursor_row == 0
        pane.show(moment)
        if on_top:
            # Moves that need attention appear there; the first one sinks.
            pane.table.move_cursor(row=0)

    def _table(self, _moment: Moment, width: int, wish: Wish) -> Table:
        return moves_table(self._shown, width - SCROLL_BAR, wish)

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show(self.moment)

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        run = self._shown.run
        for item in run.moves if run is not None else ():
            if str(item.move.id) == event.row_key.value:
                self.app.push_screen(ReasonScreen(item.move))

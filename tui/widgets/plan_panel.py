"""The panel of the plan, or of the run that carries it out."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import ProgressBar, Static

from control.view import LoopView
from model.plan import Move
from tui.moment import Moment
from tui.screens.reason import ReasonScreen
from tui.viewmodel.plan import Panel
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.lines import Lines
from tui.widgets.titles import entitle

MARGINS = 3
"""Columns of the panel that are blank, or the table's scroll bar."""


class PlanPanel(Vertical):
    """Figures of the plan and its moves; enter on a move shows its reason."""

    HELP = """\
## Plan

The score is 0 when all brokers carry what they should and nothing is moved. No allowed
plan has a score below the bound; the gap is what could at most still be gained.

`gain` is what the score would rise by without this move. Enter shows the whole reason.
"""

    moment: Moment | None = None

    def __init__(self, panel: Callable[[LoopView, int], Panel]) -> None:
        super().__init__()
        self._panel = panel

    def compose(self) -> ComposeResult:
        yield Lines(id="figures")
        yield ProgressBar(id="progress", show_eta=False)
        yield KeyedTable(id="moves")
        yield Static(id="no-moves", markup=False)

    def show(self, moment: Moment) -> None:
        """Show this moment instead."""
        self.moment = moment
        width = self.size.width
        if not width:
            return
        shown = self._panel(moment.view, width - MARGINS)
        entitle(self, shown.title, shown.note)
        figures, moves = self.query_one(Lines), self.query_one(KeyedTable)
        figures.show(shown.lines)
        figures.display = bool(shown.lines)
        moves.show(shown.table)
        self.query_one("#no-moves", Static).update(shown.table.why_empty)
        self.set_class(not shown.table.rows, "-empty")
        if shown.table.rows and self.screen.focused is None:
            moves.focus()
        self.set_class(shown.progress is not None, "-run")
        if shown.progress is not None:
            done, total = shown.progress
            bar = self.query_one("#progress", ProgressBar)
            bar.update(total=total, progress=done)

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show(self.moment)

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        found = [m for m in self._moves() if str(m.id) == event.row_key.value]
        if found:
            self.app.push_screen(ReasonScreen(found[0]))

    def _moves(self) -> tuple[Move, ...]:
        """The moves of the plan and of the run; those of the plan go first."""
        if self.moment is None:
            return ()
        view = self.moment.view
        planned = view.plan.moves if view.plan else ()
        return planned + tuple(m.move for m in (view.run.moves if view.run else ()))

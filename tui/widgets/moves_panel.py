"""The panel of the plan's figures and moves."""

from textual.app import ComposeResult
from textual.containers import Vertical

from model.plan.plan import Move, Plan
from tui.screen_state import Moment
from tui.viewmodel.cells import Table
from tui.viewmodel.plan.moves import moves_table
from tui.viewmodel.plan.plan_figures import figures
from tui.viewmodel.plan.shown_plan import shown
from tui.viewmodel.sort_filter import Wish, arranged
from tui.widgets.table_pane import TablePane
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle

MARGINS = 2
"""Blank columns beside the figures."""


class MovesPanel(Vertical):
    """The figures of the plan, and its moves."""

    HELP = """\
## Plan

The imbalance score includes the cost of moves; it is 0 if the brokers are balanced and
nothing is moved. No plan that obeys the rules scores below the bound; the gap is the
most that could still be gained.

`gain` is how much higher the score would be without this move. Enter shows the whole
reason of a move, its cost, and the effect of removing it.

`d` removes the selected move: the partition is not moved, and the other moves are kept
as far as the rules allow. `p` pins the partition to brokers of your choice, `u` undoes
the last request and restores the plan from before it.
"""

    moment: Moment | None = None
    _made: tuple[Plan | None, int, Wish, Table] | None = None
    """The last table and its inputs; a plan does not change."""

    def compose(self) -> ComposeResult:
        yield Lines(id="figures")
        yield TablePane(self._table, table_id="moves")

    def show(self, moment: Moment) -> None:
        """Show this moment."""
        self.moment = moment
        width = self.content_size.width - MARGINS
        if width <= 0:
            return
        now = shown(moment.view)
        name = f"Plan {now.plan.hash[:12]}" if now.plan is not None else "Plan"
        entitle(self, now.title(name))
        lines = self.query_one("#figures", Lines)
        texts = figures(now, moment, width)
        lines.show(texts)
        lines.display = bool(texts)
        self.query_one(TablePane).show(moment)

    def on_resize(self) -> None:
        if self.moment is not None:
            self.show(self.moment)

    @property
    def move(self) -> Move | None:
        """The selected move."""
        plan = shown(self.moment.view).plan if self.moment is not None else None
        key = self.query_one(TablePane).table.key_at_cursor
        moves = plan.moves if plan is not None else ()
        return next((m for m in moves if str(m.id) == key), None)

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        now = shown(moment.view)
        if self._made is not None:
            plan, *of, table = self._made
            if now.plan is not None and plan is now.plan and of == [width, wish]:
                return table
        table = arranged(moves_table(now, width), wish)
        self._made = now.plan, width, wish, table
        return table

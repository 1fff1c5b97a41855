"""The panel of the plan's figures and moves."""

from textual.app import ComposeResult
from textual.containers import Vertical

from model.plan.plan import Move, Plan
from tui.screen_state import Moment
from tui.viewmodel.cells import Table
from tui.viewmodel.plan.moves import changes_text, moves_table
from tui.viewmodel.plan.plan_figures import figures
from tui.viewmodel.plan.shown_plan import Shown, shown
from tui.viewmodel.sort_filter import Wish
from tui.widgets.table_pane import TablePane
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle

MARGINS = 2
"""Blank columns beside the figures."""
LEAST_ROWS = 8
"""Lines left to the moves, with their header, below the figures."""


class MovesPanel(Vertical):
    """The figures of the plan, and its moves."""

    HELP = """\
## Plan

Moves are listed by what they gain for their bytes, so that the first ones are those
that matter most; `share` is the part of the plan's gain that a move brings, `so far`
that of all moves down to it. What a plan gains is the imbalance that it removes.
A move with `*` changes the leader as well. Enter shows the whole reason of a move, its
cost, and the effect of removing it.

`+`, `~` and `-` mark what is new, changed or removed since the plan that you viewed
before, until you leave this screen.

`d` removes the selected move: the partition is not moved, and the other moves are kept
as far as the rules allow. `p` pins the partition to brokers of your choice, `u` undoes
the last request and restores the plan from before it.

The imbalance score includes the cost of moves; it is 0 if the brokers are balanced and
nothing is moved. No plan that obeys the rules scores below the bound; the gap is the
most that could still be gained.
"""

    moment: Moment | None = None
    _latest: Plan | None = None
    """The real plan shown last."""
    _viewed: Plan | None = None
    """The plan that the operator has viewed, which newer ones are compared with."""
    _made: tuple[Plan | None, int, Wish, Plan | None, Table] | None = None
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
        # A screen is filled before its first visit, too.
        if now.plan is not None and not now.supposed and self.screen.is_current:
            self._latest = now.plan
            self._viewed = self._viewed or now.plan
        since = self._since(now)
        changes = changes_text(now.plan, since) if now.plan is not None else ""
        entitle(self, now.title(name), changes)
        lines = self.query_one("#figures", Lines)
        texts = figures(now, moment, width, self.content_size.height - LEAST_ROWS)
        lines.show(texts)
        lines.display = bool(texts)
        self.query_one(TablePane).show(moment)

    def viewed(self) -> None:
        """Compare newer plans with the one shown, from now on."""
        self._viewed = self._latest

    def _since(self, now: Shown) -> Plan | None:
        """The plan to compare with; None where there is nothing to compare."""
        if now.plan is None or now.supposed or self._viewed is None:
            return None
        return self._viewed if self._viewed.hash != now.plan.hash else None

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
        since = self._since(now)
        if self._made is not None:
            plan, *of, before, table = self._made
            same = plan is now.plan and before is since
            if now.plan is not None and same and of == [width, wish]:
                return table
        table = moves_table(now, width, since, wish)
        self._made = now.plan, width, wish, since, table
        return table

"""The panel of brokers."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize
from textual.markup import escape
from textual.widgets import Static

from tui.moment import Moment
from tui.viewmodel.ages import is_stale
from tui.viewmodel.brokers import broker_table, headline, layout_for, levels_line
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.lines import Lines


class BrokerPanel(Vertical):
    """Which broker is over what; a bar for each broker and resource."""

    HELP = """\
## Brokers

A full bar is the broker's capacity where it is known, else twice the level; `»` goes
beyond. `│` on a bar is the level: what each broker would carry if all were level.

`!` is over the band, `<` under it. Behind the rate stands the distance from the level
now, and after an arrow the distance that the plan would lead to.
"""

    moment: Moment | None = None

    def compose(self) -> ComposeResult:
        yield Lines(id="headline")
        yield KeyedTable(id="brokers", cursor_type="none")
        yield Static(id="no-brokers", markup=False)

    def on_mount(self) -> None:
        self.border_title = "Brokers"

    def show(self, moment: Moment) -> None:
        """Show this moment instead."""
        self.moment = moment
        view, goals = moment.view, moment.goals
        if not self.size.width:
            return
        table = broker_table(view, goals, layout_for(self.size.width))
        self.query_one("#headline", Lines).show([headline(view, goals)])
        self.query_one("#brokers", KeyedTable).show(table)
        self.query_one("#no-brokers", Static).update(table.why_empty)
        self.set_class(not table.rows, "-empty")
        self.set_class(is_stale(view, moment.now_ms), "-stale")
        self.border_subtitle = escape(levels_line(view))

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show(self.moment)

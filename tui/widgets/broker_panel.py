"""The panel of all brokers."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize

from control.loop.view import Phase
from tui.screen_state import Moment
from tui.viewmodel.brokers.brokers import broker_table
from tui.viewmodel.brokers.headline import averages_line, headline, scale_text
from tui.viewmodel.cells import Table
from tui.viewmodel.sort_filter import Wish, arranged
from tui.viewmodel.staleness import is_stale
from tui.widgets.table_pane import TablePane
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle


class BrokerPanel(Vertical):
    """A headline, and a bar for each broker and resource."""

    HELP = """\
## Brokers

A full bar is the broker's capacity if known, else twice the average; `»` exceeds it.
`│` on a bar is the average: the broker's load if the cluster were balanced; `╎` on both
sides are the ends of the tolerance band, `┼` is the average with an end in its cell.

`▒` is load that the plan would remove from a broker, `░` load that it would add.

`!` is above the tolerance band or a limit; `<` is below the tolerance band.
"""

    moment: Moment | None = None

    def compose(self) -> ComposeResult:
        yield Lines(id="headline")
        yield TablePane(_table, table_id="brokers")

    def show(self, moment: Moment) -> None:
        """Show this moment."""
        self.moment = moment
        view, goals = moment.view, moment.goals
        self._show_headline()
        self.query_one(TablePane).show(moment)
        unreachable = view.phase is Phase.UNREACHABLE
        self.set_class(unreachable or is_stale(view, moment.now_ms), "-stale")
        real = " of the real cluster" if view.proposed.supposed is not None else ""
        scale = scale_text(view, goals)
        entitle(self, f"Brokers{real}{scale}", averages_line(view, goals))

    def on_resize(self, _event: Resize) -> None:
        self._show_headline()

    def _show_headline(self) -> None:
        lines = self.query_one("#headline", Lines)
        if (moment := self.moment) is not None:
            width = lines.content_size.width
            lines.show([headline(moment.view, moment.goals, width)])


def _table(moment: Moment, width: int, wish: Wish) -> Table:
    return arranged(broker_table(moment.view, moment.goals, width), wish)

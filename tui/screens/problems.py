"""What is wrong that no plan fixes, over any screen."""

from typing import cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from tui.host import Host
from tui.screen_state import Moment
from tui.screens.backdrop import Over
from tui.viewmodel.cells import Table
from tui.viewmodel.problem_list import opened_by, problem_table
from tui.viewmodel.sort_filter import Wish
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.table_pane import TablePane
from tui.widgets.titles import entitle


class ProblemsScreen(Over[None]):
    """The partitions and brokers that the header counts; enter opens one."""

    BINDINGS = [Binding("escape,q", "close", "Close", id="problems.close")]
    AUTO_FOCUS = "#problems"
    HELP = """\
## Problems

What the header counts: brokers that are dead, slow or over their capacity, failed disks, and
partitions without a leader or with replicas out of sync. Enter opens the topic or the broker.
"""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self._moment = moment

    def compose(self) -> ComposeResult:
        with Vertical(classes="list-panel"):
            yield TablePane(self._table, table_id="problems")

    def on_mount(self) -> None:
        entitle(self.query_one(".list-panel"), "Problems", "enter opens, escape closes")
        self.query_one(TablePane).show(self._moment)

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        return problem_table(moment.view, moment.goals, width, wish)

    async def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        action = opened_by(event.row_key.value or "", self._moment.view)
        app = cast("Host", self.app)
        self.dismiss()
        app.call_later(app.run_action, f"app.{action}")

    def action_close(self) -> None:
        self.dismiss()

"""All brokers with their loads, and the selected broker in detail."""

from textual.app import ComposeResult
from textual.containers import Vertical

from model.ids import BrokerId
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.widgets.broker_detail import BrokerDetail
from tui.widgets.broker_panel import BrokerPanel
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.log_pane import LogPane

NEWEST = 100
"""Log lines shown here; the log screen shows all of them."""


class OverviewScreen(LiveScreen):
    """Brokers; below them the selected one, and the latest log lines."""

    MODE = "overview"
    AUTO_FOCUS = "#brokers"

    def body(self) -> ComposeResult:
        yield BrokerPanel()
        with Vertical(id="below"):
            yield BrokerDetail()
            yield LogPane()

    def show(self, moment: Moment) -> None:
        self.query_one(BrokerPanel).show(moment)
        self.query_one(LogPane).show(moment.view.log[-NEWEST:])
        self._show_detail()

    def on_data_table_row_highlighted(self, event: KeyedTable.RowHighlighted) -> None:
        event.stop()
        self._show_detail()

    def _show_detail(self) -> None:
        if self.moment is not None:
            key = self.query_one("#brokers", KeyedTable).key_at_cursor
            broker = BrokerId(int(key)) if key is not None else None
            self.query_one(BrokerDetail).show_broker(self.moment, broker)

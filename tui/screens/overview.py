"""All brokers with their loads, and the selected broker in detail."""

from typing import cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from model.ids import BrokerId
from tui.host import Host
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.screens.broker_partitions import BrokerPartitionsScreen
from tui.widgets.broker_detail import BrokerDetail
from tui.widgets.broker_panel import BrokerPanel
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.log_pane import LogPane
from tui.widgets.map_pane import MapPane

NEWEST = 100
"""Log lines shown here; the log screen shows all of them."""


class OverviewScreen(LiveScreen):
    """Brokers; below them the selected one, and the latest log lines."""

    MODE = "overview"
    AUTO_FOCUS = "#brokers"
    BINDINGS = [
        Binding(
            "o",
            "operate",
            "Request",
            tooltip="Request something for this broker: remove, demote, maintenance, exclude",
            id="overview.operate",
        )
    ]

    def body(self) -> ComposeResult:
        yield BrokerPanel()
        with Vertical(id="below"):
            yield BrokerDetail()
            yield LogPane()

    def show(self, moment: Moment) -> None:
        self.query_one(BrokerPanel).show(moment)
        self.query_one(LogPane).show(moment.view.log[-NEWEST:])
        self._show_detail()

    @property
    def crumbs(self) -> tuple[str, ...]:
        """The broker selected, which is shown below."""
        panel = self.query_one(BrokerPanel)
        broker = panel.selected
        return () if broker is None else (f"broker {broker}",)

    def on_data_table_row_highlighted(self, event: KeyedTable.RowHighlighted) -> None:
        event.stop()
        self._show_detail()

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        self._open()

    def on_map_pane_chosen(self, event: MapPane.Chosen) -> None:
        event.stop()
        self._open()

    def action_operate(self) -> None:
        """Choose what to request for the selected broker."""
        broker = self.query_one(BrokerPanel).selected
        if broker is not None:
            cast("Host", self.app).tasks.operate(broker)

    def _open(self) -> None:
        self.open_broker(self.query_one(BrokerPanel).selected)

    def open_broker(self, broker: BrokerId | None) -> None:
        """Show the partitions of a broker."""
        if self.moment is not None and broker is not None:
            self.app.push_screen(BrokerPartitionsScreen(self.moment, broker))

    def on_map_pane_moved(self, event: MapPane.Moved) -> None:
        event.stop()
        self._show_detail()

    def _show_detail(self) -> None:
        if self.moment is not None:
            broker = self.query_one(BrokerPanel).selected
            self.query_one(BrokerDetail).show_broker(self.moment, broker)
            self.show_crumbs()

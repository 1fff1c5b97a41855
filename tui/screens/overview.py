"""Which broker is over what."""

from textual.app import ComposeResult

from tui.moment import Moment
from tui.screens.live import LiveScreen
from tui.widgets.broker_panel import BrokerPanel
from tui.widgets.log_pane import LogPane


class OverviewScreen(LiveScreen):
    """Brokers on top, the newest lines of the log at the bottom."""

    MODE = "overview"

    def body(self) -> ComposeResult:
        yield BrokerPanel()
        yield LogPane()

    def show(self, moment: Moment) -> None:
        self.query_one(BrokerPanel).show(moment)
        self.query_one(LogPane).show(moment)

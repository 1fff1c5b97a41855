"""The one screen: brokers, the plan or its run, the log."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Footer, Static

from tui.moment import Moment
from tui.screens.live import LiveScreen
from tui.widgets.broker_panel import BrokerPanel
from tui.widgets.header_bar import HeaderBar
from tui.widgets.log_pane import LogPane
from tui.widgets.plan_panel import PlanPanel


class OverviewScreen(LiveScreen):
    """Brokers on top, the plan in the middle, the log at the bottom."""

    AUTO_FOCUS = "#moves"

    def compose(self) -> ComposeResult:
        yield HeaderBar(id="header")
        with Vertical(id="body"):
            yield BrokerPanel()
            yield PlanPanel()
            yield LogPane()
        yield Static(
            "This terminal is too small for the screen: make it at least 60 columns "
            "by 16 lines, or press q to leave.",
            id="too-small",
        )
        yield Footer()

    def show(self, moment: Moment) -> None:
        with self.app.batch_update():
            self.query_one(BrokerPanel).show(moment)
            self.query_one(PlanPanel).show(moment)
            self.query_one(LogPane).show(moment)

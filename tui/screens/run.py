"""How far the moves are."""

from textual.app import ComposeResult

from tui.moment import Moment
from tui.screens.live import LiveScreen
from tui.viewmodel.plan import run_panel
from tui.widgets.plan_panel import PlanPanel


class RunScreen(LiveScreen):
    """The run that goes on, else the last one: its figures and its moves."""

    MODE = "run"
    AUTO_FOCUS = "#moves"

    def body(self) -> ComposeResult:
        yield PlanPanel(run_panel)

    def show(self, moment: Moment) -> None:
        self.query_one(PlanPanel).show(moment)

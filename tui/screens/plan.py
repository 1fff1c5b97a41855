"""What plimsoll wants to do, and why."""

from textual.app import ComposeResult

from tui.moment import Moment
from tui.screens.live import LiveScreen
from tui.viewmodel.plan import plan_panel
from tui.widgets.plan_panel import PlanPanel


class PlanScreen(LiveScreen):
    """The plan: its figures and its moves."""

    MODE = "plan"
    AUTO_FOCUS = "#moves"

    def body(self) -> ComposeResult:
        yield PlanPanel(plan_panel)

    def show(self, moment: Moment) -> None:
        self.query_one(PlanPanel).show(moment)

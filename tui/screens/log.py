"""What plimsoll decided, line by line."""

from textual.app import ComposeResult

from tui.moment import Moment
from tui.screens.live import LiveScreen
from tui.widgets.log_pane import LogPane


class LogScreen(LiveScreen):
    """All lines that are kept, the newest last."""

    MODE = "log"
    AUTO_FOCUS = "LogPane"

    def body(self) -> ComposeResult:
        yield LogPane()

    def show(self, moment: Moment) -> None:
        self.query_one(LogPane).show(moment)

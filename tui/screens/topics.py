"""Load and skew of topics."""

from textual.app import ComposeResult
from textual.widgets import Static

from tui.moment import Moment
from tui.screens.live import LiveScreen


class TopicsScreen(LiveScreen):
    """Says what would fill it."""

    MODE = "topics"

    def body(self) -> ComposeResult:
        yield Static(
            "No topics are known yet; loads have to be measured first.", classes="empty"
        )

    def show(self, moment: Moment) -> None:
        """Nothing here changes with the loop."""

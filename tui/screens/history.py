"""Earlier runs."""

from textual.app import ComposeResult
from textual.widgets import Static

from tui.moment import Moment
from tui.screens.live import LiveScreen


class HistoryScreen(LiveScreen):
    """Says where earlier runs are kept."""

    MODE = "history"

    def body(self) -> ComposeResult:
        yield Static(
            "Runs are not listed here; each is kept as a journal under `state_dir`.",
            classes="empty",
            markup=False,
        )

    def show(self, moment: Moment) -> None:
        """Nothing here changes with the loop."""

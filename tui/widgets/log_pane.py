"""The log lines, newest last."""

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from control.loop.view import LogLine
from tui.viewmodel.log import log_line
from tui.widgets.paint import painted, palette_of


class LogPane(VerticalScroll):
    """Follows the end unless the user has scrolled up."""

    HELP = """\
## Log

plimsoll's decisions and their reasons, the operator's actions, and each move, in UTC.
"""

    shown: tuple[LogLine, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static()

    def on_mount(self) -> None:
        self.border_title = "Log"
        self.anchor()
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._paint())

    def show(self, log: Sequence[LogLine]) -> None:
        """Show these lines."""
        if tuple(log) != self.shown:
            self.shown = tuple(log)
            self._paint()

    @property
    def at_end(self) -> bool:
        """Whether the newest line is visible."""
        return self.scroll_offset.y >= self.max_scroll_y

    def _paint(self) -> None:
        colours = palette_of(self.app)
        lines = [painted(log_line(line), colours) for line in self.shown]
        self.query_one(Static).update(Text("\n").join(lines))

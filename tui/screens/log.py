"""What plimsoll decided, line by line."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, Static

from control.loop.view import LogLine
from model.units import count_text
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.viewmodel.log import kept_lines, lines_since, next_level, why_no_lines
from tui.viewmodel.sort_filter import Filter
from tui.widgets.filter_bar import FILTER_KEYS, FilterBar
from tui.widgets.log_pane import LogPane
from tui.widgets.titles import entitle


class LogScreen(LiveScreen):
    """All lines that are kept, the newest last, or those of a level that match."""

    MODE = "log"
    AUTO_FOCUS = "LogPane"
    BINDINGS = [
        *FILTER_KEYS,
        Binding(
            "l",
            "level",
            "Level",
            tooltip="Show all lines, or warnings and errors, or errors alone",
            id="log.level",
        ),
        Binding(
            "end",
            "newest",
            "Newest",
            tooltip="Go to the newest line, and follow",
            show=False,
            id="log.newest",
        ),
    ]

    level = "info"
    wanted = Filter()
    seen: LogLine | None = None
    """The newest line when the end was last in sight."""
    _said: str | None = None

    def body(self) -> ComposeResult:
        with Vertical(classes="main"):
            yield FilterBar()
            yield LogPane()
            yield Static(classes="note", markup=False)

    def on_mount(self) -> None:
        pane = self.query_one(LogPane)
        self.watch(pane, "scroll_y", self._scrolled, init=False)

    def show(self, moment: Moment) -> None:
        pane = self.query_one(LogPane)
        lines = kept_lines(moment.view.log, self.level, self.wanted)
        if pane.at_end or not pane.shown:
            self.seen = lines[-1] if lines else None
        pane.show(lines)
        entitle(pane, "Log", f"level {self.level} and above")
        self._say(lines, why_no_lines(moment.view.log))

    def _say(self, lines: tuple[LogLine, ...], why_none: str) -> None:
        missed = lines_since(lines, self.seen)
        words = "" if lines else why_none
        if lines and missed:
            new = count_text(missed, "new line")
            words = f"{new} below; the key `end` shows them"
        words = self.wanted.fault or words
        if words != self._said:
            self._said = words
            note = self.query_one(".note", Static)
            note.display = bool(words)
            note.update(words)

    def _scrolled(self) -> None:
        pane = self.query_one(LogPane)
        if pane.at_end and pane.shown:
            self.seen = pane.shown[-1]
            self._say(pane.shown, "")

    # ---- what a person asks for

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape clears a filter while there is one, and else goes back."""
        return action != "clear" or any(b.display for b in self.query(FilterBar))

    def action_level(self) -> None:
        """Show less, or all again."""
        self.level = next_level(self.level)
        self._refresh_lines()

    def action_newest(self) -> None:
        """Follow the end again."""
        self.query_one(LogPane).anchor()

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.query_one(FilterBar).open()

    def action_clear(self) -> None:
        """Show all lines again."""
        self.query_one(FilterBar).value = ""
        self._close()

    def _close(self) -> None:
        self.query_one(FilterBar).close()
        self.query_one(LogPane).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.wanted = Filter(event.value)
        self._refresh_lines()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self._close()

    def _refresh_lines(self) -> None:
        """What was left out is not new."""
        if self.moment is not None:
            pane = self.query_one(LogPane)
            lines = kept_lines(self.moment.view.log, self.level, self.wanted)
            self.seen = lines[-1] if lines else None
            pane.anchor()
            self.show(self.moment)

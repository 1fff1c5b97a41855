"""The log of plimsoll's decisions."""

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
from tui.widgets.filter_bar import Filterable, FilterBar
from tui.widgets.log_pane import LogPane
from tui.widgets.titles import entitle


class LogScreen(Filterable, LiveScreen):
    """All retained log lines, newest last, or those that match a level and a filter."""

    MODE = "log"
    AUTO_FOCUS = "LogPane"
    BINDINGS = [
        Binding(
            "l",
            "level",
            "Level",
            tooltip="Show all lines, warnings and errors, or errors only",
            id="log.level",
        ),
        Binding(
            "end",
            "newest",
            "Newest",
            tooltip="Go to the latest line and follow",
            show=False,
            id="log.newest",
        ),
    ]

    FILTERED = LogPane
    level = "info"
    filter = Filter()
    seen: LogLine | None = None
    """The latest line when the end was last visible."""

    def body(self) -> ComposeResult:
        with Vertical(classes="main"):
            yield FilterBar()
            yield LogPane()
            yield Static(classes="note", markup=False)

    def on_mount(self) -> None:
        pane = self.query_one(LogPane)
        self.watch(pane, "scroll_y", self._scrolled, init=False)

    @property
    def crumbs(self) -> tuple[str, ...]:
        return () if self.level == "info" else (f"{self.level} and above",)

    def show(self, moment: Moment) -> None:
        pane = self.query_one(LogPane)
        lines = kept_lines(moment.view.log, self.level, self.filter)
        if pane.at_end or not pane.shown:
            self.seen = lines[-1] if lines else None
        pane.show(lines)
        entitle(pane, "Log", f"level {self.level} and above")
        self._update_note(lines, why_no_lines(moment.view.log))

    def _update_note(self, lines: tuple[LogLine, ...], why_none: str) -> None:
        missed = lines_since(lines, self.seen)
        text = "" if lines else why_none
        if lines and missed:
            new = count_text(missed, "new line")
            text = f"{new} below; press `end` to see them"
        self.show_note(self.filter.fault or text)

    def _scrolled(self) -> None:
        pane = self.query_one(LogPane)
        if pane.at_end and pane.shown:
            self.seen = pane.shown[-1]
            self._update_note(pane.shown, "")

    # ---- actions of the operator

    def action_level(self) -> None:
        """Show only more severe lines, or all again."""
        self.level = next_level(self.level)
        self._refresh_lines()

    def action_newest(self) -> None:
        """Follow the log again."""
        self.query_one(LogPane).anchor()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.filter = Filter(event.value)
        self._refresh_lines()

    def _refresh_lines(self) -> None:
        """Apply level and filter; lines they had hidden do not count as new."""
        if self.moment is not None:
            pane = self.query_one(LogPane)
            lines = kept_lines(self.moment.view.log, self.level, self.filter)
            self.seen = lines[-1] if lines else None
            pane.anchor()
            self.show(self.moment)
            self.show_crumbs()

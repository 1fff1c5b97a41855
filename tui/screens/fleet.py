"""The clusters of a fleet, and one of them in full."""

from typing import cast

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Static

from control.cli.fleet_source import ClusterDetail
from model.printable import printable
from tui.screens.base import LiveScreen
from tui.screens.too_small import TOO_SMALL
from tui.viewmodel.fleet import (
    FleetMoment,
    cluster_lines,
    fleet_header,
    fleet_table,
    selected_words,
)
from tui.widgets.key_bar import KeyBar
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.remark import Remark
from tui.widgets.table_pane import TablePane
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle

MARGINS = 3
"""Columns beside the lines of a cluster: margins and scroll bar."""


class FleetHeader(Lines):
    """The fleet, and what needs attention first."""

    moment: FleetMoment | None = None

    def show_moment(self, moment: FleetMoment) -> None:
        """Show this moment."""
        self.moment = moment
        if width := self.content_size.width:
            self.show(fleet_header(moment, width))

    def on_resize(self, _event: Resize) -> None:
        if self.moment is not None:
            self.show_moment(self.moment)


class FleetPanel(Vertical):
    """All clusters of the fleet."""

    HELP = """\
## Clusters

One row per cluster, the one first that needs attention most: its service has failed or hangs, it
cannot be reached, a broker is dead or slow, a plan waits for a person, a broker is outside its
tolerance band.

`state` is how its service fares, or `plan waits` for an approval, `plan refused` by the limits of
`--auto`, `plan ready` where nobody acts, `standing by`, `paused`. `data` is the age of its loads,
`run` the moves that are done.

The decision of the row under the cursor is shown in full below the table. Enter opens a cluster:
what its service does, its brokers, its last decisions, and the commands that steer it.
"""

    def compose(self) -> ComposeResult:
        yield TablePane(fleet_table, table_id="clusters")
        yield Remark()


class ClusterPanel(VerticalScroll):
    """The opened cluster; it scrolls where it does not fit."""

    HELP = """\
## A cluster

What its service says of itself, its brokers with their loads and deviations, and its last
decisions. It is asked again every five seconds, over the control socket in its state folder.

The commands shown steer it.
"""
    BINDINGS = [Binding("escape", "screen.close", "Close", id="fleet.close")]

    key: str = ""
    """The name of the cluster; empty while none is open."""
    detail: ClusterDetail | None = None
    """None until its service has answered."""
    _moment: FleetMoment | None = None

    def compose(self) -> ComposeResult:
        yield Lines()

    def show(self, moment: FleetMoment) -> None:
        """Show the open cluster at this moment."""
        self._moment = moment
        width = self.size.width - MARGINS
        if self.key and width > 0:
            entitle(self, printable(self.key), "escape closes")
            self.query_one(Lines).show(cluster_lines(moment, self.key, self.detail, width))

    def on_resize(self, _event: Resize) -> None:
        if self._moment is not None:
            self.show(self._moment)


class FleetScreen(Screen[None]):
    """The table; on request, one cluster in full."""

    AUTO_FOCUS = "#clusters"
    HORIZONTAL_BREAKPOINTS = LiveScreen.HORIZONTAL_BREAKPOINTS
    VERTICAL_BREAKPOINTS = LiveScreen.VERTICAL_BREAKPOINTS

    moment: FleetMoment | None = None

    def compose(self) -> ComposeResult:
        yield FleetHeader(id="header")
        with Vertical(id="body"):
            yield FleetPanel()
            yield ClusterPanel()
        yield Static(f"{TOO_SMALL}, or quit with ctrl+c.", id="too-small")
        yield KeyBar()

    def on_mount(self) -> None:
        entitle(self.query_one(FleetPanel), "Clusters")
        self.query_one(ClusterPanel).display = False

    @property
    def opened(self) -> str:
        """The name of the open cluster; empty where none is."""
        return self.query_one(ClusterPanel).key

    def show(self, moment: FleetMoment) -> None:
        """Show this moment."""
        self.moment = moment
        with self.app.batch_update():
            self.set_class(bool(moment.trouble), "-stale")
            self.query_one(FleetHeader).show_moment(moment)
            self._pane.show(moment)
            self.query_one(ClusterPanel).show(moment)
            self._show_remark()

    def show_detail(self, name: str, detail: ClusterDetail) -> None:
        """Show what the service of a cluster says, if that one is still open."""
        panel = self.query_one(ClusterPanel)
        if panel.key == name and self.moment is not None:
            panel.detail = detail
            panel.show(self.moment)

    @property
    def _pane(self) -> TablePane[FleetMoment]:
        return cast("TablePane[FleetMoment]", self.query_one(TablePane))

    def _show_remark(self) -> None:
        if self.moment is None:
            return
        # An opened cluster says so itself.
        key = None if self.opened else self._pane.table.key_at_cursor
        self.query_one(Remark).say(selected_words(self.moment, key))

    def on_data_table_row_highlighted(self, event: KeyedTable.RowHighlighted) -> None:
        event.stop()
        self._show_remark()

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        if event.row_key.value is not None and self.moment is not None:
            panel = self.query_one(ClusterPanel)
            panel.key, panel.detail, panel.display = event.row_key.value, None, True
            panel.scroll_home(animate=False)
            self.set_class(True, "-opened")
            panel.show(self.moment)
            panel.focus()
            self._show_remark()
            self.app.call_later(self.app.run_action, "ask_detail")

    def action_close(self) -> None:
        """Hide the open cluster."""
        panel = self.query_one(ClusterPanel)
        panel.key, panel.display = "", False
        self.set_class(False, "-opened")
        self._pane.table.focus()
        self._show_remark()

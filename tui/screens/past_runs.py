"""The screen of previous runs."""

import asyncio
from typing import cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import ScreenResume

from model.errors import PlimsollError
from tui.host import Host, Runs
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.screens.run_replay import ReplayScreen
from tui.viewmodel.cells import Table
from tui.viewmodel.run.past_runs import Listed, history_table, why_no_runs
from tui.viewmodel.sort_filter import Wish
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.table_pane import TablePane

MARGINS = 3
"""Columns beside the table: margins and scroll bar."""


class HistoryScreen(LiveScreen):
    """The most recent runs on the cluster; enter replays one, B rolls it back."""

    MODE = "history"
    AUTO_FOCUS = "#runs"
    HELP = """\
## History

`deviation` is the largest deviation of any broker from the average: before the run, as
planned, and as achieved by the moves that were made.

Enter replays a run from its journal.
"""
    BINDINGS = [
        Binding(
            "B",
            "roll_back",
            "Roll back",
            tooltip="Roll back the selected run",
            id="history.rollback",
        )
    ]

    _runs: tuple[Listed, ...] | None = None
    """None until they have been read."""
    _stage: tuple[bool, str | None] = (False, None)
    """Whether a run is in progress, and the last run; read again on a change."""

    def body(self) -> ComposeResult:
        yield TablePane(self._table, table_id="runs")

    def show(self, moment: Moment) -> None:
        self.query_one(TablePane).show(moment)
        run = moment.view.run
        stage = moment.running, run.run_id if run is not None else None
        if self._stage != stage:
            self._stage = stage
            self._read()

    def on_screen_resume(self, _event: ScreenResume) -> None:
        self._read()

    def action_roll_back(self) -> None:
        """Roll back the selected run."""
        run_id = self.query_one(TablePane).table.key_at_cursor
        if run_id is not None:
            self._past.roll_back(run_id)
        else:
            self.notify("there is no run to roll back", timeout=3)

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        for run in self._runs or ():
            if run.past.run_id == event.row_key.value:
                self._replay(run)

    @property
    def _past(self) -> Runs:
        return cast("Host", self.app).past_runs

    @work(exclusive=True, group="history")
    async def _read(self) -> None:
        self._runs = await asyncio.to_thread(self._past.runs)
        self.query_one(TablePane).renew()

    # With a description: Textual's own would be the text of all moves of the run.
    @work(exclusive=True, group="replay", description="replay a run")
    async def _replay(self, run: Listed) -> None:
        try:
            replay = await asyncio.to_thread(self._past.replay, run.past.run_id)
        except PlimsollError as exc:
            self.notify(str(exc), severity="error", timeout=15, markup=False)
        else:
            self.app.push_screen(ReplayScreen(replay, run.balance))

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        reason = why_no_runs(moment, read=self._runs is not None)
        return history_table(self._runs or (), reason, width - MARGINS, wish)

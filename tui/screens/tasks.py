"""The tasks on brokers, and one of them in full."""

import asyncio
import contextlib
from typing import Final, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.css.query import NoMatches
from textual.events import ScreenResume

from control.tasks.task_listing import ListedTask, TaskListing
from tui.host import Host
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.viewmodel.cells import Table, plain
from tui.viewmodel.sort_filter import Wish
from tui.viewmodel.tasks.task_list import selected_remark, task_table, why_no_tasks
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.remark import Remark
from tui.widgets.table_pane import TablePane
from tui.widgets.task_panel import TaskPanel
from tui.widgets.titles import entitle

MARGINS: Final = 1
"""Columns beside the table, for its scroll bar."""
READ_EVERY_MS: Final = 10_000
"""Time between two readings of the tasks while the screen is open."""


class TaskListPanel(Vertical):
    """All tasks of the cluster."""

    HELP = """\
## Tasks

What was requested for brokers: remove, replace, add, demote, maintenance. A task is kept until
it is done, whatever becomes of the process that works on it.

`done` is the share of the bytes of the newest plan that has been copied, `in phase` the time
since the phase began. The last column names the process that works on the task, or says why
none does and what continues it.

That column is shown in full below the table for the row under the cursor.

The list is read every ten seconds, from the state folder and the archive. Enter opens a task.
"""


class TasksScreen(LiveScreen):
    """All tasks; on request, one of them in full."""

    MODE = "tasks"
    AUTO_FOCUS = "#tasks"
    BINDINGS = [
        Binding(
            "R",
            "resume_task",
            "Resume task",
            tooltip="Resume the selected task, after a confirmation; approve its plan if it waits",
            id="tasks.resume",
        ),
        Binding(
            "C",
            "cancel_task",
            "Cancel task",
            tooltip="Cancel the selected task, after a confirmation; what has moved stays",
            id="tasks.cancel",
        ),
    ]

    _listing: TaskListing | None = None
    """None until it has been read."""
    _read_at_ms: int | None = None
    """When the last reading began; None to read at once."""
    _reading = False

    def body(self) -> ComposeResult:
        with TaskListPanel():
            yield TablePane(self._table, table_id="tasks")
            yield Remark()
        yield TaskPanel()

    def on_mount(self) -> None:
        entitle(self.query_one(TaskListPanel), "Tasks")
        self.query_one(TaskPanel).display = False

    @property
    def crumbs(self) -> tuple[str, ...]:
        panel = self.query_one(TaskPanel)
        return (panel.title_shown,) if panel.display else ()

    def show(self, moment: Moment) -> None:
        self._read_if_due(moment)
        self._renew(moment)

    def _renew(self, moment: Moment) -> None:
        self.query_one(TablePane).show(moment)
        self._show_remark()
        self.query_one(TaskPanel).show(self._listing or TaskListing(), moment)

    def _table(self, moment: Moment, width: int, wish: Wish) -> Table:
        known = self._app.tasks.known
        reason = why_no_tasks(moment, self._listing, known=known)
        return task_table(self._listing, reason, moment, width - MARGINS, wish)

    @property
    def _app(self) -> Host:
        return cast("Host", self.app)

    # ---- reading

    def on_screen_resume(self, _event: ScreenResume) -> None:
        if not self._reading:
            self.read_again()

    def read_again(self) -> None:
        """Read the tasks at once, after a request has changed them."""
        self._read_at_ms = None
        if self._newest is not None:
            self._read_if_due(self._newest)

    def _read_if_due(self, moment: Moment) -> None:
        snapshot = moment.view.snapshot
        if snapshot is None or not self._app.tasks.known or self._reading:
            return
        last = self._read_at_ms
        if last is None or not 0 <= moment.now_ms - last < READ_EVERY_MS:
            self._read_at_ms = moment.now_ms
            self._reading = True
            self._read(snapshot.header.cluster_id)

    @work(group="tasks")
    async def _read(self, cluster_id: str) -> None:
        # In a thread: the tasks may lie in a bucket.
        try:
            self._listing = await asyncio.to_thread(self._app.tasks.listing, cluster_id)
        finally:
            self._reading = False
        # The program may be ending, which removes one widget after another.
        with contextlib.suppress(NoMatches):
            if self.moment is not None and not self.frozen:
                self._renew(self.moment)
                self.show_crumbs()

    def _show_remark(self) -> None:
        """Show in full what the last column of the row under the cursor may cut."""
        if self.moment is None:
            return
        key = self.query_one(TablePane).table.key_at_cursor
        self.query_one(Remark).say(plain(selected_remark(self._listing, key, self.moment)))

    def on_data_table_row_highlighted(self, event: KeyedTable.RowHighlighted) -> None:
        event.stop()
        self._show_remark()

    # ---- actions of the operator

    def on_data_table_row_selected(self, event: KeyedTable.RowSelected) -> None:
        event.stop()
        if event.row_key.value is not None and self.moment is not None:
            panel = self.query_one(TaskPanel)
            panel.key, panel.display = event.row_key.value, True
            panel.scroll_home(animate=False)
            self.set_class(True, "-opened")
            panel.show(self._listing or TaskListing(), self.moment)
            panel.focus()
            self.show_crumbs()

    def action_close(self) -> None:
        """Hide the open task."""
        self.query_one(TaskPanel).display = False
        self.set_class(False, "-opened")
        self.query_one(TablePane).table.focus()
        self.show_crumbs()

    def action_resume_task(self) -> None:
        """Resume the task that is open, or that the cursor is on."""
        if (of := self._selected()) is not None:
            self._app.tasks.resume(of, self.read_again)
        else:
            self.notify("there is no task to resume", timeout=3)

    def action_cancel_task(self) -> None:
        """Cancel the task that is open, or that the cursor is on."""
        if (of := self._selected()) is not None:
            self._app.tasks.cancel(of, self.read_again)
        else:
            self.notify("there is no task to cancel", timeout=3)

    def _selected(self) -> ListedTask | None:
        """The task that is open, or that the cursor is on; None where it is no task."""
        panel = self.query_one(TaskPanel)
        key = panel.key if panel.display else self.query_one(TablePane).table.key_at_cursor
        tasks = () if self._listing is None else self._listing.tasks
        return next((of for of in tasks if of.task.task_id == key), None)

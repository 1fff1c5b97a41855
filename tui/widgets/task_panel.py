"""One task in full, over or below the list of tasks."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.events import Resize

from control.tasks.task_listing import TaskListing
from model.printable import printable
from tui.screen_state import Moment
from tui.viewmodel.cells import Cell, Role, cell
from tui.viewmodel.tasks.task_detail import task_lines, unreadable_lines
from tui.viewmodel.tasks.task_list import UNREADABLE
from tui.widgets.text_lines import Lines
from tui.widgets.titles import entitle

MARGINS = 3
"""Columns beside the lines: margins and scroll bar."""


class TaskPanel(VerticalScroll):
    """The opened task; it scrolls where it does not fit."""

    HELP = """\
## A task

When it entered which phase, and its plans: what each moves, who approved it, and what became
of it. A plan is executed exactly as it was approved; what is left after it gets another plan,
which needs no further approval.
"""
    BINDINGS = [Binding("escape", "screen.close", "Close", id="tasks.close")]

    def __init__(self) -> None:
        super().__init__()
        self.key: str | None = None
        """The key of the row that is open; None for none."""
        self._listing = TaskListing()
        self._moment: Moment | None = None

    def compose(self) -> ComposeResult:
        yield Lines()

    def show(self, listing: TaskListing, moment: Moment) -> None:
        """Show the open task at this moment."""
        self._listing, self._moment = listing, moment
        width = self.size.width - MARGINS
        if self.key is None or width <= 0:
            return
        title, lines = self._content(self.key, listing, moment, width)
        entitle(self, title, "escape closes")
        self.query_one(Lines).show(lines)

    @property
    def title_shown(self) -> str:
        """What the open row is, for the path."""
        found = [of.task.words() for of in self._listing.tasks if of.task.task_id == self.key]
        return next(iter(found), (self.key or "").removeprefix(UNREADABLE))

    def _content(
        self, key: str, listing: TaskListing, moment: Moment, width: int
    ) -> tuple[str, tuple[Cell, ...]]:
        for of in listing.tasks:
            if of.task.task_id == key:
                return f"Task: {of.task.words()}", task_lines(of, moment, width)
        for damaged in listing.unreadable:
            if f"{UNREADABLE}{damaged.name}" == key:
                return printable(f"File {damaged.name}"), unreadable_lines(damaged, width)
        return "Task", (cell("It is no longer there.", Role.MUTED),)

    def on_resize(self, _event: Resize) -> None:
        if self._moment is not None:
            self.show(self._listing, self._moment)

"""The progress of a run and its moves."""

from dataclasses import replace

from textual.app import ComposeResult
from textual.binding import Binding

from tui.keys import RUN_KEYS
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.viewmodel.log import lines_of_run
from tui.viewmodel.run.run import run_shown
from tui.widgets.log_pane import LogPane
from tui.widgets.run_panel import RunPanel
from tui.widgets.titles import entitle


class RunScreen(LiveScreen):
    """The run in progress, else the last one, else an interrupted one."""

    MODE = "run"
    AUTO_FOCUS = "#moves"
    BINDINGS = [
        *(replace(key, action=f"app.{key.action}", show=True) for key in RUN_KEYS),
        Binding(
            "B",
            "app.roll_back",
            "Roll back",
            tooltip="Roll this run back, after a confirmation",
            id="run.rollback",
        ),
    ]

    def body(self) -> ComposeResult:
        yield RunPanel(run_shown)
        yield LogPane()

    @property
    def crumbs(self) -> tuple[str, ...]:
        run = self.moment.view.run if self.moment is not None else None
        return ("moves",) if run is not None else ()

    def show(self, moment: Moment) -> None:
        self.query_one(RunPanel).show(moment)
        pane = self.query_one(LogPane)
        lines = lines_of_run(moment)
        pane.set_class(not lines, "-empty")
        pane.show(lines)
        entitle(pane, "Actions and events of this run")

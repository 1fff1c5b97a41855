"""The replay of a previous run from its journal."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding

from executor.journal.journal_replay import Replay
from model.run import BrokerBalance, RunProgress
from tui.screen_state import Moment
from tui.screens.base import LiveScreen
from tui.viewmodel.run.run import RunShown, past_shown
from tui.widgets.run_panel import RunPanel

STEPS = 20
"""Steps in a whole replay."""


class ReplayScreen(LiveScreen):
    """Starts at the end; the arrow keys step through the journal."""

    MODE = "run"
    AUTO_FOCUS = "#moves"
    BINDINGS = [
        Binding("escape", "leave", "Back", id="replay.back"),
        Binding(
            "left",
            "step(-1)",
            "Earlier",
            tooltip="Step back in the journal",
            priority=True,
            id="replay.earlier",
        ),
        Binding(
            "right",
            "step(1)",
            "Later",
            tooltip="Step forward in the journal",
            priority=True,
            id="replay.later",
        ),
    ]

    def __init__(self, replay: Replay, balance: Sequence[BrokerBalance]) -> None:
        super().__init__()
        self._replay = replay
        self._balance = balance
        self._record = len(replay) - 1
        self._known: tuple[int, RunProgress] | None = None
        """A record, and the run at it."""

    def body(self) -> ComposeResult:
        yield RunPanel(self._past)

    @property
    def crumbs(self) -> tuple[str, ...]:
        return ("replay", f"record {self._record + 1}")

    def on_mount(self) -> None:
        # Otherwise each step of its layout would be painted.
        self.app.delay_update()

    def show(self, moment: Moment) -> None:
        self.query_one(RunPanel).show(moment)

    def action_leave(self) -> None:
        self.dismiss()

    def action_step(self, direction: int) -> None:
        """Go to an earlier or later record."""
        last = len(self._replay) - 1
        step = direction * max(1, last // STEPS)
        self._record = min(last, max(0, self._record + step))
        if self.moment is not None:
            self._draw(self.moment)

    def _past(self, _moment: Moment, width: int) -> RunShown:
        last = len(self._replay) - 1
        is_end = self._record == last
        if self._known is None or self._known[0] != self._record:
            self._known = self._record, self._replay.at(self._record)
        return past_shown(
            self._known[1],
            self._balance if is_end else (),
            self._replay.at_ms(self._record),
            width,
            where=f"record {self._record + 1} of {last + 1}",
        )

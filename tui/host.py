"""What screens may ask of the app that shows them."""

from abc import abstractmethod
from typing import Protocol, cast

from textual.reactive import reactive

from executor.journal.journal_replay import Replay
from tui.base_app import FrameApp
from tui.loop_port import Asking
from tui.screen_state import Moment
from tui.viewmodel.run.past_runs import Listed


class Runs(Protocol):
    """Previous runs: listed, replayed and rolled back."""

    def runs(self) -> tuple[Listed, ...]:
        """Return the previous runs, newest first; reads their journals."""
        ...

    def replay(self, run_id: str) -> Replay:
        """Read a run's journal; raises ConfigError if there is none."""
        ...

    def roll_back(self, run_id: str | None = None) -> None:
        """Ask whether to move back what a run moved, by default the one shown."""


class Host(FrameApp):
    """The app as its screens know it: the newest moment, and requests to the loop."""

    moment: reactive[Moment] = reactive(cast("Moment", None), init=False, repaint=False)

    @property
    @abstractmethod
    def proposals(self) -> Asking:
        """Requests about plans."""

    @property
    @abstractmethod
    def past_runs(self) -> Runs:
        """Requests about previous runs."""

    @abstractmethod
    def log_action(self, message: str) -> None:
        """Log what the operator did, without waiting for the loop's lock."""

    @abstractmethod
    def action_show_mode(self, mode: str) -> None:
        """Switch to another screen."""

    @abstractmethod
    def action_pause_run(self) -> None:
        """Pause the run in progress, or resume it if it is paused."""

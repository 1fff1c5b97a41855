"""What screens may ask of the app that shows them."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol, cast

from textual.reactive import reactive

from control.tasks.task_listing import ListedTask, TaskListing
from executor.journal.journal_replay import Replay
from model.ids import BrokerId
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


class Tasks(Protocol):
    """The tasks on brokers: listed, resumed and cancelled."""

    @property
    def known(self) -> bool:
        """Whether there can be tasks at all."""
        ...

    def listing(self, cluster_id: str) -> TaskListing:
        """Read the tasks of a cluster; not for the thread that draws."""
        ...

    def operate(self, broker: BrokerId) -> None:
        """Choose what to request for a broker, or others, and request it once confirmed."""
        ...

    def resume(self, of: ListedTask, then: Callable[[], None]) -> None:
        """Resume a task after a confirmation; call `then` once it has begun."""
        ...

    def cancel(self, of: ListedTask, then: Callable[[], None]) -> None:
        """Cancel a task after a confirmation; call `then` once that is done."""
        ...


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

    @property
    @abstractmethod
    def tasks(self) -> Tasks:
        """Requests about tasks."""

    @abstractmethod
    def log_action(self, message: str) -> None:
        """Log what the operator did, without waiting for the loop's lock."""

    @abstractmethod
    def action_show_mode(self, mode: str) -> None:
        """Switch to another screen."""

    @abstractmethod
    def action_pause_run(self) -> None:
        """Pause the run in progress, or resume it if it is paused."""

"""What all screens that show the loop have in common."""

from abc import abstractmethod

from textual.binding import ActiveBinding
from textual.screen import Screen

from tui.moment import Moment
from tui.viewmodel.refusals import refusal
from tui.widgets.header_bar import HeaderBar


class LiveScreen(Screen[None]):
    """Shows each new moment; its body rests while a question lies over it."""

    moment: Moment | None = None

    def on_mount(self) -> None:
        self.watch(self.app, "moment", self._arrived)

    def _arrived(self, moment: Moment) -> None:
        old, self.moment = self.moment, moment
        self.query_one(HeaderBar).show_moment(moment)
        if self.is_active:
            self.show(moment)
        if old is None or _refusals(old) != _refusals(moment):
            self.refresh_bindings()

    def on_screen_resume(self) -> None:
        if self.moment is not None:
            self.show(self.moment)

    @abstractmethod
    def show(self, moment: Moment) -> None:
        """Show this moment in the body."""

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """Bindings, those greyed with the reason as their tooltip."""
        return {key: self._told(b) for key, b in super().active_bindings.items()}

    def _told(self, binding: ActiveBinding) -> ActiveBinding:
        if self.moment is None:
            return binding
        words = refusal(binding.binding.action, self.moment)
        return binding._replace(tooltip=words) if words else binding


def _refusals(moment: Moment) -> list[str | None]:
    return [refusal(a, moment) for a in ("approve", "stop_run", "solve_again")]

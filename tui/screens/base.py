"""The base of all screens that show the loop."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import Vertical
from textual.events import ScreenResume
from textual.screen import Screen
from textual.widgets import Static

from model.errors import PlimsollError
from model.run import RunState
from tui.host import Host
from tui.screen_state import Moment
from tui.screens.backdrop import is_put_off
from tui.screens.too_small import LEAST_COLUMNS, LEAST_LINES, TOO_SMALL
from tui.viewmodel.disabled_reasons import ACTIONS, refusal
from tui.widgets.header_bar import HeaderBar
from tui.widgets.key_bar import KeyBar
from tui.widgets.mode_bar import ModeBar

FREEZE = "screen.freeze"
PAUSE = "run.pause"
STOP = "run.stop"
UNDO = "plan.undo"


class LiveScreen(Screen[None]):
    """Show each new moment; the body is only updated while the screen is active."""

    MODE: ClassVar[str]
    """Its name in `PlimsollApp.MODES`."""
    # Not for dialogs: each class that changes restyles the whole screen.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_COLUMNS, "-narrow"), (120, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_LINES, "-low"), (24, "-short"), (32, "-tall")]

    BINDINGS = [
        Binding(
            "space",
            "freeze",
            "Freeze",
            tooltip="Keep what is shown while the loop continues; again to follow it",
            id=FREEZE,
        )
    ]

    moment: Moment | None = None
    """The moment shown: the latest, or the one that was frozen."""
    frozen = False
    _newest: Moment | None = None
    _drawn: Moment | None = None
    """The moment drawn last; None draws the next one in any case."""

    def __init__(self) -> None:
        super().__init__()
        # Of the size that it will have: otherwise all of it is styled again for its first one.
        for size, breakpoints in zip(
            self.app.size, (self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS), strict=True
        ):
            self.add_class(*self._get_breakpoint_classes(size, breakpoints), update=False)

    def compose(self) -> ComposeResult:
        yield HeaderBar(id="header")
        yield ModeBar(self.MODE)
        with Vertical(id="body"):
            yield from self.body()
        yield Static(f"{TOO_SMALL}, or quit with ctrl+c.", id="too-small")
        yield KeyBar()

    @abstractmethod
    def body(self) -> ComposeResult:
        """The widgets between header and footer."""

    @abstractmethod
    def show(self, moment: Moment) -> None:
        """Show this moment in the body."""

    @property
    def crumbs(self) -> tuple[str, ...]:
        """What is open on this screen, from the outside in."""
        return ()

    def show_crumbs(self) -> None:
        """Show the path to what is open."""
        self.query_one(ModeBar).show_crumbs(self.crumbs)

    def on_mount(self) -> None:
        self.watch(self.app, "moment", self._arrived)

    def _arrived(self, moment: Moment) -> None:
        old, self._newest = self._newest, moment
        if self in self.app.screen_stack:
            self.query_one(HeaderBar).show_moment(moment)
        if self.is_active:
            self._follow()
        if old is None or _refusals(old) != _refusals(moment):
            self.refresh_bindings()

    def on_screen_resume(self, event: ScreenResume) -> None:
        # Its widgets got their styles when they were mounted, and get new ones with a theme.
        event.refresh_styles = False
        if self._newest is not None:
            self.query_one(HeaderBar).show_moment(self._newest)
            self._follow()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return None, which greys the key, if the action is refused."""
        return None if self.refused(action) else True

    def refused(self, action: str) -> bool:
        """Whether the action is refused in the state shown."""
        return self.moment is not None and refusal(action, self.moment) is not None

    def action_freeze(self) -> None:
        """Freeze the screen, or follow the loop again."""
        self.frozen = not self.frozen
        change = "freeze" if self.frozen else "unfreeze"
        cast("Host", self.app).log_action(f"{change} the {self.MODE} screen")
        since_ms = self.moment.now_ms if self.frozen and self.moment else None
        self.query_one(ModeBar).show(frozen_ms=since_ms)
        self.refresh_bindings()
        self._follow()

    def _follow(self) -> None:
        if not self.frozen:
            self.moment = self._newest
        if self.moment is not None and self.moment is not self._drawn:
            self._drawn = self.moment
            self._draw(self.moment)

    def prepare(self) -> None:
        """Lay it out and fill it before its first visit, which then only paints it."""
        self._refresh_layout(self.app.size)
        if self._newest is not None:
            self.moment = self._newest
            self._draw(self._newest)

    def _compositor_refresh(self) -> None:
        if not is_put_off(self):
            super()._compositor_refresh()

    def _draw(self, moment: Moment) -> None:
        with self.app.batch_update():
            self.show(moment)
            self.show_crumbs()

    @work(group="ask", exclusive=True)
    async def _request(self, call: Callable[[], None], done: str = "") -> None:
        """Send the loop a request, then show `done`, or why it was refused."""
        try:
            # Off the event loop: the loop may hold its lock for a moment.
            await asyncio.to_thread(call)
        except PlimsollError as exc:
            self.notify(str(exc), severity="warning", timeout=8, markup=False)
        else:
            if done:
                self.notify(done, timeout=3, markup=False)

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The bindings; a disabled one has the reason as its tooltip.

        The key that freezes is labelled with what it does next.
        """
        return {key: self._labelled(b) for key, b in super().active_bindings.items()}

    def _labelled(self, binding: ActiveBinding) -> ActiveBinding:
        if self.frozen and binding.binding.id == FREEZE:
            return binding._replace(binding=replace(binding.binding, description="Follow"))
        if self._newest is None:
            return binding
        if binding.binding.id == PAUSE and self._newest.paused:
            # The key beside it resumes; this one still does as well.
            return binding._replace(binding=replace(binding.binding, show=False))
        run = self._newest.view.run
        if binding.binding.id == STOP and run is not None and run.state is RunState.STOPPING:
            # What the key does from now on.
            abort = replace(binding.binding, description="Abort run")
            binding = binding._replace(binding=abort)
        reason = refusal(binding.binding.action, self._newest)
        if reason and binding.binding.id == UNDO:
            # Worth its room only after a request.
            binding = binding._replace(binding=replace(binding.binding, show=False))
        return binding._replace(tooltip=reason) if reason else binding


def _refusals(moment: Moment) -> list[str | bool | None]:
    run = moment.view.run
    stopping = run is not None and run.state is RunState.STOPPING
    return [moment.paused, stopping, *(refusal(a, moment) for a in ACTIONS)]

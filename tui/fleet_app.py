"""The screen of a fleet: it asks the fleet's service, and changes nothing."""

import signal
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from textual import work
from textual.app import SystemCommand
from textual.binding import Binding
from textual.driver import Driver
from textual.screen import Screen

from control.cli.fleet_source import ClusterDetail
from control.cli.output_types import FleetAnswer, FleetClusterAnswer
from model.errors import PlimsollError
from model.printable import printable
from tui.background import in_background
from tui.base_app import BREAK_KEY, HELP_KEY, FrameApp, Looks, driver_for, show
from tui.palette import commands
from tui.screens.fleet import FleetScreen
from tui.terminal import vanished
from tui.viewmodel.fleet import FleetMoment

EVERY_S: Final = 1.0
"""Time between two readings of the table."""
DETAIL_EVERY_S: Final = 5.0
"""Time between two readings of an open cluster, whose brokers take longer."""


class FleetPort(Protocol):
    """The services of a fleet; `control.cli.fleet_source.FleetSource` is one."""

    def table(self) -> FleetAnswer:
        """Ask for the table; raises PlimsollError where the fleet's service does not answer."""
        ...

    def detail(self, row: FleetClusterAnswer) -> ClusterDetail:
        """Ask the service of a cluster."""
        ...


class FleetApp(FrameApp):
    """Show a fleet."""

    TITLE = "plimsoll"
    CSS_PATH = "plimsoll.tcss"
    BINDINGS = [
        HELP_KEY,
        Binding("q", "quit", "Quit", tooltip="Leave; the service continues", id="app.quit"),
        BREAK_KEY,
    ]

    def __init__(
        self,
        looks: Looks,
        port: FleetPort,
        first: FleetAnswer,
        *,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        terminal_gone: Callable[[], bool] = vanished,
        driver: type[Driver] | None = None,
    ) -> None:
        """name: of the fleet. clock: seconds of a clock that is never set."""
        super().__init__(looks, driver)
        self._port, self._fleet_name = port, name
        self._clock, self._terminal_gone = clock, terminal_gone
        self._answer, self._answered_s = first, clock()
        self._trouble = ""
        self._asked_s = self._detail_asked_s = float("-inf")
        self._asking = self._asking_detail = False

    def get_default_screen(self) -> Screen[Any]:
        return FleetScreen()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        builtin = {c.title: c for c in super().get_system_commands(screen)}
        own = {c.title: c for c in commands(screen)}
        yield from (builtin | own).values()

    # ---- asking

    def on_mount(self) -> None:
        self._asked_s = self._clock()
        self.call_after_refresh(self._renew)
        self.set_interval(EVERY_S, self.tick)

    def tick(self) -> None:
        """Ask what is due, and show the time that has passed."""
        if self._terminal_gone():
            self.leave_at_once(signal.SIGHUP)
        now_s = self._clock()
        if not self._asking and now_s - self._asked_s >= EVERY_S:
            self._asking, self._asked_s = True, now_s
            self._ask()
        if now_s - self._detail_asked_s >= DETAIL_EVERY_S:
            self.action_ask_detail()
        self._renew()

    @work(group="table")
    async def _ask(self) -> None:
        try:
            self._answer = await in_background(self._port.table)
        except PlimsollError as exc:
            self._trouble = printable(str(exc))
        else:
            self._trouble, self._answered_s = "", self._clock()
        finally:
            self._asking = False
        self._renew()

    def action_ask_detail(self) -> None:
        """Ask the service of the cluster that is open."""
        screen = self._fleet
        rows = [] if screen is None else self._answer.clusters
        row = next((r for r in rows if screen is not None and r.name == screen.opened), None)
        if row is not None and not self._asking_detail:
            self._asking_detail, self._detail_asked_s = True, self._clock()
            self._ask_detail(row)

    @work(group="detail")
    async def _ask_detail(self, row: FleetClusterAnswer) -> None:
        try:
            found = await in_background(lambda: self._port.detail(row))
        except PlimsollError as exc:
            found = ClusterDetail(status=f"{exc}\n")
        finally:
            self._asking_detail = False
        if (screen := self._fleet) is not None:
            screen.show_detail(row.name, found)
            if screen.opened not in ("", row.name):
                # Another one has been opened in the meantime.
                self.action_ask_detail()

    # ---- showing

    @property
    def _fleet(self) -> FleetScreen | None:
        """The screen below dialogs; None while the app starts and while it closes."""
        found = self.screen_stack[0] if self.screen_stack else None
        if not isinstance(found, FleetScreen):
            return None
        # While the app is being closed, widgets go before the screen does.
        return found if self.is_running and found.is_mounted else None

    def _renew(self) -> None:
        if (screen := self._fleet) is not None:
            screen.show(
                FleetMoment(
                    name=self._fleet_name,
                    answer=self._answer,
                    age_s=max(0.0, self._clock() - self._answered_s),
                    trouble=self._trouble,
                )
            )


def run(looks: Looks, port: FleetPort, first: FleetAnswer, name: str) -> None:
    """Show a fleet until the user leaves. Raises ConfigError for an unknown key, and as `show`."""
    show(FleetApp(looks, port, first, name=name, driver=driver_for(looks)))

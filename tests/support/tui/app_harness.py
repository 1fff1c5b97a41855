"""The app over a fake loop, in a terminal that does not exist."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator
from dataclasses import dataclass

from rich.console import Console
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

from control.loop.view import LoopView
from control.settings.screen_settings import ScreenSettings
from tests.support.tui.loop_views import AT_MS, FakeLoop
from tui.app import PlimsollApp
from tui.screens.approve import ApproveScreen
from tui.viewmodel.cells import plain
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.text_lines import Lines

USER = "ann"
ROUNDS = 5
"""Rounds until messages, layouts and repaints have triggered each other."""
SWITCH_S = 0.06
"""For so long, and a little less, Textual draws nothing after a switch of screens."""


@dataclass
class Stage:
    """The objects that a test acts on and inspects."""

    loop: FakeLoop
    app: PlimsollApp
    pilot: Pilot[None]
    clock_s: float = AT_MS / 1000
    terminal_gone: bool = False
    mode: str = PlimsollApp.DEFAULT_MODE

    async def show(self, view: LoopView, *, running: bool | None = None) -> None:
        self.loop.show(view, running=running)
        await self.settle()

    async def press(self, *keys: str) -> None:
        for key in keys:
            if key == "enter":
                # Nothing is approved before its estimate is there.
                await self.settle()
            await self.pilot.press(key)
        await self.settle()

    async def settle(self) -> None:
        """Wait until messages, threads and repaints are done.

        Counted in rounds rather than by an idle processor, which a busy machine never has.
        """
        await self.app.workers.wait_for_complete()
        if self.app.current_mode != self.mode:
            self.mode = self.app.current_mode
            await asyncio.sleep(SWITCH_S)
        for _ in range(ROUNDS):
            await self.pilot.pause(0)
        # Messages start threads, too; what those bring is painted in one round.
        await self.app.workers.wait_for_complete()
        await self.pilot.pause(0)

    @property
    def asking(self) -> ApproveScreen:
        assert isinstance(self.app.screen, ApproveScreen)
        return self.app.screen

    @property
    def name(self) -> Input:
        return self.asking.query_one(Input)

    def can_confirm(self) -> bool:
        return not self.asking.query_one("#yes", Button).disabled

    def words(self, selector: str) -> str:
        """The text of the first widget of the main screen that fits."""
        widget = self.app.screen_stack[0].query(selector).first(Static)
        return str(widget.render())

    @property
    def header(self) -> str:
        shown = self.app.screen_stack[0].query_one("#header", Lines).shown or ()
        return "\n".join("".join(s.text for s in line) for line in shown)

    @property
    def help(self) -> str:
        """The text of the help panel, a paragraph or key per line."""
        console = Console(width=1000, file=io.StringIO())
        with console.capture() as caught:
            console.print(self.app.screen.query_one("HelpPanel Static", Static).content)
        return caught.get()

    def table(self, selector: str) -> list[list[str]]:
        """Cells of a table as text."""
        table = self.app.screen_stack[0].query_one(selector, KeyedTable)
        return [[plain(cell).strip() for cell in row.cells] for row in table.rows_shown]


@contextlib.asynccontextmanager
async def stage(
    view: LoopView,
    *,
    size: tuple[int, int] = (80, 24),
    running: bool = False,
    theme: str = "textual-dark",
    keys: dict[str, str] | None = None,
    ahead_s: float | None = None,
) -> AsyncIterator[Stage]:
    """The app with this view."""
    looks = ScreenSettings(theme=theme)
    loop = FakeLoop(view=view, running=running, screen=looks, keys=keys or {})
    stages: list[Stage] = []
    app = PlimsollApp(
        loop,
        user=USER,
        clock=lambda: stages[0].clock_s if stages else AT_MS / 1000,
        terminal_gone=lambda: bool(stages) and stages[0].terminal_gone,
        ahead_s=ahead_s,
    )
    app.animation_level = "none"
    async with app.run_test(size=size) as pilot:
        stages.append(Stage(loop, app, pilot))
        await stages[0].settle()
        yield stages[0]

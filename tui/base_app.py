"""The app without its content: theme, keys, notifications and help."""

import asyncio
import gc
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App
from textual.binding import Binding
from textual.color import Color
from textual.command import CommandPalette
from textual.driver import Driver
from textual.events import Event, Key, Paste
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widgets import Input

from control.cli.console import in_browser
from control.settings.screen_settings import ScreenSettings
from model.errors import PlimsollError
from model.printable import printable
from tui.driver import AsciiDriver, TerminalDriver
from tui.keymap import checked_keys
from tui.screens.backdrop import Palette
from tui.screens.too_small import is_too_small
from tui.terminal import signals_end
from tui.themes import COLOUR_BLIND, wants_ascii
from tui.widgets.help_panel import HelpPanel

GONE_S = 0.5
"""By this long after its timeout, a notification is gone."""
MASKED_S = 0.01
"""How long a change of screens is not painted. Textual waits 0.05 s, half of the time
in which a key has to be answered."""

HELP_KEY = Binding(
    "question_mark",
    "help",
    "Help",
    tooltip="Explain the focused panel and list the keys",
    key_display="?",
    id="app.help",
)
BREAK_KEY = Binding("ctrl+c", "quit", "Quit", show=False, priority=True, id="app.break")
"""Keys that each app has, in a place of its own among the others."""


class _Printable(LineFilter):
    """Drop unprintable characters from everything that widgets draw.

    A character that has a width is replaced by blanks, so that lines keep theirs.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(s.text.isprintable() for s in segments):
            return segments
        return [Segment(_safe(text), style) for text, style, _ in segments]


PRINTABLE = _Printable()


def _safe(text: str) -> str:
    return "".join(c if c.isprintable() else " " * cell_len(c) for c in text)


class Looks(Protocol):
    """The user's settings of the screen."""

    @property
    def screen(self) -> ScreenSettings:
        """Theme and characters."""
        ...

    @property
    def keys(self) -> Mapping[str, str]:
        """Keys by action id."""
        ...


class FrameApp(App[None]):
    """Textual's app with the user's theme and keys, painting no more than it must."""

    def __init__(self, settings: Looks, driver: type[Driver] | None) -> None:
        """Apply the settings; raises ConfigError if they name an unknown key."""
        super().__init__(driver_class=driver)
        self.ended_by: signal.Signals | None = None
        """The signal that ended the app, if any."""
        # Each step would be painted, and an answer would take as long as all of them:
        # a second, and kilobytes over a slow line, to scroll a log to its end.
        self.animation_level = "none"
        self._apply(settings)

    def _apply(self, settings: Looks) -> None:
        """Set theme and keys; raises ConfigError if a key is unknown."""
        self.register_theme(COLOUR_BLIND)
        self.set_keymap(checked_keys(settings.keys))
        theme = settings.screen.theme
        if theme is not None:
            self.theme = theme

    async def on_event(self, event: Event) -> None:
        """Keep text out of an input hidden because the terminal is too small."""
        typed = isinstance(event, Paste) or (isinstance(event, Key) and event.is_printable)
        if typed and isinstance(self.focused, Input) and is_too_small(*self.size):
            return
        await super().on_event(event)

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        super()._load_screen_css(screen)
        # Its styles are parsed as they are added; Textual would parse all of them again.
        is_new = screen._css_update_count < 0  # noqa: SLF001 - as Textual does
        if is_new and self.stylesheet._variables == self.get_css_variables():  # noqa: SLF001
            screen._css_update_count = self._css_update_count  # noqa: SLF001

    def action_command_palette(self) -> None:
        if self.use_command_palette and not CommandPalette.is_open(cast("App[object]", self)):
            self.push_screen(Palette(id="--command-palette"))

    def delay_update(self, delay: float = MASKED_S) -> None:
        super().delay_update(delay)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a notification, and repaint what was below once it is gone.

        Textual leaves remains when several disappear at once.
        """
        timeout = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)
        self.set_timer(timeout + GONE_S, self._uncover)

    def get_line_filters(self) -> Sequence[LineFilter]:
        return (*super().get_line_filters(), PRINTABLE)

    def get_key_display(self, binding: Binding) -> str:
        """Name the enter key, whose symbol in Textual is not ASCII."""
        return super().get_key_display(binding).replace("⏎", "enter")

    def copy_to_clipboard(self, text: str) -> None:
        super().copy_to_clipboard(printable(text, keep="\n"))

    def leave_at_once(self, number: signal.Signals) -> None:
        """Quit because of a signal; the loop's owner lets in-flight moves finish."""
        self.ended_by = number
        self.exit()

    def _uncover(self) -> None:
        # An app that is about to end has no screen.
        for screen in self.screen_stack[-1:]:
            screen.refresh()

    def action_help(self) -> None:
        if self.screen.query(HelpPanel):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    def action_show_help_panel(self) -> None:
        """Show the help panel; Textual's palette calls this as well."""
        if not self.screen.query(HelpPanel):
            self.screen.mount(HelpPanel())


def driver_for(looks: Looks) -> type[Driver] | None:
    """The driver of this process's terminal; None for Textual's own, in a browser."""
    if in_browser():
        return None
    return AsciiDriver if looks.screen.ascii or wants_ascii(os.environ) else TerminalDriver


def show(app: FrameApp) -> None:
    """Show the app until the user leaves.

    Raises
    ------
    KeyboardInterrupt
        A signal ended the app, or its terminal vanished.
    PlimsollError
        The app itself failed.
    """
    # A full collection walks everything imported: for a tenth of a second no key would be answered.
    gc.freeze()
    asyncio.run(_shown(app))
    if app.ended_by is not None:
        raise KeyboardInterrupt
    if app.return_code != 0:
        raise PlimsollError("internal error: the screen failed; see the traceback above")


async def _shown(app: FrameApp) -> None:
    with signals_end(app.leave_at_once):
        await app.run_async()

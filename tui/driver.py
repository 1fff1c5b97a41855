"""The terminal driver: draw the screen and read keys."""

import codecs
import functools
from pty import STDERR_FILENO
from typing import Any

from textual.app import App
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from tui.terminal_writer import TerminalWriter
from tui.themes import ascii_text


def _forgiving(encoding: str) -> functools.partial[codecs.IncrementalDecoder]:
    """A decoder that replaces undecodable bytes."""
    return functools.partial(codecs.getincrementaldecoder(encoding), errors="replace")


# Textual's reader ends the app at the first byte that is not UTF-8. Such bytes may be
# pasted, and terminals set to Latin-1 send them.
linux_driver.getincrementaldecoder = _forgiving  # type: ignore[attr-defined, assignment]  # its import


class TerminalDriver(LinuxDriver):
    """Accept any bytes as input, and never wait for the terminal.

    Textual's own writer ends at the first error; from then on drawing blocks forever,
    deaf to keys and signals.
    """

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._shown = app
        self._writer: TerminalWriter | None = None
        self._suspended = False

    def write(self, data: str) -> None:
        if self._writer is None:
            self._writer = TerminalWriter(STDERR_FILENO, self._redraw)
        self._writer.write(data)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        super().close()

    def suspend_application_mode(self) -> None:
        self._suspended = True
        super().suspend_application_mode()

    def resume_application_mode(self) -> None:
        # A terminal that hangs up sends SIGCONT without a stop before it. Textual's
        # second reader would then never end, and would keep a core busy.
        if not self._suspended:
            super().suspend_application_mode()
        self._suspended = False
        super().resume_application_mode()

    def _redraw(self) -> None:
        self._shown.call_later(self._shown.refresh, layout=True)


def draws_ascii(app: App[Any]) -> bool:
    """Whether everything is drawn in ASCII."""
    return issubclass(app.driver_class, AsciiDriver)


class AsciiDriver(TerminalDriver):
    """Draw everything in ASCII, including Textual's own borders and bars."""

    def write(self, data: str) -> None:
        super().write(ascii_text(data))

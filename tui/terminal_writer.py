"""Write to a terminal that may be slow, stalled or gone."""

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 200
"""Maximum number of queued pieces; a whole screen is one piece as well."""
LAST_WORDS_S: Final = 2.0
"""How long closing waits for queued output."""


class TerminalWriter:
    """Write in a thread of its own, so that drawing never blocks.

    If a stalled terminal accepts nothing for long, queued output is discarded, and
    `caught_up` is called once it accepts output again, because everything has to be
    redrawn. Output to a terminal that is gone is discarded.
    """

    def __init__(self, fileno: int, caught_up: Callable[[], None]) -> None:
        """Start the thread, from which `caught_up` is called."""
        self._fileno = fileno
        self._caught_up = caught_up
        self._pieces: deque[str] = deque()
        self._changed = threading.Condition()
        self._lost = self._over = False
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue the text; returns at once."""
        with self._changed:
            if len(self._pieces) >= MOST:
                self._pieces.clear()
                self._lost = True
            if self._thread.is_alive():
                self._pieces.append(text)
                self._changed.notify()

    def close(self) -> None:
        """Write queued output, unless the terminal is stalled, and stop."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join(LAST_WORDS_S)

    def _run(self) -> None:
        # A terminal that is gone refuses all further output.
        with contextlib.suppress(OSError):
            while (text := self._next()) is not None:
                self._put(text.encode(errors="replace"))

    def _put(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._fileno, data) :]
            except BlockingIOError:
                # Another process on this terminal may have set it non-blocking.
                select.select([], [self._fileno], [])

    def _next(self) -> str | None:
        """Wait for the next piece; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._over)
            if not self._pieces:
                return None
            text = self._pieces.popleft()
            caught_up = self._lost and not self._over
            self._lost = False
        if caught_up:
            self._caught_up()
        return text

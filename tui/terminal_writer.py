"""What is drawn, on its way to a terminal that may be slow, stalled or gone."""

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 200
"""Pieces that wait for the terminal; whole screens are pieces, too."""
LAST_WORDS_S: Final = 2.0
"""How long the end waits for what is still to be written."""


class TerminalWriter:
    """Writes in a thread of its own; whoever draws waits for nothing.

    Where a stalled terminal takes nothing for long, what waits is given up, and
    `caught_up` is called once it takes something again, for all has to be drawn anew.
    What is drawn on a terminal that is gone is forgotten.
    """

    def __init__(self, fileno: int, caught_up: Callable[[], None]) -> None:
        """`caught_up` is called from the outlet's thread."""
        self._fileno = fileno
        self._caught_up = caught_up
        self._pieces: deque[str] = deque()
        self._changed = threading.Condition()
        self._lost = self._over = False
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Have this written; returns at once."""
        with self._changed:
            if len(self._pieces) >= MOST:
                self._pieces.clear()
                self._lost = True
            if self._thread.is_alive():
                self._pieces.append(text)
                self._changed.notify()

    def close(self) -> None:
        """Write what waits, unless the terminal takes nothing, and end."""
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
        """What comes next; waits for it, and is None at the end."""
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

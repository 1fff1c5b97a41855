"""A terminal of its own, in which a command is used as a person does; by tmux."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from shutil import which
from typing import Final

from rich.console import Console
from rich.text import Text

from benchmarks.picture_faults import write_picture
from model.closing import Closing

LOOK_S: Final = 0.1
LONG_S: Final = 300.0
"""Longer than anything that is waited for takes."""
STYLE: Final = r"(?:\x1b\[[\d;]*m)+"
LOOKS: Final = {"COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "LOGNAME": "ann"}
"""What a picture could differ by from machine to machine."""
PREFIX: Final = "terminal"
"""Of class names in a picture. CSS wants a letter first, which file names may lack."""


class Tmux(Closing):
    """One command in a tmux server of its own, until `close`."""

    def __init__(self, command: Sequence[str], columns: int, lines: int) -> None:
        if which("tmux") is None:
            sys.exit("tmux is not installed; the walk types its keys there")
        self._columns = columns
        self._name = f"plimsoll-walk-{time.monotonic_ns()}"
        size = ("-x", str(columns), "-y", str(lines))
        # Without a file of settings, so that it is the same on every machine.
        start = ("-u", "-f", "/dev/null", "new-session", "-d", *size)
        self._tmux(*start, *(f"-e{name}={v}" for name, v in LOOKS.items()), *command)

    def close(self) -> None:
        """End the server, and with it whatever runs in it."""
        self._tmux("kill-server", needed=False)

    def press(self, *keys: str) -> None:
        """Keys by their names in tmux: `A`, `Enter`, `Down`."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Text, letter by letter."""
        self._tmux("send-keys", "-l", text)

    def until(self, *words: str, gone: Sequence[str] = ()) -> None:
        """Wait until all words are on the screen, and none of those that are to go."""
        self.wait(
            lambda seen: all(w in seen for w in words) and not any(w in seen for w in gone),
            f"{words}, without {gone}",
        )

    def wait(self, fits: Callable[[str], bool], what: str) -> None:
        """Wait until the screen fits."""
        end_s = time.monotonic() + LONG_S
        while not fits(self.seen()):
            if time.monotonic() > end_s:
                sys.exit(f"not seen: {what}. The screen shows:\n{self.seen()}")
            time.sleep(LOOK_S)

    def until_field(self, placeholder: str) -> None:
        """Wait until an empty field has the focus: its cursor is drawn."""
        first, rest = re.escape(placeholder[0]), re.escape(placeholder[1:])
        self._until_styled(f"{STYLE}{first}{STYLE}{rest}", placeholder)

    def _until_styled(self, pattern: str, what: str) -> None:
        found = re.compile(pattern)
        self.wait(lambda _: found.search(self.seen("-e")) is not None, what)

    def seen(self, *options: str) -> str:
        """What the screen shows; `-e` with its styles."""
        return self._tmux("capture-pane", "-p", *options)

    def take(self, file: Path, title: str) -> None:
        """Draw the screen as it is into an SVG file."""
        seen = self.seen("-e", "-N").rstrip("\n")
        console = Console(record=True, width=self._columns, file=StringIO(), force_terminal=True)
        console.print(Text.from_ansi(seen), no_wrap=True, crop=False)
        write_picture(file, console.export_svg(title=title, unique_id=PREFIX))

    def _tmux(self, *arguments: str, needed: bool = True) -> str:
        told = subprocess.run(
            ["tmux", "-L", self._name, *arguments], capture_output=True, text=True
        )
        if needed and told.returncode:
            sys.exit(f"tmux {arguments[0]}: {told.stderr.strip()}")
        return told.stdout

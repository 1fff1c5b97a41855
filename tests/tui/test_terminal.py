"""The screen in a real terminal that goes away."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from tests.tui.views import FakeLoop, plan_ready
from tui.app import run
try:
    run(FakeLoop(view=plan_ready()))
except KeyboardInterrupt:
    sys.exit(130)
"""


def _until_drawn(master: int) -> bytes:
    """What the screen draws until it shows the plan."""
    drawn, deadline = b"", time.monotonic() + 60
    while b"PLAN READY" not in drawn:
        assert time.monotonic() < deadline, drawn[-2000:]
        if select.select([master], [], [], 0.2)[0]:
            drawn += os.read(master, 1 << 16)
    return drawn


@contextlib.contextmanager
def _started(**environment: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The screen in a terminal, and the end of it that a person sits at.

    The child is in a session without terminal: a hang-up sends it no signal.
    """
    master, slave = pty.openpty()
    size = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, **size, **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield child, master
    finally:
        child.kill()
        child.wait()
        with contextlib.suppress(OSError):
            os.close(master)


@pytest.mark.parametrize("how", ["hang up", "SIGTERM", "q"])
def test_the_screen_ends_when(how: str) -> None:
    with _started() as (child, master):
        _until_drawn(master)
        if how == "SIGTERM":
            child.send_signal(signal.SIGTERM)
        elif how == "q":
            os.write(master, b"q")
        else:
            os.close(master)
        assert child.wait(30) == (0 if how == "q" else 130)


def test_in_a_locale_without_utf_8_all_that_is_drawn_is_ascii() -> None:
    with _started(LC_ALL="C") as (child, master):
        drawn = _until_drawn(master)
        assert drawn.isascii()
        assert b"|" in drawn
        os.write(master, b"q")
        assert child.wait(30) == 0

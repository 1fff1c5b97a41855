"""The screen in a real terminal that goes away."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
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


def _until_drawn(master: int) -> None:
    """Read what the screen draws until it shows the plan."""
    drawn, deadline = b"", time.monotonic() + 60
    while b"PLAN READY" not in drawn:
        assert time.monotonic() < deadline, drawn[-2000:]
        if select.select([master], [], [], 0.2)[0]:
            drawn += os.read(master, 1 << 16)


@pytest.mark.parametrize("how", ["hang up", "SIGTERM", "q"])
def test_the_screen_ends_when(how: str) -> None:
    """The child is in a session without terminal: a hang-up sends it no signal."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        _until_drawn(master)
        if how == "SIGTERM":
            child.send_signal(signal.SIGTERM)
        elif how == "q":
            os.write(master, b"q")
        else:
            os.close(master)
            master = -1
        assert child.wait(30) == (0 if how == "q" else 130)
    finally:
        child.kill()
        child.wait()
        if master >= 0:
            os.close(master)

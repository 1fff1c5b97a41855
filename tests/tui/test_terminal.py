"""The screen in a real terminal that disappears."""

import os
import signal

import pytest

from tests.support.tui.terminals import LONG_S, in_terminal, read_until

DRAWN = b"PLAN READY"
SCRIPT = """
import fcntl, sys, termios
# A session of its own has no terminal, and a hang-up sends it no signal.
if len(sys.argv) > 1:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from tests.support.tui.loop_views import FakeLoop, plan_ready
from tui.app import run
try:
    run(FakeLoop(view=plan_ready()))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("how", ["hang up", "SIGTERM", "SIGINT", "q"])
def test_the_screen_ends(how: str) -> None:
    with in_terminal(SCRIPT) as (child, master):
        read_until(master, DRAWN)
        if how.startswith("SIG"):
            child.send_signal(signal.Signals[how])
        elif how == "q":
            os.write(master, b"q")
        else:
            os.close(master)
        assert child.wait(LONG_S) == (0 if how == "q" else 130)


def test_without_a_utf_8_locale_only_ascii_is_drawn() -> None:
    with in_terminal(SCRIPT, LC_ALL="C") as (child, master):
        drawn = read_until(master, DRAWN)
        assert drawn.isascii()
        assert b"|" in drawn
        os.write(master, b"q")
        assert child.wait(LONG_S) == 0


def test_a_hang_up_that_sends_signals_leaves_no_process() -> None:
    with in_terminal(SCRIPT, "own terminal") as (child, master):
        read_until(master, DRAWN)
        os.close(master)
        assert child.wait(LONG_S) == 130


def test_undecodable_input_is_harmless() -> None:
    with in_terminal(SCRIPT) as (child, master):
        read_until(master, DRAWN)
        os.write(master, bytes(range(0x80, 0x100)))
        os.write(master, b"\x1b[200~A\xe9\t\r\x1b[201~q")
        assert child.wait(LONG_S) == 0

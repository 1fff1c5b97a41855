"""The screen in a real terminal that goes away."""

import os
import signal

import pytest

from tests.tui.terminals import in_terminal, read_until

SCRIPT = """
import sys
from tests.tui.views import FakeLoop, plan_ready
from tui.app import run
try:
    run(FakeLoop(view=plan_ready()))
except KeyboardInterrupt:
    sys.exit(130)
"""


DRAWN = b"PLAN READY"


@pytest.mark.parametrize("how", ["hang up", "SIGTERM", "q"])
def test_the_screen_ends_when(how: str) -> None:
    with in_terminal(SCRIPT) as (child, master):
        read_until(master, DRAWN)
        if how == "SIGTERM":
            child.send_signal(signal.SIGTERM)
        elif how == "q":
            os.write(master, b"q")
        else:
            os.close(master)
        assert child.wait(30) == (0 if how == "q" else 130)


def test_in_a_locale_without_utf_8_all_that_is_drawn_is_ascii() -> None:
    with in_terminal(SCRIPT, LC_ALL="C") as (child, master):
        drawn = read_until(master, DRAWN)
        assert drawn.isascii()
        assert b"|" in drawn
        os.write(master, b"q")
        assert child.wait(30) == 0

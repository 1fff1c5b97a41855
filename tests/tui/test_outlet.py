"""What is drawn reaches a terminal that takes it, and holds nobody up otherwise."""

import os
import threading
from collections.abc import Callable

from tui.outlet import MOST, Outlet

PIECE = "x" * 4096


def _read_until(end: int, words: bytes) -> bytes:
    found = b""
    while not found.endswith(words):
        found += os.read(end, 1 << 16)
    return found


def _stalled(caught_up: Callable[[], None]) -> tuple[Outlet, int]:
    """An outlet that was given more than a pipe takes that nobody reads."""
    read, write = os.pipe()
    outlet = Outlet(write, caught_up)
    for _ in range(3 * MOST):
        outlet.write(PIECE)
    return outlet, read


def test_pieces_are_written_in_their_order() -> None:
    read, write = os.pipe()
    outlet = Outlet(write, lambda: None)
    for letter in "abc":
        outlet.write(letter)
    outlet.close()
    assert os.read(read, 100) == b"abc"


def test_a_stalled_terminal_holds_nobody_up_and_is_drawn_anew_when_it_goes_on() -> None:
    caught_up = threading.Event()
    outlet, read = _stalled(caught_up.set)
    assert not caught_up.is_set()
    outlet.write("the end")
    drawn = _read_until(read, b"the end")
    assert len(drawn) < 2 * MOST * len(PIECE)
    assert caught_up.wait(60)
    outlet.close()


def test_a_terminal_that_is_gone_takes_all_that_is_drawn() -> None:
    outlet, read = _stalled(lambda: None)
    os.close(read)
    for _ in range(3 * MOST):
        outlet.write(PIECE)
    outlet.close()

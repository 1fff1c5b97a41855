"""Output reaches a terminal that accepts it, and blocks nothing otherwise."""

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tui.terminal_writer import MOST, TerminalWriter

PIECE = "x" * 4096
LONG_S = 300.0


def _read_until(end: int, expected: bytes) -> bytes:
    result = b""
    while not result.endswith(expected):
        assert select.select([end], [], [], LONG_S)[0], "nothing more is written"
        result += os.read(end, 1 << 16)
    return result


def _stalled(caught_up: Callable[[], None], *, blocking: bool = True) -> tuple[TerminalWriter, int]:
    """A writer that was given more than the capacity of an unread pipe."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, PIECE.encode())
    os.set_blocking(write, blocking)
    outlet = TerminalWriter(write, caught_up)
    outlet.write(PIECE)
    # Its thread has taken this piece and is writing it.
    deadline = time.monotonic() + LONG_S
    while outlet._pieces:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    for _ in range(3 * MOST):
        outlet.write(PIECE)
    return outlet, read


def test_pieces_are_written_in_their_order() -> None:
    read, write = os.pipe()
    outlet = TerminalWriter(write, lambda: None)
    for letter in "abc":
        outlet.write(letter)
    outlet.close()
    assert os.read(read, 100) == b"abc"


def test_a_stalled_terminal_blocks_nothing_and_is_redrawn_later() -> None:
    caught_up = threading.Event()
    outlet, read = _stalled(caught_up.set)
    assert not caught_up.is_set()
    outlet.write("the end")
    drawn = _read_until(read, b"the end")
    assert len(drawn) < 2 * MOST * len(PIECE)
    assert caught_up.wait(LONG_S)
    outlet.close()


def test_a_stalled_non_blocking_terminal_is_redrawn_later() -> None:
    caught_up = threading.Event()
    outlet, read = _stalled(caught_up.set, blocking=False)
    outlet.write("the end")
    _read_until(read, b"the end")
    assert caught_up.wait(LONG_S)
    outlet.close()


def test_output_to_a_vanished_terminal_is_discarded() -> None:
    outlet, read = _stalled(lambda: None)
    os.close(read)
    for _ in range(3 * MOST):
        outlet.write(PIECE)
    outlet.close()

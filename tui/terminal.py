"""Detect that the terminal has vanished, and handle signals."""

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Iterator

from control.cli.console import in_browser

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def vanished() -> bool:
    """Whether the terminal that keys come from is gone.

    Reading from a terminal that has hung up returns nothing, at once and forever, so
    that a reader would keep a whole core busy.
    """
    try:
        stdin = sys.stdin.fileno()
        if in_browser():
            return _hung_up(stdin)
        if os.isatty(stdin):
            termios.tcgetattr(stdin)
            return False
    except (OSError, ValueError, termios.error):
        return True
    return True


def _hung_up(pipe: int) -> bool:
    """Whether the other end of a pipe is closed."""
    poll = select.poll()
    poll.register(pipe, select.POLLHUP)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


@contextlib.contextmanager
def signals_end(leave: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Make the running event loop call `leave` on a signal that ends programs."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:
        loop.add_signal_handler(number, leave, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)

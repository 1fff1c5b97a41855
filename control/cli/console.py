"""The console: whether it can show a screen, who the operator is, and its signals."""

import contextlib
import getpass
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping


def can_show_screen() -> bool:
    """Whether all standard streams are terminals, or pipes to a browser's server."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return in_browser() or all(s.isatty() for s in streams)


def in_browser() -> bool:
    """Whether textual-serve has started this process for a browser."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


def operator() -> str:
    """Login name of the operator, for log and journal; the user id without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


@contextlib.contextmanager
def handling(handlers: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """A context in which signals call these functions; afterwards, all are as before."""

    def handler(call: Callable[[], None]) -> Callable[[int, object], None]:
        return lambda _number, _frame: call()

    before = {number: signal.signal(number, handler(call)) for number, call in handlers.items()}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def ended_like_ctrl_c() -> contextlib.AbstractContextManager[None]:
    """A context that SIGTERM and a closed terminal end as Ctrl-C does, so that it is tidied up."""
    return handling({signal.SIGTERM: _interrupt, signal.SIGHUP: _interrupt})


def _interrupt() -> None:
    raise KeyboardInterrupt

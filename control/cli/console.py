"""The console: whether it can show a screen, and who the operator is."""

import getpass
import os
import sys


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

"""Whether a screen can be shown, and who sits before it."""

import getpass
import os
import sys


def is_there() -> bool:
    """Whether stdin, stdout and stderr, which Textual draws on, are terminals.

    Or a browser's, which are pipes to its server.
    """
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return in_browser() or all(s.isatty() for s in streams)


def in_browser() -> bool:
    """Whether textual-serve has started this process for a browser."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


def operator() -> str:
    """Who approves, for log and journal: the login name, or the number without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"

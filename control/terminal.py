"""Whether a screen can be shown."""

import sys


def is_there() -> bool:
    """Whether stdin, stdout and stderr, which Textual draws on, are terminals."""
    return all(s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr))

"""Who sits at the terminal."""

import getpass
import os


def operator() -> str:
    """Who approves, for log and journal: the login name, or the number without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"

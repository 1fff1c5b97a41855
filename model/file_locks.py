"""Lock files: opened without following links, and waited for only so long."""

import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import IO, Final

POLL_S: Final = 0.02
"""Seconds between two attempts to get a lock."""


def locked_file(path: Path, wait_s: float = 0.0) -> IO[bytes] | None:
    """Open a file for reading and appending, create it if need be, and lock it.

    The kernel releases the lock however the process ends. Returns None where another process has
    held it for `wait_s` seconds. Raises OSError as `plain_file` does.
    """
    deadline_s = time.monotonic() + wait_s
    while True:
        file = os.fdopen(plain_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "a+b", buffering=0)
        if not _is_locked(file, deadline_s):
            file.close()
            return None
        # Another process may have removed or renamed the file before it was locked.
        if _is_at(path, file):
            return file
        file.close()


def is_held(path: Path) -> bool | None:
    """Whether a process holds the lock of a file; None where that cannot be known.

    Several may ask at once. There is nothing to know without the file.
    """
    try:
        handle = plain_file(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)
    return False


def plain_file(path: Path, flags: int) -> int:
    """Open a file; a pipe in its place does not block, and a link is not followed.

    New files belong to the user alone. Raises OSError, also where it is not a regular file.
    """
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_plain(path) from exc
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_plain(path)
    return handle


def _not_plain(path: Path) -> OSError:
    return OSError(errno.EINVAL, f"{path.name} is not a regular file; move it away")


def _is_locked(file: IO[bytes], deadline_s: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(POLL_S)
        except OSError:
            file.close()
            raise
        else:
            return True


def _is_at(path: Path, file: IO[bytes]) -> bool:
    """Whether the path still refers to this open file."""
    try:
        now = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(file.fileno()))

"""A process in a terminal that a test sits at, and may take away."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONG_S = 300.0
"""Only a test that has failed waits so long."""


@contextlib.contextmanager
def in_terminal(
    script: str, *arguments: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A Python script in a terminal, and the end of it that a person sits at.

    The child is in a session without terminal: a hang-up sends it no signal.
    """
    master, slave = pty.openpty()
    size = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    child = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, **size, **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield child, master
    finally:
        child.kill()
        child.wait()
        with contextlib.suppress(OSError):
            os.close(master)


def read_until(master: int, words: bytes) -> bytes:
    """What is drawn until these words are."""
    drawn, deadline = b"", time.monotonic() + LONG_S
    while words not in drawn:
        assert time.monotonic() < deadline, drawn[-2000:]
        if select.select([master], [], [], 0.2)[0]:
            drawn += os.read(master, 1 << 16)
    return drawn

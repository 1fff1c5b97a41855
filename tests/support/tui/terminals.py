"""A process in a terminal that a test reads, and may close."""

import contextlib
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.paths import ROOT

LONG_S = 300.0
"""Only a failing test waits so long."""


Terminal = AbstractContextManager[tuple[subprocess.Popen[bytes], int]]
"""A process in a terminal, and the end of the terminal that a person uses."""


def in_terminal(script: str, *arguments: str, **environment: str) -> Terminal:
    """A Python script in a terminal of 80 x 24 cells.

    The terminal does not control it: closing the terminal sends it no signal.
    """
    size = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    return started_in_terminal(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, **size, **environment},
    )


@contextlib.contextmanager
def started_in_terminal(
    command: Sequence[str], *, cwd: Path, env: dict[str, str], controlled: bool = False
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command in a terminal, which sends it SIGHUP on closing if it controls it."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=(lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0)) if controlled else None,
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
    """The output up to these words."""
    drawn, deadline = b"", time.monotonic() + LONG_S
    while words not in drawn:
        assert time.monotonic() < deadline, drawn[-2000:]
        if select.select([master], [], [], 0.2)[0]:
            drawn += os.read(master, 1 << 16)
    return drawn

"""A process in a terminal of its own, without a viewer."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

SIZE: Final = 50, 160
"""Lines and columns."""
LONG_S: Final = 120.0


class Terminal:
    """What is painted on it, and the keys that are typed."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._seen = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def press(self, keys: str) -> None:
        """Type these."""
        os.write(self._master, keys.encode())

    def until(self, words: str) -> float:
        """The time (`time.perf_counter`) at which these words have been painted."""
        deadline_s = time.monotonic() + LONG_S
        while words.encode() not in self._seen:
            if time.monotonic() > deadline_s or self.process.poll() is not None:
                raise TimeoutError(f"{words!r} was never painted")
            time.sleep(0.002)
        return time.perf_counter()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while self.process.poll() is None:
                if select.select([self._master], [], [], 0.1)[0]:
                    self._seen += os.read(self._master, 2**16)
                    del self._seen[: -(2**20)]


@contextlib.contextmanager
def terminal(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run a command in it; ended afterwards."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.terminate()
        process.wait()
        os.close(master)

"""A small file system and other clocks, in Linux namespaces, for commands under test."""

import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from model.closing import Closing
from tests.support.cli_offline import RUN_S

_MAPPED: Final = "--map-root-user"
"""Without the rights of root, namespaces need one of users."""
_BLOCK: Final = bytes(65_536)


def unshared(*options: str) -> list[str]:
    """The command that runs another one in namespaces of its own; skips where that is forbidden."""
    for users in ([], [_MAPPED]):
        command = ["unshare", *users, *options]
        try:
            tried = subprocess.run([*command, "true"], capture_output=True, check=False)
        except FileNotFoundError:
            break
        if tried.returncode == 0:
            return command
    pytest.skip(f"this machine does not allow unshare {' '.join(options)}")


class SmallMount(Closing):
    """A file system of so many bytes on a folder, which only commands with `prefix` see."""

    def __init__(self, folder: Path, size: int) -> None:
        folder.mkdir()
        self._folder = folder
        script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec sleep infinity'
        self._unshared = unshared("--mount")
        order = [*self._unshared, "sh", "-c", script, "sh", str(size), str(folder)]
        self._holder = subprocess.Popen(order, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "mounted\n"

    @property
    def path(self) -> Path:
        """The mounted folder, as other processes see it."""
        return Path(f"/proc/{self._holder.pid}/root{self._folder}")

    @property
    def prefix(self) -> tuple[str, ...]:
        """What enters the namespace, and the folder above, before a command."""
        users = ("--user", "--preserve-credentials") if _MAPPED in self._unshared else ()
        here = f"--wd={self._folder.parent}"
        return ("nsenter", f"--target={self._holder.pid}", "--mount", *users, here)

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.path / "filler").open("ab", buffering=0) as filler:
            for size in (len(_BLOCK), 1):
                try:
                    while True:
                        filler.write(_BLOCK[:size])
                except OSError:
                    continue

    def free(self) -> None:
        """Undo `fill`."""
        (self.path / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the file system; its content is lost."""
        self._holder.kill()
        self._holder.communicate(timeout=RUN_S)


def stepped_clock(seconds: int) -> tuple[str, ...]:
    """What steps the clocks since the machine's start, before a command that begins then.

    Linux has no namespace for the time of day, and sets no clock to before the machine's start:
    one that has just started steps back by half of its uptime.
    """
    seconds = max(seconds, -int(time.monotonic() / 2))
    clocks = (f"--monotonic={seconds}", f"--boottime={seconds}")
    return tuple(unshared("--time", "--fork", "--kill-child", *clocks))

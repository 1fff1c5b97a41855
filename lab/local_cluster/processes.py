"""Child processes of a lab: detached from the terminal, and always cleaned up."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Final, cast

from lab.local_cluster import reaper
from model.errors import ExecutionStopped

_CLEAN_UP_S: Final = 20
_log = logging.getLogger("plimsoll.lab")
_SOURCE: Final = Path(__file__).parents[2]
"""Folder of the packages, so that children import the same ones."""


class Processes:
    """Start and end child processes that work in one folder; thread-safe.

    Each child leads a session of its own, so that Ctrl-C in the terminal does not
    reach it, and carries the mark by which the reaper finds it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = Lock()
        self._closed = False
        self._reaper = subprocess.Popen(
            [sys.executable, "-P", reaper.__file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def closed(self) -> bool:
        """Whether the lab was closed; no child can be started any more."""
        return self._closed

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of live children by name."""
        with self._lock:
            return {
                name: child.pid for name, child in self._children.items() if child.poll() is None
            }

    def spawn(
        self,
        name: str,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] = os.environ,
        piped: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start a child; append its output to its log.

        piped: make stdin and stdout pipes; only stderr goes to the log.

        Raises
        ------
        ExecutionStopped
            `close` was called.
        ValueError
            A child with this name is running.
        """
        with self._lock:
            if self._closed:
                raise ExecutionStopped("The local cluster was stopped.")
            if name in self._children and self._children[name].poll() is None:
                raise ValueError(f"{name} is already running")
            with self.log(name).open("ab") as log:
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if piped else log,
                    stderr=log,
                    env={**environ, reaper.MARK: str(self.folder)},
                    start_new_session=True,
                )
            self._children[name] = child
        return child

    def spawn_module(self, name: str, module: str) -> tuple[IO[bytes], IO[bytes]]:
        """Start a module of plimsoll; return pipes to its stdin and from its stdout.

        The caller closes the second one.
        """
        paths = [str(_SOURCE), os.environ.get("PYTHONPATH", "")]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-P", "-m", module]
        child = self.spawn(name, command, environ=environ, piped=True)
        return cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)

    def exit_code(self, name: str) -> int | None:
        """Exit code of a child; None while it is running."""
        return self._children[name].poll()

    def kill(self, name: str) -> None:
        """Kill a child with SIGKILL; nothing happens if it has ended."""
        child = self._children[name]
        child.kill()
        child.wait()
        _close(child.stdin)

    def log(self, name: str) -> Path:
        """Log file of a child."""
        return self.logs / f"{name}.log"

    def log_tail(self, name: str, lines: int = 8) -> str:
        """The last lines of a child's log; empty if there is none."""
        try:
            text = self.log(name).read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def keep_logs(self, target: Path) -> Path:
        """Copy the logs to a folder that outlives the lab."""
        shutil.copytree(self.logs, target, dirs_exist_ok=True)
        return target

    def close(self) -> None:
        """Kill all children and let the reaper remove the folder; may be repeated."""
        with self._lock:
            self._closed = True
            children = list(self._children.values())
        for child in children:
            child.kill()
        for child in children:
            child.wait()
            _close(child.stdin)
        _close(self._reaper.stdin)
        try:
            self._reaper.wait(_CLEAN_UP_S)
        except subprocess.TimeoutExpired:
            _log.warning("%s has not been removed yet; the reaper will do so later", self.folder)
        # A concurrent start may have written files in the meantime.
        shutil.rmtree(self.folder, ignore_errors=True)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except BrokenPipeError:
            # Data was still buffered for a child that has ended.
            return

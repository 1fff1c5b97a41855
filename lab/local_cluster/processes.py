"""The child processes of one lab: apart from the terminal, and never left behind."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Final, cast

import psutil

from lab.local_cluster import reaper
from model.errors import ExecutionStopped

_CLEAN_UP_S: Final = 20
_log = logging.getLogger("plimsoll.lab")
_SOURCE: Final = Path(__file__).parents[2]
"""Where the packages lie, so that children find the same ones."""


class Processes:
    """Starts, knows and ends the children that work in one folder.

    Safe to use from several threads. Each child is the leader of a session of its
    own, so a terminal's Ctrl-C does not reach it, and carries the mark by which the
    reaper finds it.
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
        """Whether the lab was stopped: nothing can be started any more."""
        return self._closed

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the children that live, by name."""
        with self._lock:
            return {
                name: child.pid
                for name, child in self._children.items()
                if child.poll() is None
            }

    def spawn(
        self,
        name: str,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] = os.environ,
        piped: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start a child under a name; its output is appended to its log.

        With `piped`, stdin and stdout are pipes and only stderr goes to the log.
        Raises ExecutionStopped after `close`, ValueError where the name is in use.
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
        """Start one of the product's own modules: pipes to its stdin, from its stdout.

        Whoever reads the second one closes it.
        """
        paths = [str(_SOURCE), os.environ.get("PYTHONPATH", "")]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-P", "-m", module]
        child = self.spawn(name, command, environ=environ, piped=True)
        return cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)

    def exit_code(self, name: str) -> int | None:
        """How a child ended; None while it lives."""
        return self._children[name].poll()

    def kill(self, name: str) -> None:
        """End a child at once, as a power cut would; one that has ended stays so."""
        child = self._children[name]
        child.kill()
        child.wait()
        _close(child.stdin)

    def log(self, name: str) -> Path:
        """Where a child's output goes."""
        return self.logs / f"{name}.log"

    def log_tail(self, name: str, lines: int = 8) -> str:
        """The last lines of a child's output."""
        try:
            text = self.log(name).read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def memory_bytes(self) -> dict[str, int]:
        """Resident memory of the children that live, by name."""
        found = {}
        for name, pid in self.pids.items():
            try:
                found[name] = psutil.Process(pid).memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return found

    def keep_logs(self, target: Path) -> Path:
        """Copy the logs to where they outlive the lab."""
        shutil.copytree(self.logs, target, dirs_exist_ok=True)
        return target

    def close(self) -> None:
        """Kill all children and have the reaper remove the folder; may be repeated."""
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
            _log.warning(
                "%s has not been removed yet; the reaper will do so later", self.folder
            )
        # A concurrent start may have written files in the meantime.
        shutil.rmtree(self.folder, ignore_errors=True)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except BrokenPipeError:
            # Data was still buffered for a child that has ended.
            return

"""Messages between the lab and its load generators, one line of JSON each."""

import json
import sys
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Condition, Thread
from typing import IO, Any, Final

from lab.local_cluster.processes import Processes
from model.errors import ClusterUnreachable

Line = dict[str, Any]
"""One message: names to plain JSON values."""

_REPORT_S: Final = 0.5


def write_line(out: IO[bytes], line: Line) -> None:
    """Write a message and flush it."""
    out.write(json.dumps(line).encode() + b"\n")
    out.flush()


class Reports:
    """Writes a child's reports to stdout."""

    def __init__(self, report: Callable[[], Line]) -> None:
        self._report = report
        self._written_s = time.monotonic()

    def write(self, **totals: object) -> None:
        """Write a report, with these additions."""
        write_line(sys.stdout.buffer, {**self._report(), **totals})

    def write_due(self) -> None:
        """Write a report if the last one is half a second old."""
        if time.monotonic() - self._written_s >= _REPORT_S:
            self.write()
            self._written_s = time.monotonic()


Inbox = SimpleQueue[Line | None]
"""Messages; None when there are no more."""


def serve(run: Callable[[Line, Inbox], None]) -> None:
    """Pass the first message from stdin to `run`, with an inbox of all later ones."""
    inbox: Inbox = SimpleQueue()
    _read_aside(sys.stdin.buffer, inbox.put, lambda: inbox.put(None))
    if (order := inbox.get()) is not None:
        run(order, inbox)


class Worker:
    """A child process that exchanges messages with the lab."""

    def __init__(
        self, processes: Processes, name: str, module: str, on_line: Callable[[Line], None]
    ) -> None:
        self._processes = processes
        self._name = name
        self._on_line = on_line
        self._news = Condition()
        self._latest: Line | None = None
        self._ended = False
        self._stdin, answers = processes.spawn_module(name, module)
        _read_aside(answers, self._take, self._end)

    def tell(self, line: Line) -> None:
        """Send a message; if the child has ended, `wait` reports the error."""
        try:
            write_line(self._stdin, line)
        except (BrokenPipeError, ValueError):
            self._end()

    def wait(self, key: str, timeout_s: float) -> Line:
        """Wait for a message that has this key.

        Raises ClusterUnreachable: the child ended, or `timeout_s` seconds passed; has the end of
        its log.
        """
        with self._news:
            self._news.wait_for(lambda: self._ended or key in (self._latest or {}), timeout_s)
            latest = self._latest or {}
            if key in latest:
                return latest
            state = "ended" if self._ended else f"sent nothing for {timeout_s:.0f} s"
        raise ClusterUnreachable(
            f"The {self._name} {state}; check whether its brokers are up. "
            f"End of its log: {self._processes.log_tail(self._name) or 'empty'}"
        )

    def kill(self) -> None:
        """Kill the child, without final totals."""
        self._processes.kill(self._name)

    def _take(self, line: Line) -> None:
        self._on_line(line)
        with self._news:
            self._latest = line
            self._news.notify_all()

    def _end(self) -> None:
        with self._news:
            self._ended = True
            self._news.notify_all()


def _read_aside(
    source: IO[bytes], on_line: Callable[[Line], None], on_end: Callable[[], None]
) -> None:
    """Read messages in a thread until the source ends, then close it."""

    def read() -> None:
        with source:
            for line in source:
                # A line truncated by a kill is not a message.
                if line.endswith(b"\n"):
                    on_line(json.loads(line))
        on_end()

    Thread(target=read, name="plimsoll-lines", daemon=True).start()

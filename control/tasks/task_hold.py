"""One worker's right to change a task: the task's lease, kept alive by a thread."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from executor.journal.lease import Lease
from executor.timing import Timing
from model.errors import ArchiveUnreachable, WriterBarred
from model.log_events import LogEvent, named

T = TypeVar("T")

PATIENCE_S: Final = 30.0
"""Seconds for which a worker waits for a bucket that is away."""
AGAIN_S: Final = 1.0
"""Seconds between two attempts."""
_REAL_TIME: Final = Timing()
_log = logging.getLogger("plimsoll.control")


class TaskHold:
    """One worker's right to change a task: its lease, kept alive by a thread.

    Without a lease, as without an archive, every change is allowed.
    """

    def __init__(self, lease: Lease | None = None, timing: Timing = _REAL_TIME) -> None:
        self._lease = lease
        self._timing = timing
        self._using = threading.Lock()

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken the task over."""
        return self._lease is not None and self._lease.is_lost

    def need(self) -> None:
        """Ensure that a change made now ends within the lease.

        Raises WriterBarred where another process has the task, and ArchiveUnreachable where the
        lease cannot be renewed at the moment.
        """
        if self._lease is None:
            return
        with self._using:
            try:
                self._lease.need()
            except WriterBarred as exc:
                away = exc.__cause__ is None or isinstance(exc.__cause__, ArchiveUnreachable)
                if self._lease.is_lost or not away:
                    raise
                raise ArchiveUnreachable(str(exc)) from exc

    def patiently(self, call: Callable[[], T]) -> T:
        """Call, and again for up to `PATIENCE_S` while the bucket is away; raises as the call."""
        end_s = self._timing.steady_s() + PATIENCE_S
        while True:
            try:
                return call()
            except ArchiveUnreachable as exc:
                if self._timing.steady_s() >= end_s:
                    raise
                _log.debug("%s", exc, extra=named(LogEvent.TASK_FAILED))
                self._timing.pause(AGAIN_S)

    @contextlib.contextmanager
    def renewed(self, every_s: float | None) -> Iterator[None]:
        """Renew the lease from a thread; None: from none, for clocks of tests."""
        if every_s is None:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(
            target=self._renew, args=(every_s, ended), name="task lease", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _renew(self, every_s: float, ended: threading.Event) -> None:
        while not ended.wait(every_s):
            self.keep()

    def keep(self) -> None:
        """Renew the lease if it is due and possible."""
        if self._lease is not None:
            with self._using:
                self._lease.keep()


FREE: Final = TaskHold()
"""Of processes that do not work on the task, and of workers without an archive."""

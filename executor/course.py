"""Whether a run may start more of its moves, and why not."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from executor.ledger import Ledger
from executor.steering import Steering
from executor.timing import RunLimits, Timing
from model.errors import ClusterUnreachable, WriterBarred

STOPPED: Final = "stopped by the operator"
ABORTED: Final = "aborted by the operator"
_log = logging.getLogger("plimsoll.executor")


class Course:
    """What operator, cluster and lease let a run do; `health` gives a reason to stop.

    The first reason to start nothing further stays.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        steering: Steering,
        limits: RunLimits,
        timing: Timing,
        health: Callable[[], str | None],
    ) -> None:
        self._ledger = ledger
        self._steering = steering
        self._limits = limits
        self._timing = timing
        self._health = health
        self._answered_at_s = 0.0
        self._healthy_at_s = float("-inf")
        self.halted = ""
        """Why nothing further is started; empty while all is well."""
        self.barred = False
        """Whether moves under way are left as they are where they need a request."""
        self.is_lost = False
        """Whether the cluster has not answered for too long."""

    def begin(self) -> None:
        """The first move is about to be started."""
        self._answered_at_s = self._timing.now_s()

    def may_start(self, *, waiting: bool, flying: bool) -> bool:
        """Whether to start more; halts where operator or cluster say no.

        `waiting` and `flying`: whether moves do; an end that comes too late is none.
        """
        if self._steering.aborting and (waiting or flying):
            self._halt_for_abort()
        elif self._steering.stopping.is_set() and waiting:
            self.halt_for(STOPPED)
        now_s = self._timing.now_s()
        if self.halted or now_s - self._healthy_at_s < self._limits.health_s:
            return not self.halted
        with self.asking():
            if reason := self._health():
                self.halt_for(reason)
            self._healthy_at_s = now_s
        return self._healthy_at_s == now_s and not self.halted

    def halt_for(self, reason: str) -> None:
        """Start nothing further; the first reason stays."""
        if not self.halted:
            _log.info("the run stops: %s", reason)
            self.halted = reason
            self._ledger.stopping(reason)

    def _halt_for_abort(self) -> None:
        if self.halted == STOPPED:
            self.halted = ""
        self.halt_for(ABORTED)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A question to the cluster that may go without an answer for a while."""
        try:
            yield
        except ClusterUnreachable as exc:
            _log.debug("%s", exc)
            silent_s = self._timing.now_s() - self._answered_at_s
            if silent_s >= self._limits.unreachable_s:
                self.is_lost = True
                self.halt_for(f"no answer for {silent_s:.0f} s: {exc}")
        else:
            self._answered_at_s = self._timing.now_s()

    @contextmanager
    def barring(self) -> Iterator[None]:
        """Steps that may not be taken any more end the run, and not at once."""
        try:
            yield
        except WriterBarred as exc:
            self.barred = True
            self.halt_for(str(exc))

"""Whether a run may start more moves, and if not, why."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from executor.health.health_rules import BrokenStopRule
from executor.run.run_context import RunContext
from executor.run.run_events import Continued, Paused, RunEvent, Stopping
from model.errors import ClusterUnreachable, WriterBarred
from model.log_events import LogEvent, named
from model.stop_rules import Reaction, StopRule
from model.units import seconds_text

STOPPED: Final = "stopped by the operator"
ABORTED: Final = "aborted by the operator"
_PAUSED: Final = "paused by the operator"
_RESUME: Final = "plimsoll run --resume"
_log = logging.getLogger("plimsoll.executor")


class RunGate:
    """What the operator, the stop rules, the cluster and the journal let a run do.

    `health` returns the broken rules. The first reason to start nothing further is
    final; a pause ends once all rules have held for a while. The gate writes nothing:
    `take_events` returns what has changed.
    """

    def __init__(self, context: RunContext, health: Callable[[], Sequence[BrokenStopRule]]) -> None:
        self._journal = context.journal
        self._steering = context.steering
        self._limits = context.limits
        self._rules = context.limits.stop_rules
        self._timing = context.timing
        self._health = health
        self._events: list[RunEvent] = []
        self._answered_at_s = 0.0
        self._healthy_at_s = float("-inf")
        self.paused = ""
        """Why no moves are started for now; empty while the run is not paused."""
        self._paused_for: StopRule | None = None
        self._paused_at_s = 0.0
        self._broken_at_s = float("-inf")
        """When a rule that pauses the run was last broken."""
        self.halted = ""
        """Why no further moves are started; empty unless the run is ending."""
        self.barred = False
        """Whether requests are forbidden, so that in-flight moves are left alone."""
        self.is_lost = False
        """Whether the cluster has not answered for too long."""
        self.rolls_back = False
        """Whether completed moves are to be rolled back."""

    @property
    def cancelled_by(self) -> str:
        """Why in-flight moves are cancelled; completes "cancelled ..."."""
        return "since the run is rolled back" if self.rolls_back else "by the operator"

    @property
    def cancels(self) -> bool:
        """Whether in-flight moves are to be cancelled."""
        return self._steering.aborting or self.rolls_back

    def take_events(self) -> list[RunEvent]:
        """Return what has changed since the last call, oldest first."""
        events, self._events = self._events, []
        return events

    def begin(self) -> None:
        """Expect the cluster to answer from now on."""
        self._answered_at_s = self._timing.steady_s()

    def may_start(self, *, waiting: bool, in_flight: bool) -> bool:
        """Return whether to start more moves; halt or pause the run where not.

        `waiting` and `in_flight`: whether there are such moves. A stop or an abort that
        comes too late to change anything has no effect.
        """
        if self._journal.failure:
            # No request may go unjournalled; moves in flight need none.
            self.barred = True
            self.halt(self._journal.failure)
        if self._steering.aborting and (waiting or in_flight):
            if self.halted == STOPPED:
                self.halted = ""
            self.halt(ABORTED)
        elif self._steering.stopping.is_set() and waiting:
            self.halt(STOPPED)
        now_s = self._timing.steady_s()
        if self.halted or now_s - self._healthy_at_s < self._limits.health_s:
            return self._is_open
        with self.asking():
            self._react(self._health(), now_s)
            self._healthy_at_s = now_s
        return self._healthy_at_s == now_s and self._is_open

    @property
    def _is_open(self) -> bool:
        return not (self.halted or self.paused or self._steering.paused)

    def _react(self, broken: Sequence[BrokenStopRule], now_s: float) -> None:
        """Apply the most severe reaction to the broken rules."""
        by_reaction = {self.reaction(b): b for b in reversed(broken)}
        for final in (Reaction.ROLL_BACK, Reaction.STOP):
            if final in by_reaction:
                self.halt(by_reaction[final].reason, final)
                return
        holding = by_reaction.get(Reaction.PAUSE)
        if holding is not None:
            self._broken_at_s = now_s
        if self._steering.paused:
            self._pause(_PAUSED, None, now_s)
        elif holding is not None:
            self._pause(holding.reason, holding.rule, now_s)
        elif self.paused and now_s - self._broken_at_s >= self._rules.calm_s:
            _log.info("the run continues", extra=named(LogEvent.RUN_STATE))
            self.paused = ""
            self._events.append(Continued())

    def reaction(self, broken: BrokenStopRule) -> Reaction:
        """Return the configured reaction; rules on the plan itself cannot be off."""
        configured = self._rules.reaction(broken.rule)
        if broken.is_own and configured is Reaction.OFF:
            return Reaction.STOP
        return configured

    def _pause(self, reason: str, rule: StopRule | None, now_s: float) -> None:
        if not self.paused or rule is not self._paused_for:
            _log.info("the run pauses: %s", reason, extra=named(LogEvent.RUN_STATE))
            self.paused, self._paused_for, self._paused_at_s = reason, rule, now_s
            self._events.append(Paused(reason))
        limit_s = self._rules.pause_limit_s
        endless = rule is None or rule is StopRule.WINDOW
        if not endless and now_s - self._paused_at_s >= limit_s:
            self.halt(f"{self.paused}; not better after {seconds_text(limit_s)}")

    def halt(self, reason: str, how: Reaction = Reaction.STOP) -> None:
        """Start nothing further; only the first reason counts."""
        if not self.halted:
            _log.info("the run stops: %s", reason, extra=named(LogEvent.RUN_STATE))
            self.halted = reason
            self.rolls_back = how is Reaction.ROLL_BACK
            self._events.append(Stopping(reason))

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Tolerate a cluster that does not answer, for up to `unreachable_s`."""
        try:
            yield
        except ClusterUnreachable as exc:
            _log.debug("%s", exc, extra=named(LogEvent.RUN_UNANSWERED))
            silent_s = self._timing.steady_s() - self._answered_at_s
            if silent_s >= self._limits.unreachable_s:
                self.is_lost = True
                self.halt(f"no answer for {silent_s:.0f} s: {exc}")
        else:
            self._answered_at_s = self._timing.steady_s()

    @contextmanager
    def barring(self) -> Iterator[None]:
        """End the run in good order where requests may no longer be sent."""
        try:
            yield
        except WriterBarred as exc:
            self.barred = True
            reason = str(exc)
            if _RESUME not in reason:
                reason = f"{reason}; continue with {_RESUME} once that is possible again"
            self.halt(reason)

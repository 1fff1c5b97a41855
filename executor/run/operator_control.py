"""Requests of the operator to a run in progress."""

import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from model.units import rate_text

_MOST_RECORDED: Final = 1000
"""Log lines kept; nobody takes them where a run has no log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRate:
    """A throttle rate requested by the operator."""

    bytes_per_s: int | None
    """Bytes per second; None follows what clients leave free."""
    answer: str | None = None
    """Why it is not in force; empty if it is, None until the run has reacted."""


class Steering:
    """The operator's requests, from any thread or signal handler; the run polls them.

    Stopping and aborting are final; pausing is not.
    """

    def __init__(self, by: str = "", operator: str = "") -> None:
        """Start without requests.

        `by`: who approved the run. `operator`: who steers it, by default the same.
        """
        self.by = by
        """Who approved the run, for its journal."""
        self._operator = operator or by
        self._recorded: deque[str] = deque(maxlen=_MOST_RECORDED)
        self.stopping = threading.Event()
        """Set to start nothing further; also by `abort` and `leave`."""
        self.stopped_by = ""
        """Who has stopped or aborted it, where that was said."""
        self.leaving = False
        """Whether the run stops only because this process ends; whoever resumes it may."""
        self.paused = False
        """Whether to start no moves for now."""
        self.aborting = False
        """Whether to cancel in-flight moves."""
        self.asked: AskedRate | None = None
        """The most recently requested rate and its outcome."""
        self._rates: deque[int | None] = deque()

    def pause(self) -> None:
        """Start no moves until `resume`; in-flight moves continue."""
        self._act("pause the run")
        self.paused = True

    def resume(self) -> None:
        """End a pause."""
        self._act("resume the run")
        self.paused = False

    def stop(self, by: str = "") -> None:
        """Start no further moves, and wait for in-flight ones; by: who wants it."""
        self.stopped_by = by or self.stopped_by
        if not self.stopping.is_set():
            self._act("stop the run after in-flight moves")
        self.stopping.set()

    def leave(self) -> None:
        """As `stop`, because this process ends and not because anyone wants the run to stop."""
        if not self.stopping.is_set():
            self._act("quit; the run stops after in-flight moves")
            self.leaving = True
        self.stopping.set()

    def abort(self, by: str = "") -> None:
        """Start no further moves, and cancel in-flight ones where the platform can.

        by: as for `stop`.
        """
        self.stopped_by = by or self.stopped_by
        self._act("abort the run and cancel in-flight moves")
        self.aborting = True
        self.stopping.set()

    def throttle(self, bytes_per_s: int | None) -> None:
        """Request another throttle rate in bytes per second; None follows clients."""
        rate = "auto" if bytes_per_s is None else rate_text(bytes_per_s)
        self._act(f"change the throttle to {rate}")
        self.asked = AskedRate(bytes_per_s=bytes_per_s)
        self._rates.append(bytes_per_s)

    def answer(self, reason: str) -> None:
        """Record why the newest rate is not in force; "" means that it is."""
        if self.asked is not None:
            self.asked = replace(self.asked, answer=reason)

    def asked_rates(self) -> list[int | None]:
        """Rates requested since the last call, in order."""
        return [self._rates.popleft() for _ in range(len(self._rates))]

    def record(self, line: str) -> None:
        """Keep a line for the log."""
        self._recorded.append(line)

    def recorded(self) -> list[str]:
        """Log lines since the last call: actions of the operator and of rules."""
        return [self._recorded.popleft() for _ in range(len(self._recorded))]

    def _act(self, action: str) -> None:
        # A signal's handler may call this, so it takes no lock and writes nothing.
        self.record(f"{self._operator}: {action}" if self._operator else action)

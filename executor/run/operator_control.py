"""What the one who watches a run asks of it while it goes on."""

import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from model.units import rate_text

MOST_RECORDED: Final = 1000
"""Lines that wait for a log; nobody takes them where a run has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRate:
    """A rate that somebody asked for."""

    bytes_per_s: int | None
    """None follows what clients leave free."""
    answer: str | None = None
    """Why it is not in force; empty where it is, None while nobody has looked."""


class Steering:
    """Asked from any thread, also from a signal's handler; a run looks at it.

    To stop or abort is final; a pause is not.
    """

    def __init__(self, by: str = "", operator: str = "") -> None:
        """operator: who steers the run; may be another than who approved it."""
        self.by = by
        """Who approved the run, for its journal."""
        self._operator = operator or by
        self._recorded: deque[str] = deque(maxlen=MOST_RECORDED)
        self.stopping = threading.Event()
        """Set to start nothing further; also by `abort`."""
        self._paused = False
        self._aborting = False
        self._rates: deque[int | None] = deque()
        self._asked: AskedRate | None = None

    @property
    def paused(self) -> bool:
        """Whether nothing is to be started for now."""
        return self._paused

    @property
    def aborting(self) -> bool:
        """Whether what runs is to be cancelled."""
        return self._aborting

    def pause(self) -> None:
        """Start nothing until `go_on`; what runs goes on."""
        self._act("pause the run")
        self._paused = True

    def resume(self) -> None:
        """End a pause."""
        self._act("resume the run")
        self._paused = False

    def stop(self) -> None:
        """Start nothing further, and let what runs finish."""
        if not self.stopping.is_set():
            self._act("stop the run after in-flight moves")
        self.stopping.set()

    def abort(self) -> None:
        """Start nothing further, and cancel what runs where the platform can."""
        self._act("abort the run and cancel in-flight moves")
        self._aborting = True
        self.stopping.set()

    def throttle(self, bytes_per_s: int | None) -> None:
        """Let moves copy at another rate; None follows what clients leave free."""
        rate = "auto" if bytes_per_s is None else rate_text(bytes_per_s)
        self._act(f"change the throttle to {rate}")
        self._asked = AskedRate(bytes_per_s=bytes_per_s)
        self._rates.append(bytes_per_s)

    @property
    def asked(self) -> AskedRate | None:
        """The newest rate that was asked for, and what came of it."""
        return self._asked

    def answer(self, reason: str) -> None:
        """Say why the newest rate is not in force, or with no words that it is."""
        if self._asked is not None:
            self._asked = replace(self._asked, answer=reason)

    def asked_rates(self) -> list[int | None]:
        """What `throttle` asked for since the last call, in order."""
        return [self._rates.popleft() for _ in range(len(self._rates))]

    def record(self, line: str) -> None:
        """Keep a line for the log."""
        self._recorded.append(line)

    def recorded(self) -> list[str]:
        """Lines for the log since the last call: what the operator and rules did."""
        return [self._recorded.popleft() for _ in range(len(self._recorded))]

    def _act(self, action: str) -> None:
        # A signal's handler may call this, so it takes no lock and writes nothing.
        self.record(f"{self._operator}: {action}" if self._operator else action)

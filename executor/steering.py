"""What the one who watches a run asks of it while it goes on."""

import threading
from collections import deque
from dataclasses import dataclass, replace


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

    def __init__(self, by: str = "") -> None:
        self.by = by
        """Who approved the run; stands in its journal."""
        self.stopping = threading.Event()
        """Nothing further is to be started; also set by `abort`."""
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
        self._paused = True

    def go_on(self) -> None:
        """End a pause."""
        self._paused = False

    def stop(self) -> None:
        """Start nothing further, and let what runs finish."""
        self.stopping.set()

    def abort(self) -> None:
        """Start nothing further, and cancel what runs where the platform can."""
        self._aborting = True
        self.stopping.set()

    def throttle(self, bytes_per_s: int | None) -> None:
        """Let moves copy at another rate; None follows what clients leave free."""
        self._asked = AskedRate(bytes_per_s=bytes_per_s)
        self._rates.append(bytes_per_s)

    @property
    def asked(self) -> AskedRate | None:
        """The newest rate that was asked for, and what came of it."""
        return self._asked

    def answer(self, words: str) -> None:
        """Say why the newest rate is not in force, or with no words that it is."""
        if self._asked is not None:
            self._asked = replace(self._asked, answer=words)

    def asked_rates(self) -> list[int | None]:
        """What `throttle` asked for since the last call, in order."""
        return [self._rates.popleft() for _ in range(len(self._rates))]

"""What the one who watches a run asks of it while it goes on."""

import threading
from collections import deque


class Steering:
    """Asked from any thread, also from a signal's handler; a run looks at it.

    To stop or abort is final; a pause is not.
    """

    def __init__(self) -> None:
        self.stopping = threading.Event()
        """Nothing further is to be started; also set by `abort`."""
        self._paused = False
        self._aborting = False
        self._rates: deque[int | None] = deque()

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
        self._rates.append(bytes_per_s)

    def asked_rates(self) -> list[int | None]:
        """What `throttle` asked for since the last call, in order."""
        return [self._rates.popleft() for _ in range(len(self._rates))]

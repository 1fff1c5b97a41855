"""What the one who watches a run asks of it while it goes on."""

import threading


class Steering:
    """Asked from any thread, also from a signal's handler; a run looks at it.

    To stop or abort is final; a pause is not.
    """

    def __init__(self) -> None:
        self.stopping = threading.Event()
        """Nothing further is to be started; also set by `abort`."""
        self._paused = False
        self._aborting = False

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

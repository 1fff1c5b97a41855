"""How many moves run at once: more while they go well, half as many when not."""

from dataclasses import replace
from statistics import median
from typing import Final

from executor.timing import RunLimits
from model.plan.plan import Move
from model.snapshot.snapshot import StorageKind

_FIRST: Final = 8
"""Moves at once until some have shown how it goes."""
GOOD_S: Final = 3.0
"""Median time of a move on shared storage up to which more may run (the pace that
AutoMQ's own drain takes; AutoMQ, PR 3509)."""
_WORTH: Final = 1.05
"""By how much more has to be copied in a second for it to be worth more copies."""


class Concurrency:
    """The limits in force, between one move and those given.

    On shared storage the time of a move tells how busy the cluster is. That of a copy
    tells how long the log is; more of those may run while more is copied in all.
    """

    def __init__(self, most: RunLimits) -> None:
        self._most = most
        self._now = min(_FIRST, most.moves_in_flight)
        self._round: list[float] = []
        """Seconds of completed moves on shared storage in this round."""
        self._sizes: list[int] = []
        """Bytes of completed copies since `_since_s`."""
        self._since_s: float | None = None
        self._best = 0.0
        """Highest bytes per second of a round of copies."""

    @property
    def limits(self) -> RunLimits:
        """What holds now; what runs on one broker grows with the whole."""
        return self._limits_at(self._now)

    @property
    def widest(self) -> RunLimits:
        """What may come to hold at most."""
        return self._limits_at(self._most.moves_in_flight)

    def ended(self, move: Move, seconds: float, size: int, now_s: float) -> None:
        """One has ended; judged when as many have as may run at once.

        `seconds` it took, `size` is the bytes that it has copied.
        """
        if move.storage is StorageKind.SHARED:
            self._handed_over(seconds)
        else:
            self._copied(size, now_s)

    def _handed_over(self, seconds: float) -> None:
        self._round.append(seconds)
        if len(self._round) < self._now:
            return
        if median(self._round) <= GOOD_S:
            self._widen()
        else:
            self._now = max(1, self._now // 2)
        self._round.clear()

    def _copied(self, size: int, now_s: float) -> None:
        if self._since_s is None:
            self._since_s = now_s
            return
        self._sizes.append(size)
        if len(self._sizes) < self._now or now_s <= self._since_s:
            return
        rate = sum(self._sizes) / (now_s - self._since_s)
        if rate > _WORTH * self._best:
            self._best = rate
            self._widen()
        self._sizes.clear()
        self._since_s = now_s

    def _widen(self) -> None:
        self._now = min(2 * self._now, self._most.moves_in_flight)

    def _limits_at(self, now: int) -> RunLimits:
        grown = max(1, now // _FIRST)
        return replace(
            self._most,
            moves_in_flight=now,
            moves_per_broker=self._most.moves_per_broker * grown,
        )

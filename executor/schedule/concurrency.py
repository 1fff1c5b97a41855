"""How many moves run at once: doubled while they go well, halved when not."""

from dataclasses import replace
from statistics import median
from typing import Final

from executor.schedule.admission import is_leader_change
from executor.timing import RunLimits
from model.plan.plan import Move
from model.snapshot.snapshot import StorageKind

_FIRST: Final = 8
"""Moves in flight until the first results are known."""
GOOD_S: Final = 3.0
"""Median seconds of a move on shared storage up to which more may run (the pace of
AutoMQ's own drain; AutoMQ, PR 3509)."""
_WORTH: Final = 1.05
"""Factor by which total throughput must grow for more copies to be worthwhile."""


class Concurrency:
    """The current limits, between one move and the configured limits.

    On shared storage the duration of a move shows how busy the cluster is. The duration of a
    copy shows only the length of the log, so more copies run while total throughput grows.
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
        """The current limits; those per broker grow with the total."""
        return self._limits_at(self._now)

    @property
    def widest(self) -> RunLimits:
        """The widest limits that may be reached."""
        return self._limits_at(self._most.moves_in_flight)

    def ended(self, move: Move, seconds: float, size: int, now_s: float) -> None:
        """Count a completed move, and adjust the limits after each round of them.

        `seconds` it took, `size` bytes it copied, at `now_s` of the steady clock. Leader
        changes, which have a limit of their own, do not count.
        """
        if is_leader_change(move):
            return
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
            self._most, moves_in_flight=now, moves_per_broker=self._most.moves_per_broker * grown
        )

"""How many moves run at once: more while they go well, half as many when not."""

from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Final

from executor.timing import RunLimits
from model.plan import Move
from model.snapshot import StorageKind

_FIRST: Final = 8
"""Moves at once until some have shown how it goes."""
GOOD_S: Final = 3.0
"""Median time of a move on shared storage up to which more may run (the pace that
AutoMQ's own drain takes; AutoMQ, PR 3509)."""


class Concurrency:
    """The limits in force, between one move and those given.

    Only moves on shared storage widen them, whose time tells how busy the cluster is;
    that of a copy tells how long the log is.
    """

    def __init__(self, most: RunLimits) -> None:
        self._most = most
        self._now = min(_FIRST, most.moves_in_flight)
        self._round: list[float] = []

    @property
    def limits(self) -> RunLimits:
        """What holds now; what runs on one broker grows with the whole."""
        return self._limits_at(self._now)

    def widest(self, moves: Iterable[Move]) -> RunLimits:
        """What comes to hold at most while these run."""
        if any(move.storage is StorageKind.SHARED for move in moves):
            return self._limits_at(self._most.moves_in_flight)
        return self.limits

    def ended(self, move: Move, seconds: float) -> None:
        """One has ended; judged when as many have as may run at once."""
        if move.storage is not StorageKind.SHARED:
            return
        self._round.append(seconds)
        if len(self._round) < self._now:
            return
        if median(self._round) <= GOOD_S:
            self._now = min(2 * self._now, self._most.moves_in_flight)
        else:
            self._now = max(1, self._now // 2)
        self._round.clear()

    def _limits_at(self, now: int) -> RunLimits:
        grown = max(1, now // _FIRST)
        return replace(
            self._most,
            moves_in_flight=now,
            moves_per_broker=self._most.moves_per_broker * grown,
        )

"""How long a producer waited for acknowledgements."""

from collections import deque
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class AckStall:
    """A time in which records of a partition waited and none was acknowledged."""

    partition: int
    started_at_ms: int
    """Milliseconds since 1970."""
    duration_s: float

    @property
    def ended_at_ms(self) -> int:
        """Milliseconds since 1970; when it was told of, if it still went on."""
        return self.started_at_ms + round(1000 * self.duration_s)


_LEAST_STALL_S: Final = 0.05
"""Shorter waits are the normal latency of acknowledgements."""


class PartitionGaps:
    """The longest stall of one partition since it was last asked for.

    A partition nothing was sent to does not stall: the time runs from the last
    acknowledgement or from the sending of the oldest record still without one,
    whichever is later. Times are seconds of one clock.
    """

    def __init__(self) -> None:
        self._sent_at_s: deque[float] = deque()
        self._acknowledged_at_s = 0.0
        self._longest = (0.0, 0.0)

    def sent(self, now_s: float) -> None:
        """A record was handed to the client."""
        self._sent_at_s.append(now_s)

    def acknowledged(self, now_s: float) -> None:
        """The oldest record without one got its acknowledgement."""
        self._note(now_s)
        self._sent_at_s.popleft()
        self._acknowledged_at_s = now_s

    def gave_up(self) -> None:
        """The oldest record without an acknowledgement will never get one."""
        self._sent_at_s.popleft()

    def take(self, now_s: float) -> tuple[float, float] | None:
        """Begin and length of the longest stall since the last call, if worth telling.

        One that still goes on counts with what it has reached.
        """
        if self._sent_at_s:
            self._note(now_s)
        begin_s, length_s = self._longest
        self._longest = (0.0, 0.0)
        return (begin_s, length_s) if length_s >= _LEAST_STALL_S else None

    def _note(self, now_s: float) -> None:
        begin_s = max(self._acknowledged_at_s, self._sent_at_s[0])
        if now_s - begin_s > self._longest[1]:
            self._longest = (begin_s, now_s - begin_s)

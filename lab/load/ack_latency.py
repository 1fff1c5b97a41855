"""Stalls: how long a producer waited for acknowledgements."""

from collections import deque
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class AckStall:
    """A period in which records of a partition waited and none was acknowledged."""

    partition: int
    started_at_ms: int
    """Milliseconds since the epoch."""
    duration_s: float

    @property
    def ended_at_ms(self) -> int:
        """Milliseconds since the epoch; of the report, if the stall continued."""
        return self.started_at_ms + round(1000 * self.duration_s)


_LEAST_STALL_S: Final = 0.05
"""Shorter waits are the normal latency of acknowledgements."""


class PartitionGaps:
    """Longest stall of one partition since the last call of `take`.

    A stall starts at the last acknowledgement, or when the oldest record without one was sent,
    whichever is later; so an idle partition does not stall. Times are seconds of one clock.
    """

    def __init__(self) -> None:
        self._sent_at_s: deque[float] = deque()
        self._acknowledged_at_s = 0.0
        self._longest = (0.0, 0.0)

    def sent(self, now_s: float) -> None:
        """Count a record passed to the client."""
        self._sent_at_s.append(now_s)

    def acknowledged(self, now_s: float) -> None:
        """Count an acknowledgement of the oldest record without one."""
        self._note(now_s)
        self._sent_at_s.popleft()
        self._acknowledged_at_s = now_s

    def gave_up(self) -> None:
        """Give up the oldest record without an acknowledgement."""
        self._sent_at_s.popleft()

    def take(self, now_s: float) -> tuple[float, float] | None:
        """Start and length, in seconds, of the longest stall since the last call.

        None if shorter than 50 ms. A stall in progress counts up to now.
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

"""What the load generator writes: records that number themselves.

A value begins with its number within the partition as 8 bytes, big-endian, from 0;
the rest is filler. The numbers found by a reader therefore tell what was lost and
what was written twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

NUMBER_BYTES: Final = 8


def filler(record_bytes: int, seed: int) -> bytes:
    """The part after the number; it does not compress."""
    return Random(seed).randbytes(max(0, record_bytes - NUMBER_BYTES))


def number_of(value: bytes) -> int:
    """The number a value begins with."""
    return int.from_bytes(value[:NUMBER_BYTES], "big")


@dataclass(slots=True)
class Pacer:
    """How many records are due on each partition, at given rates.

    What could not be sent for long is forgotten rather than sent in one burst.
    """

    rates: list[float]
    """Records per second of each partition."""
    max_behind_s: float
    due: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.due = [0.0] * len(self.rates)

    def advance(self, seconds: float) -> list[int]:
        """Whole records that are due now, per partition, after this much time."""
        span_s = min(seconds, self.max_behind_s)
        whole = []
        for partition, rate in enumerate(self.rates):
            self.due[partition] += rate * span_s
            whole.append(int(self.due[partition]))
            self.due[partition] -= whole[-1]
        return whole


@dataclass(slots=True)
class Tally:
    """What one reader has seen of one partition."""

    next_number: int = 0
    """One more than the highest number seen."""
    next_offset: int = 0
    """Offsets below were counted; seen again they are a repeated delivery."""
    read: int = 0
    duplicated: int = 0
    missing: set[int] = field(default_factory=set)
    """Numbers that were passed over and have not turned up."""

    def see(self, offset: int, number: int) -> None:
        """Count one record."""
        if offset < self.next_offset:
            return
        self.next_offset = offset + 1
        self.read += 1
        if number >= self.next_number:
            self.missing.update(range(self.next_number, number))
            self.next_number = number + 1
        elif number in self.missing:
            self.missing.remove(number)
        else:
            self.duplicated += 1


def lost_count(tally: Tally, acknowledged: int, failed: Sequence[int]) -> int:
    """Acknowledged numbers of one partition that its reader never saw.

    `failed` are numbers whose sending ended in an error: seen or not, they count
    neither way.
    """
    last = acknowledged + len(failed)
    unseen = tally.missing | set(range(tally.next_number, last))
    return len(unseen - set(failed))

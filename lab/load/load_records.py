"""Numbered records, by which lost and duplicated ones are found.

A value starts with its number within the partition, from 0, as 8 bytes, big-endian; the
rest is filler.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

NUMBER_BYTES: Final = 8


def filler(record_bytes: int, seed: int) -> bytes:
    """Incompressible bytes after the number."""
    return Random(seed).randbytes(max(0, record_bytes - NUMBER_BYTES))


def number_of(value: bytes) -> int:
    """The number at the start of a value."""
    return int.from_bytes(value[:NUMBER_BYTES], "big")


@dataclass(slots=True)
class Pacer:
    """Number of records due on each partition at given rates.

    A backlog of more than `max_behind_s` seconds is dropped, not sent in one burst.
    """

    rates: list[float]
    """Records per second of each partition."""
    max_behind_s: float
    due: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.due = [0.0] * len(self.rates)

    def advance(self, seconds: float) -> list[int]:
        """Whole records due per partition after `seconds` more seconds."""
        span_s = min(seconds, self.max_behind_s)
        whole = []
        for partition, rate in enumerate(self.rates):
            self.due[partition] += rate * span_s
            whole.append(int(self.due[partition]))
            self.due[partition] -= whole[-1]
        return whole


@dataclass(slots=True)
class Tally:
    """Records of one partition as one consumer has read them."""

    next_number: int = 0
    """One more than the highest number read."""
    next_offset: int = 0
    """Smaller offsets have been counted; reading one again is a redelivery."""
    read: int = 0
    duplicated: int = 0
    missing: set[int] = field(default_factory=set)
    """Numbers that were skipped and have not appeared since."""

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
    """Count acknowledged records of one partition that were never read.

    failed: numbers whose sending ended in an error; these never count as lost.
    """
    last = acknowledged + len(failed)
    unseen = tally.missing | set(range(tally.next_number, last))
    return len(unseen - set(failed))


def failed_but_read_count(tally: Tally, failed: Sequence[int]) -> int:
    """Count records of one partition whose sending ended in an error, and which were read."""
    return sum(number < tally.next_number and number not in tally.missing for number in failed)

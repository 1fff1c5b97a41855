"""What a reader may use for one input: CPU time and memory by its bytes."""

import resource
import time
from collections.abc import Callable
from typing import Final

BASE_S: Final = 1.0
"""CPU seconds for any input: the first one imports what a reader needs."""
PER_BYTE_S: Final = 20e-6
"""The slowest readers need 2 us per byte, and up to ten times that under instrumentation."""
BASE_BYTES: Final = 64 << 20
PER_BYTE: Final = 2_000
"""Bytes of memory per byte: objects of a few hundred bytes for a character or two."""


class OverBudget(AssertionError):
    """A reader used more than an input of that size is worth."""


def within_budget(read: Callable[[bytes], bool], data: bytes) -> bool:
    """Read an input; whether it was accepted. Raises OverBudget, and as the reader does.

    Memory is that by which the process has grown beyond its largest size so far.
    """
    began_s, began = time.process_time(), _largest()
    accepted = read(data)
    took_s, grown = time.process_time() - began_s, _largest() - began
    if took_s > BASE_S + PER_BYTE_S * len(data):
        raise OverBudget(f"{took_s:.1f} s of CPU for {len(data)} bytes")
    if grown > BASE_BYTES + PER_BYTE * len(data):
        raise OverBudget(f"{grown >> 20} MiB for {len(data)} bytes")
    return accepted


def _largest() -> int:
    """The largest resident size of this process so far, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

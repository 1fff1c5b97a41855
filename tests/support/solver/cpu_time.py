"""CPU time, in seconds of the machine on which units of work were measured.

Processes that share a core's caches and units slow each other down, in CPU time, too.
"""

import time
from collections.abc import Callable
from typing import Final

import numpy as np

REFERENCE_S: Final = 0.03
"""CPU seconds of `_fixed_work` on that machine, otherwise idle."""


def scaled(measure: Callable[[], float]) -> float:
    """Return what `measure` returns, in CPU seconds, divided by how slow the machine is meanwhile.

    At least 1, judged by fixed work before and after it.
    """
    before = _slowness()
    found = measure()
    return found / max(1.0, before, _slowness())


def least_of(measure: Callable[[], float], enough: float) -> float:
    """Return the least of three measurements at most: the first compiles, others may wait."""
    result = scaled(measure)
    for _ in range(2):
        if result <= enough:
            break
        result = min(result, scaled(measure))
    return result


def _slowness() -> float:
    return min(_fixed_work() for _ in range(3)) / REFERENCE_S


def _fixed_work() -> float:
    """Return the CPU seconds of a fixed amount of sorting, counting and hashing."""
    begun_s = time.process_time()
    numbers = np.random.default_rng(1).random(400_000)
    for _ in range(3):
        np.sort(numbers)
    held: dict[int, int] = {}
    for i in range(100_000):
        held[i * 7919 % 100_003] = i
    total = 0
    for i in range(600_000):
        total += i & 7
    return time.process_time() - begun_s

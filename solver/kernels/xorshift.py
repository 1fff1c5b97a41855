"""A small pseudorandom generator for compiled loops: xorshift64*, Vigna, 2016."""

from typing import Any

import numpy as np

from solver.kernels.compiled import Array, compiled


@compiled
def draw(state: Array) -> int:
    """Return the next number below 2^31: the upper bits of a step.

    `state` is (1,) uint64, not 0, and is advanced.
    """
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    drawn: Any = np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33))
    return drawn


@compiled
def below(state: Array, n: int) -> int:
    """Return a random number from 0 to n - 1; advances `state` as `draw` does."""
    return (draw(state) * n) >> 31

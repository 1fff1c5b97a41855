"""A small generator of random numbers for compiled loops: xorshift64*, Vigna, 2016."""

from typing import Any

import numpy as np

from solver.kernels.compiled import Array, compiled


@compiled
def draw(state: Array) -> int:
    """The next of the numbers below 2^31, the upper bits of a step.

    Parameters
    ----------
    state
        (1,) uint64, not 0; moved on.
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
    """A number from 0 to n - 1; `state` as `draw` has it."""
    return (draw(state) * n) >> 31

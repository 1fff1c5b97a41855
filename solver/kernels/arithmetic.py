"""Exponentials, logarithms and random numbers, the same bits on every processor."""

from typing import Any

import numpy as np

from solver.kernels.compiled import Array, compiled

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634

NOISE = 4096
"""Number of quantiles that annealing draws from; a power of 2."""


@compiled
def draw(state: Array) -> int:
    """Return the next random number below 2^31: the upper bits of a step of xorshift64*.

    `state` is (1,) uint64, not 0, and is advanced. Vigna, 2016.
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
    """Return a random number from 0 to n - 1, for n from 1 to 2^31; advances `state` as `draw`."""
    return (draw(state) * n) >> 31


@compiled
def exponential(x: float) -> float:
    """Compute e^x for x <= 0 to 1e-15, by arithmetic alone; 0 below -700."""
    if x < -700.0:
        return 0.0
    n = np.floor(x * LOG2_E + 0.5)
    f = (x - n * LN2_HIGH) - n * LN2_LOW
    total = 1.0
    for k in range(14, 0, -1):
        total = 1.0 + f / k * total
    half = 1.0
    base = 0.5
    steps = int(-n)
    while steps > 0:
        if steps & 1:
            half *= base
        base *= base
        steps >>= 1
    return total * half if n <= 0 else total * 2.0


@compiled
def logarithm(x: float) -> float:
    """Compute ln x for x >= 1 by arithmetic alone, the same bits on every processor."""
    n = 0
    while x > 1.4142135623730951:
        x *= 0.5
        n += 1
    z = (x - 1.0) / (x + 1.0)
    square = z * z
    total = 0.0
    for k in range(23, 0, -2):
        total = total * square + 1.0 / k
    return n * LN2_HIGH + n * LN2_LOW + 2.0 * z * total


@compiled
def exponential_quantiles() -> Array:
    """Return (NOISE,) quantiles of the exponential distribution: -ln u at midpoints.

    u runs over the midpoints of equal parts of (0, 1). Drawn at random, they are the
    thresholds of annealing, without a logarithm per step.
    """
    found = np.empty(NOISE)
    for i in range(NOISE):
        found[i] = logarithm(NOISE / (i + 0.5))
    return found

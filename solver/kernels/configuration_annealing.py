"""Annealing over the configurations of a few rows, changing one to three rows at a time."""

import numpy as np

from solver.kernels.compiled import Array, compiled
from solver.kernels.node_bound import Configurations
from solver.kernels.smoothing import exponential
from solver.kernels.xorshift import below, draw

UNIT = 1.0 / 2.0**31

MOST = 3
"""Most rows changed at a time."""


@compiled
def _exchange(c: Configurations, v: Array, old: int, new: int) -> float:
    """Change a row's configuration; return the change of F."""
    change = c.price[new] - c.price[old]
    for z in range(c.used[old]):
        j, x = c.at[old, z], c.load[old, z]
        change -= (2.0 * v[j] - x) * x
        v[j] -= x
    for z in range(c.used[new]):
        j, x = c.at[new, z], c.load[new, z]
        change += (2.0 * v[j] + x) * x
        v[j] += x
    return change


@compiled
def value_of(c: Configurations, fixed: Array, chosen: Array, v: Array) -> float:
    """Compute F of `chosen`, (R,) indices of configurations; v, (J,), gets its deviations."""
    v[:] = fixed
    total = 0.0
    for r in range(len(chosen)):
        i = chosen[r]
        total += c.price[i]
        for z in range(c.used[i]):
            v[c.at[i, z]] += c.load[i, z]
    for j in range(len(v)):
        total += v[j] * v[j]
    return total


@compiled
def anneal_choice(
    c: Configurations,
    fixed: Array,
    start: Array,
    may: Array,
    chosen: Array,
    steps: int,
    hot: float,
    cooling: float,
    random: Array,
) -> float:
    """Anneal from a choice, (R,); leave the best one found there, and return its F.

    `fixed` is (J,) deviations from all other rows; `start`, (R + 1,), and `may`, (A,),
    list the configurations that each row may take. `hot` is the first temperature in
    units of F, and `cooling` its factor per step. `random` is (1,) uint64 and is
    advanced.
    """
    v = np.empty(len(fixed))
    value = value_of(c, fixed, chosen, v)
    now, least = chosen.copy(), value
    rows, before = np.empty(MOST, np.int64), np.empty(MOST, np.int64)
    t = hot
    for _ in range(steps):
        t *= cooling
        change = 0.0
        many = 1 + below(random, MOST)
        for k in range(many):
            r = below(random, len(now))
            i = may[start[r] + below(random, start[r + 1] - start[r])]
            rows[k], before[k] = r, now[r]
            change += _exchange(c, v, now[r], i)
            now[r] = i
        if change <= 0.0 or exponential(-change / t) > draw(random) * UNIT:
            value += change
            if value < least:
                least = value
                chosen[:] = now
        else:
            for k in range(many - 1, -1, -1):
                _exchange(c, v, now[rows[k]], before[k])
                now[rows[k]] = before[k]
    return value_of(c, fixed, chosen, v)

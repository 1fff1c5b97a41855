"""A start from coarse to fine, where large partitions decide how good a plan can be.

The largest partitions are annealed first, over all brokers at once; then smaller ones join, at a
lower temperature each time. If all are free at once, large ones settle before small ones can
fill in around them. Sizes are relative to the root of a move's cost, the load whose square is as
much as a move, and temperatures to that cost: so the steps are as likely whatever the cost is.
"""

from typing import Final

import numpy as np

from solver.kernels.problem_arrays import NO_BUDGET, Columns
from solver.search.neighbourhoods import Arm

LEVELS: Final = (
    (0.25, 0.2, 0.02, 10),
    (0.38, 0.25, 0.03, 10),
    (0.63, 0.3, 0.04, 8),
    (0.95, 0.4, 0.05, 6),
    (1.6, 0.5, 0.1, 4),
    (3.2, 1.0, 0.1, 2),
)
"""Levels from fine to coarse: the size of the smallest partition, relative to the root of a move's
cost; the initial and the final temperature, in costs of a move; and the share of the steps."""

COARSEST: Final = 0.25
"""Load of the smallest partition of the coarsest level at most, as a share of the largest."""

STEPS_PER_ROW: Final = 20_000
"""Steps per row of the finest level that one pass is worth; more go into further passes."""

MOST_PASSES: Final = 6
"""Passes from home at most."""


LEAST_BROKERS: Final = 16
"""With fewer brokers, the branch and bound over large partitions needs the budget: it often proves
their places."""


def starts_coarse(c: Columns) -> bool:
    """Return whether a start from coarse to fine is worth trying.

    With one replica per row and `LEAST_BROKERS`. Not with budgets, which annealing over all brokers
    spends on moves that gain less than others.
    """
    many = len(c.scale) >= LEAST_BROKERS and c.home.shape[1] == 1
    return many and not (c.budgets != NO_BUDGET).any()


def levels(c: Columns, price: float, steps: int) -> list[Arm]:
    """Settings of the annealings of one pass, the coarsest first, of about `steps` steps in all.

    `price` is the median cost of a move, in units of F. Beyond the last of `LEVELS`, sizes double
    and temperatures grow by four while sizes are at most `COARSEST`.
    """
    unit = float(np.sqrt(price / c.weight.max(initial=0.0))) if c.weight.any() else 1.0
    largest = float(c.lead[c.free].max(initial=0.0))
    found = list(LEVELS)
    while 2.0 * found[-1][0] * unit <= COARSEST * largest:
        size, hot, cold, share = found[-1]
        found.append((2.0 * size, 4.0 * hot, 4.0 * cold, share))
    shares = sum(share for *_, share in found)
    return [
        Arm(
            reduced_cost=None,
            size=size * unit,
            brokers=len(c.scale),
            hot=hot,
            cold=cold,
            most_steps=max(1, steps * share // shares),
        )
        for size, hot, cold, share in reversed(found)
    ]


def passes(c: Columns, price: float, steps: int) -> tuple[int, int]:
    """Return how many passes of `levels` to make, at least 1, and the steps of each.

    All passes take up to `steps` steps; fewer where more passes or steps are not worth it.
    `price` is the median cost of a move, in units of F.
    """
    finest = levels(c, price, 1)[-1].size or 0.0
    rows = int((c.lead[c.free].max(axis=1, initial=0.0) >= finest).sum())
    enough = STEPS_PER_ROW * max(1, rows)
    count = min(MOST_PASSES, max(1, steps // enough))
    return count, min(steps // count, 2 * enough)

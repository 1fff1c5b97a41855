"""Rounding of the relaxed placement by diving: large rows become whole first.

A large row that becomes whole leaves brokers off by up to its own load. The smaller rows make up
for that while they may still be split, so the relaxation of these is improved after each level of
sizes. Rounded all at once, the same relaxation leaves some brokers off by a quarter.

Diving: Berthold, Primal heuristics for mixed integer programs, 2006, section 2.
"""

from typing import Final

import numpy as np

from solver.kernels.relaxation import make_whole
from solver.search.dual import Relaxation, warm_up

RATIO: Final = 0.8
"""Load of the smallest row of a level over that of the level before."""

SMALLEST: Final = 0.01
"""Load, as a share of a broker's mean, below which all rows become whole together."""

FIRST_SWEEPS: Final = 6
"""Sweeps before the first level: prices that prove a bound leave deviations."""

SWEEPS: Final = 2
"""Sweeps over the rows that are left, after each level."""


def dive(r: Relaxation, work: float) -> None:
    """Make all rows whole, for rows with one replica; updates the masses and deviations.

    Takes up to about `work` work units. What is left when they are spent, or when the observer
    asks to stop, becomes whole without sweeps.
    """
    end, rows = r.work + work, r.rows
    size = r.columns.lead.max(axis=1, initial=0.0)
    warm_up(r, work, FIRST_SWEEPS)
    left, least = rows, float(size[rows].max(initial=0.0))
    while len(left):
        least = RATIO * least if least > SMALLEST and r.work < end and not r.stops() else 0.0
        level = left[size[left] >= least]
        make_whole(
            r.columns, r.masses, r.v, level[np.argsort(-size[level], kind="stable")], r.scratch
        )
        left = left[size[left] < least]
        if len(left):
            r.rows = left
            warm_up(r, end - r.work, SWEEPS)
    r.rows = rows

"""Where rows with one replica may be in a plan better than the incumbent."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.pricing import least_with
from solver.kernels.problem_arrays import Columns, sum_loads_at
from solver.search.dual import Relaxation
from solver.search.search import Search

MOST_CHOICES: Final = 1_000_000
"""Rows x brokers up to which a better bound than that of prices is tried."""

WORK_PER_OPERATION: Final = 3e-9
"""Work units for one operation of the bounds over these choices."""

SLACK: Final = 1e-9
"""Allowance for rounding in a bound or a reduced cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoices:
    """R rows that have a choice, and what is decided besides; rows by position."""

    rows: Ints
    """(R,) rows of the columns."""
    cost: Floats
    """(R, B) cost of each row on each broker; infinite where it is ruled out."""
    between: Floats
    """(R,) mean of a row's priced cost on its cheapest and second cheapest broker."""
    fixed: Floats
    """(B, K) deviations from all other rows."""
    decided: float
    """Cost of what other rows do, less the refund of forced moves and what budgets give back."""


def has_choices(c: Columns, r: Relaxation) -> bool:
    """Return whether every row has a single replica and the choices are few enough.

    There must be 1 to `MOST_CHOICES` pairs of row and broker, two brokers or more, and a
    balanced dimension.
    """
    single = c.home.shape[1] == 1 and bool((c.rf == 1).all())
    small = 0 < len(r.rows) * len(c.scale) <= MOST_CHOICES
    return single and small and len(c.weight) > 0 and len(c.scale) > 1


def find_choices(search: Search, c: Columns, r: Relaxation) -> RowChoices:
    """Find the rows for which reduced costs leave more than one broker.

    A broker is left out where its cost at the relaxation's prices exceeds the row's
    least by more than the gap between F and bound, so no better plan can use it. The
    relaxation must be solved, and `has_choices` hold; without an incumbent no broker that
    rules allow is left out.
    """
    cost, same = (np.empty((len(r.rows), len(c.scale))) for _ in range(2))
    least_with(c, np.zeros(c.scale.T.shape), r.rows, same, cost, r.scratch)
    priced = cost.copy()
    for d in range(len(c.weight)):
        priced += c.lead[r.rows, d][:, None] * (c.scale[:, d] * r.prices[:, d])
    refund = float(search.problem.costs.refund.sum()) + r.given_back
    within = search.objective + refund - r.bound + SLACK
    cost[priced - priced.min(axis=1)[:, None] > within] = np.inf
    may = np.isfinite(cost)
    open_ = may.sum(axis=1) > 1
    at: Ints = may.argmax(axis=1)
    others = np.ones(len(c.home), np.bool_)
    others[r.rows] = False
    done = ~open_
    fixed = sum_loads_at(c, np.flatnonzero(others), c.home[others]) - c.holding[:, None]
    lowest = np.sort(priced[open_], axis=1)
    return RowChoices(
        rows=r.rows[open_],
        cost=cost[open_],
        between=(lowest[:, 0] + lowest[:, 1]) / 2.0,
        fixed=fixed + sum_loads_at(c, r.rows[done], at[done, None]),
        decided=sum(cost[done].min(axis=1).tolist()) - refund,
    )

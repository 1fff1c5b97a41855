"""Where rows with one replica may be in a plan better than the incumbent."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.broker_subproblems import choice_costs
from solver.kernels.problem_arrays import Columns
from solver.search.dual import Relaxation
from solver.search.search import Search

MOST_CHOICES: Final = 1_000_000
"""Rows x brokers up to which a better bound than that of prices is tried."""

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
    """Cost of what other rows do, less the refund of forced moves."""


def has_choices(c: Columns, r: Relaxation) -> bool:
    """Return whether every row has a single replica and the choices are few enough.

    At most `MOST_CHOICES` pairs of row and broker, on two brokers or more, with
    something to balance.
    """
    single = c.home.shape[1] == 1 and bool((c.rf == 1).all())
    small = 0 < len(r.rows) * len(c.scale) <= MOST_CHOICES
    return single and small and len(c.weight) > 0 and len(c.scale) > 1


def find_choices(search: Search, c: Columns, r: Relaxation) -> RowChoices:
    """Find the rows for which reduced costs leave more than one broker.

    A broker is left out where its cost at the relaxation's prices exceeds the row's
    least by more than the gap, so no better plan can use it.
    """
    cost = np.empty((len(r.rows), len(c.scale)))
    choice_costs(c, r.rows, r.scratch, cost)
    priced = cost + 0.0
    for d in range(len(c.weight)):
        priced += c.lead[r.rows, d][:, None] * (c.scale[:, d] * r.prices[:, d])
    refund = float(search.problem.costs.refund.sum())
    within = search.objective + refund - r.bound + SLACK
    cost[priced - priced.min(axis=1)[:, None] > within] = np.inf
    may = np.isfinite(cost)
    open_ = may.sum(axis=1) > 1
    at: Ints = may.argmax(axis=1)
    others = np.ones(len(c.home), np.bool_)
    others[r.rows] = False
    rest, done = np.flatnonzero(others), ~open_
    fixed = _loads(c, rest, c.home[rest, 0]) - c.holding[:, None]
    return RowChoices(
        rows=r.rows[open_],
        cost=cost[open_],
        between=_between(priced[open_]),
        fixed=fixed + _loads(c, r.rows[done], at[done]),
        decided=sum(cost[done].min(axis=1).tolist()) - refund,
    )


def _between(priced: Floats) -> Floats:
    lowest = np.sort(priced, axis=1)
    middle: Floats = (lowest[:, 0] + lowest[:, 1]) / 2.0
    return middle


def _loads(c: Columns, rows: Ints, at: Ints) -> Floats:
    """(B, K) deviations that these rows add to the brokers they are on."""
    found = np.empty(c.scale.shape)
    for d in range(len(c.weight)):
        found[:, d] = np.bincount(at, c.lead[rows, d], len(found))
    loads: Floats = found * c.scale
    return loads

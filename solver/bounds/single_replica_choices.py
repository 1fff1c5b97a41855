"""Where rows of one replica may lie in a better plan than the best one known."""

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
"""What rounding may take off a bound or a reduced cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoices:
    """R rows that have a choice, and what is decided besides; rows by position."""

    rows: Ints
    """(R,) rows of the columns."""
    cost: Floats
    """(R, B) price of each row on each broker; infinite where it shall not go."""
    between: Floats
    """(R,) the mean of what it costs on the cheapest broker and on the second."""
    fixed: Floats
    """(B, K) deviation by all other rows."""
    decided: float
    """Price of what other rows do, less what forced moves give back."""


def has_choices(c: Columns, r: Relaxation) -> bool:
    """Whether rows have one replica each, and not too many choices of a broker."""
    single = c.home.shape[1] == 1 and bool((c.rf == 1).all())
    small = 0 < len(r.rows) * len(c.scale) <= MOST_CHOICES
    return single and small and len(c.weight) > 0 and len(c.scale) > 1


def find_choices(search: Search, c: Columns, r: Relaxation) -> RowChoices:
    """Rows between whose brokers reduced costs do not decide."""
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
    """(B, K) what these rows bring to the brokers they are at."""
    found = np.empty(c.scale.shape)
    for d in range(len(c.weight)):
        found[:, d] = np.bincount(at, c.lead[rows, d], len(found))
    loads: Floats = found * c.scale
    return loads

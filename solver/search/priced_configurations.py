"""Configurations of all rows whose reduced cost at the dual prices is small.

A configuration of a row names the brokers that hold its replicas and the one that leads.
Listed by columns, since there may be a hundred for each of hundreds of rows.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.kernels.compiled import linked
from solver.kernels.node_bound import Configurations
from solver.kernels.problem_arrays import NO_BUDGET, Columns, sum_loads_at
from solver.problem.problem import Problem
from solver.problem.rack_rule import keeps_racks
from solver.search.budget_prices import units
from solver.search.dual import PRICED_BUDGETS, Relaxation

MOST_PRICED: Final = 2_000_000
"""Sets of brokers x leaders x rows up to which reduced costs are computed."""

WORK_PER_PRICED: Final = 1e-7
"""Work units for one of them; measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedConfigurations:
    """N configurations of R rows, row after row, each row's home among them if it may stay."""

    rows: Ints
    """(R,) rows of the columns."""
    start: Ints
    """(R + 1,) where each row's configurations begin."""
    brokers: Ints
    """(N, M) brokers of each configuration, leader first."""
    reduced: Floats
    """(N,) reduced costs in units of F, 0 for a row's cheapest configuration."""
    price: Floats
    """(N,) costs of the change, with what it pays for budgets."""
    charged: Floats
    """(N,) the part of that for budgets."""
    full_surcharge: Floats
    """(N,) what it would pay for budgets at prices no lower than the cost of a change."""
    cheapest: Ints
    """(R,) each row's cheapest configuration."""
    loads: Configurations
    """Loads and costs as compiled loops take them."""
    fixed: Floats
    """(B x K,) deviations from all other rows, scaled to weight 1."""

    def least_reduced(self, count: int) -> float:
        """Return a reduced cost that at most `count` configurations are within; at least 0."""
        if len(self.reduced) <= count:
            return float("inf")
        return float(np.partition(self.reduced, count)[count]) * (1.0 - 1e-12)


def priced_count(problem: Problem) -> int:
    """Return the number of sets x leaders x rows that `price_configurations` would price."""
    rf = int(problem.rf.max(initial=1))
    return comb(len(problem.brokers), rf) * rf * len(problem.leader)


def price_configurations(
    problem: Problem, c: Columns, r: Relaxation, within: float
) -> PricedConfigurations | None:
    """List the configurations whose reduced cost is at most `within`, in units of F.

    All loaded rows that may move must have as many replicas; the relaxation must be solved.
    Returns None where no row has a choice or some row has no configuration at all.
    """
    rows = r.rows
    if not len(rows) or (c.rf[rows] != c.rf[rows[0]]).any():
        return None
    rf = int(c.rf[rows[0]])
    sets = np.array([*combinations(range(len(c.scale)), rf)], np.int64)
    may = _allowed(problem, c, rows, sets)
    new, other = _changes(problem, rows, sets)
    price, priced = _costs(problem, c, r, rows, sets, new, other)
    reduced = np.where(may, priced, np.inf).reshape(len(rows), -1)
    least = reduced.min(axis=1, keepdims=True)
    if not np.isfinite(least).all():
        return None
    reduced -= least
    flat_home = _home_of(c, rows, sets)
    stays = flat_home >= 0
    at_home = np.flatnonzero(stays), flat_home[stays]
    kept = reduced <= within
    kept[at_home] = True
    kept &= np.isfinite(reduced)
    row, which = np.nonzero(kept)
    chosen, leader = sets[which // rf], which % rf
    start = np.zeros(len(rows) + 1, np.int64)
    start[1:] = np.cumsum(kept.sum(axis=1))
    found = reduced[row, which]
    cheapest = [start[i] + int(found[start[i] : start[i + 1]].argmin()) for i in range(len(rows))]
    brokers, costs = _leader_first(chosen, leader), price.reshape(len(rows), -1)[row, which]
    used = c.bytes_[rows][row], new[row, which // rf], other[row, which // rf, leader]
    others = np.ones(len(c.home), np.bool_)
    others[rows] = False
    fixed = sum_loads_at(c, np.flatnonzero(others), c.home[others]) - 1.0
    return PricedConfigurations(
        rows=rows,
        start=start,
        brokers=brokers,
        reduced=found,
        price=costs,
        charged=_charged(r.budget_prices, *used),
        full_surcharge=_charged(_surcharge(problem, c, r), *used),
        cheapest=np.array(cheapest, np.int64),
        loads=_linked(c, rows, start, brokers, costs),
        fixed=(np.where(c.holding[:, None], fixed, 0.0) * np.sqrt(c.weight)).ravel(),
    )


def legal_configurations(problem: Problem, c: Columns, row: int) -> Ints:
    """List the configurations that a row may have: (N, M) brokers, leader first; -1 fills."""
    rf = int(c.rf[row])
    sets = np.array([*combinations(range(len(c.scale)), rf)], np.int64)
    may = _allowed(problem, c, np.array([row]), sets)[0]
    chosen, leader = np.nonzero(may)
    found = np.full((len(chosen), c.home.shape[1]), -1, np.int64)
    found[:, :rf] = _leader_first(sets[chosen], leader)
    return found


def _allowed(problem: Problem, c: Columns, rows: Ints, sets: Ints) -> Bools:
    """(R, S, rf) whether a row may lie on a set of brokers with each as its leader."""
    hold, lead, group = problem.hold[rows], problem.may_lead[rows], c.group[rows]
    may = np.ones((len(rows), len(sets)), np.bool_)
    for g in np.unique(group).tolist():
        mine = np.flatnonzero(group == g)
        row = int(rows[mine[0]])
        legal = [keeps_racks(problem, row, s, as_if_moved=True) for s in sets.tolist()]
        may[mine] = legal
    position = {tuple(s): i for i, s in enumerate(sets.tolist())}
    for i, row in enumerate(rows.tolist()):
        home = sorted(problem.replicas[row].tolist())
        may[i, position[tuple(home)]] = keeps_racks(problem, row, home)
    for k in range(sets.shape[1]):
        may &= hold[:, sets[:, k]]
    found: Bools = may[:, :, None] & lead[:, sets]
    return found


def _changes(problem: Problem, rows: Ints, sets: Ints) -> tuple[Ints, Bools]:
    """(R, S) new replicas, and (R, S, rf) whether another leader leads."""
    home = problem.home[rows]
    new = np.zeros((len(rows), len(sets)), np.int64)
    for k in range(sets.shape[1]):
        new += ~home[:, sets[:, k]]
    other: Bools = sets[None] != problem.leader[rows, None, None]
    return new, other


def _costs(
    problem: Problem, c: Columns, r: Relaxation, rows: Ints, sets: Ints, new: Ints, other: Bools
) -> tuple[Floats, Floats]:
    """(R, S, rf) cost of the change, budgets included, and that with the priced loads."""
    q = r.prices * c.scale
    follow, led = (np.zeros((len(rows), len(q))) for _ in range(2))
    for d in range(q.shape[1]):
        follow += c.follow[rows, d, None] * q[:, d]
        led += (c.lead[rows, d] - c.follow[rows, d])[:, None] * q[:, d]
    held = np.zeros(new.shape)
    for k in range(sets.shape[1]):
        held += follow[:, sets[:, k]]
    paid = np.maximum(0, new - problem.may.least_new[rows][:, None])
    price = (paid * problem.costs.replica[rows, None])[:, :, None] + problem.costs.leader * other
    if r.budget_prices.any():
        price += _charged(r.budget_prices, c.bytes_[rows, None, None], new[:, :, None], other)
    return price, price + held[:, :, None] + led[:, sets]


def _charged(prices: Floats, size: Ints, new: Ints, other: Bools) -> Floats:
    """What changes pay for budgets at these prices, by the bytes of a replica."""
    found: Floats = (prices[0] + prices[1] * size) * new + prices[2] * other
    return found


def _surcharge(problem: Problem, c: Columns, r: Relaxation) -> Floats:
    """(3,) prices of budgets that have a limit, no lower than the cost of a change."""
    costs = np.array([r.unpriced, r.unpriced, problem.costs.leader]) / units(r)
    limited = c.budgets[: len(PRICED_BUDGETS)] != NO_BUDGET
    return np.where(limited, np.maximum(costs, r.budget_prices), 0.0)


def _home_of(c: Columns, rows: Ints, sets: Ints) -> Ints:
    """(R,) position of each row's present configuration among sets x leaders."""
    rf = sets.shape[1]
    position = {tuple(s): i for i, s in enumerate(sets.tolist())}
    found = []
    for home in c.home[rows].tolist():
        held = sorted(home[:rf])
        found.append(position[tuple(held)] * rf + held.index(home[0]))
    return np.array(found, np.int64)


def _leader_first(sets: Ints, leader: Ints) -> Ints:
    """(N, rf) brokers, the leader first, the others as they were."""
    rank = np.arange(sets.shape[1]) + 1
    rank = np.where(rank - 1 == leader[:, None], 0, rank)
    return np.take_along_axis(sets, np.argsort(rank, axis=1, kind="stable"), axis=1)


def _linked(c: Columns, rows: Ints, start: Ints, brokers: Ints, price: Floats) -> Configurations:
    """Configurations as compiled loops take them; zero loads are left out."""
    row, root = np.repeat(rows, np.diff(start)), np.sqrt(c.weight)
    dims, rf = len(root), brokers.shape[1]
    loads = np.empty((len(row), rf, dims))
    for k in range(rf):
        loads[:, k] = (c.lead if k == 0 else c.follow)[row] * c.scale[brokers[:, k]] * root
    load = loads.reshape(len(row), -1)
    at = (brokers[:, :, None] * dims + np.arange(dims)).reshape(len(row), -1)
    order = np.argsort(load == 0.0, axis=1, kind="stable")
    return linked(
        Configurations(
            start=start,
            at=np.take_along_axis(at, order, axis=1),
            load=np.take_along_axis(load, order, axis=1),
            used=(load != 0.0).sum(axis=1).astype(np.int64),
            price=price,
        )
    )

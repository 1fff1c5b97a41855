"""The optimum of a tiny problem, by branching over whole rows.

CP-SAT's bounds split partitions, and say little where each is a large part of a broker's load:
three heavy partitions of three replicas on six brokers take it a minute, although they have only
216,000 placements.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.cpsat.variables import choices
from solver.problem.placement import (
    EDGE,
    NOTHING,
    WORK_OF_GAIN,
    Placement,
    excess_price,
    is_allowed,
)
from solver.problem.problem import CAPACITY_SLACK, Problem
from solver.problem.row_configurations import configurations_of
from solver.search.search import Search

MOST_PLACEMENTS: Final = 1e10
"""Placements up to which a search of their tree is likely to end."""

MOST_CONFIGURATIONS: Final = 2_000
"""Configurations, over all rows, up to which they are listed."""

SHARE: Final = 0.1
"""Share of the search budget for the tree."""

WORK_OF_TERM: Final = 2e-8
"""Work units per node and term of its sums; measured."""

BLOCK: Final = 400_000
"""Terms of nodes that are evaluated at once, unless the children of one node have more."""

MOST_REFUSED: Final = 1_000
"""Placements that break a rule of which no sum tells, up to which the tree is searched."""

GLOBAL_BUDGETS: Final = ("replica_moves", "bytes", "leader_changes", "partitions")
"""Budgets of which a placement uses what its rows use together."""


def is_tiny(problem: Problem, holders: Mapping[int, Sequence[int]]) -> bool:
    """Return whether rows with a choice have few configurations, and few placements together.

    `holders` are the brokers that may hold each such row, as of `choices`.
    """
    sizes = [(len(held), int(problem.rf[row])) for row, held in holders.items()]
    counts = [rf * math.comb(size, rf) for size, rf in sizes]
    return sum(counts) <= MOST_CONFIGURATIONS and math.prod(counts) <= MOST_PLACEMENTS


def branch_over_rows(search: Search) -> bool:
    """Search the tree of all placements of a tiny problem; return whether that proved the least F.

    The best placement and the bound are left in `search`, the former also where False is returned:
    if the tree is too large for a share of the search budget, if topics are balanced one by one or
    brokers need a minimum of leaders, without an allowed placement, and if stopped.
    """
    problem = search.problem
    if problem.topic_share or problem.minimums or search.over():
        return False
    listed = _list_rows(problem)
    if listed is None or not _complete(search, listed) or search.best is None:
        return False
    search.prove(max(0.0, _worth(search)))
    return True


def _worth(search: Search) -> float:
    """F below which a node is worth a look: sums of floats are accurate to a share of 1e-13."""
    return search.objective * (1 - 1e-12) - NOTHING


def _complete(search: Search, listed: "_Listed") -> bool:
    """Search depth first, the most promising nodes first; return whether nothing is left."""
    end = search.work + min(SHARE * search.limits.work, search.work_left)
    refused, depth = 0, len(listed.rows)
    stack = [(0, listed.fixed[:, None], np.zeros(1, np.int64))]
    while stack:
        level, sums, index = stack.pop()
        if level == depth:
            refused += _offer(search, listed, sums, index)
            if refused > MOST_REFUSED:
                return False
            continue
        sums, index = _children(listed, level, sums, index)
        search.work += WORK_OF_TERM * sums.size
        if search.over(end):
            return False
        least = _bound(search.problem, listed, sums, level + 1)
        order = np.argsort(-least, kind="stable")
        order = order[least[order] < _worth(search)]
        children = listed.counts[level + 1] if level + 1 < depth else 1
        step = max(1, BLOCK // (len(sums) * children))
        parts = np.array_split(order, range(step, len(order), step))
        stack.extend((level + 1, sums[:, part], index[part]) for part in parts)
    return True


def _children(listed: "_Listed", level: int, sums: Floats, index: Ints) -> tuple[Floats, Ints]:
    """(J, m x C) sums and (m x C,) positions of the children of m nodes."""
    more = listed.sums[level]
    children = (sums[:, :, None] + more[:, None, :]).reshape(len(sums), -1)
    count = more.shape[1]
    return children, (index[:, None] * count + np.arange(count)).ravel()


def _offer(search: Search, listed: "_Listed", sums: Floats, index: Ints) -> int:
    """Offer the best of some placements that keeps every rule; return how many did not before."""
    value = _bound(search.problem, listed, sums, len(listed.rows))
    order = np.argsort(value, kind="stable")
    for refused, i in enumerate(order.tolist()):
        if refused > MOST_REFUSED or value[i] >= _worth(search):
            return refused
        placement = listed.placement(search.problem, int(index[i]))
        search.work += WORK_OF_GAIN
        if is_allowed(search.problem, placement):
            search.offer(placement)
            return refused
    return len(order)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """The configurations of the R rows with a choice, and what each adds to J sums.

    The sums are the loads of B brokers in D columns, B x D of them; the cost of the changes;
    and what they use of each of the `GLOBAL_BUDGETS` that has a limit.
    """

    rows: Ints
    """(R,) rows of the problem."""
    brokers: list[Ints]
    """By row, (configurations, M) brokers, leader first; -1 fills."""
    sums: list[Floats]
    """By row, (J, configurations)."""
    fixed: Floats
    """(J,) from the other rows."""
    limit: Floats
    """(J,) most that is allowed; infinite where nothing limits."""
    rest: Floats
    """(R + 1, D) loads of all rows but the first ones, by the number of those."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Configurations of each row."""
        return tuple(each.shape[1] for each in self.sums)

    def placement(self, problem: Problem, index: int) -> Placement:
        """Return a placement by its position in the list of all."""
        replicas, leader = problem.replicas.copy(), problem.leader.copy()
        chosen = np.unravel_index(index, self.counts)
        for row, brokers, i in zip(self.rows.tolist(), self.brokers, chosen, strict=True):
            held = sorted(b for b in brokers[i].tolist() if b >= 0)
            replicas[row, : len(held)], leader[row] = held, brokers[i, 0]
        return Placement(replicas=replicas, leader=leader)


def _list_rows(problem: Problem) -> _Listed | None:
    """List the configurations of every row, the heaviest first.

    None where a row has none, and where a row may stay on a broker that is not balanced.
    """
    holders, leaders = choices(problem)
    rows = np.array(list(holders), np.int64)
    total = problem.lead + problem.follow * (problem.rf[:, None] - 1)
    share = np.zeros(len(total))
    for k, d in enumerate(problem.column.tolist()):
        share += problem.weight[k] * total[:, d] / problem.mean_load[k]
    rows = rows[np.argsort(-share[rows], kind="stable")]
    loads = problem.loads_before - problem.loads_of_rows(rows)
    budgets = [getattr(problem.goals.budgets, name) for name in GLOBAL_BUDGETS]
    most = [math.inf if limit is None else limit for limit in budgets]
    brokers, sums = [], []
    for row in rows.tolist():
        listed = list(configurations_of(problem, row, holders[row], leaders[row]))
        at = np.full((len(listed), problem.replicas.shape[1]), -1, np.int64)
        for i, (held, _) in enumerate(listed):
            at[i, : len(held)] = held
        if not listed or not problem.may.holding[at[at >= 0]].all():
            return None
        brokers.append(at)
        cost = np.array([cost for _, cost in listed])
        sums.append(np.vstack([_loads(problem, row, at), cost, _used(problem, row, at)]))
    after = np.vstack([total[rows], np.zeros(total.shape[1])])
    return _Listed(
        rows=rows,
        brokers=brokers,
        sums=sums,
        fixed=np.concatenate([loads.ravel(), np.zeros(1 + len(most))]),
        limit=np.concatenate(
            [(problem.allowed * (1 + 2 * CAPACITY_SLACK)).ravel(), [math.inf], most]
        ),
        rest=np.cumsum(after[::-1], axis=0)[::-1],
    )


def _loads(problem: Problem, row: int, at: Ints) -> Floats:
    """(B x D, configurations) loads of a row's configurations `at` on every broker."""
    size, dims = len(problem.brokers), problem.lead.shape[1]
    loads = np.zeros((size, dims, len(at)))
    for k in range(int(problem.rf[row])):
        each = (problem.lead if k == 0 else problem.follow)[row]
        loads[at[:, k], :, np.arange(len(at))] += each
    return loads.reshape(size * dims, len(at))


def _used(problem: Problem, row: int, at: Ints) -> Floats:
    """(budgets, configurations) use of the global budgets, in their order."""
    home = problem.replicas[row]
    new = ((at[:, :, None] != home).all(axis=2) & (at >= 0)).sum(axis=1)
    led = at[:, 0] != problem.leader[row]
    return np.array([new, new * problem.copied_bytes[row], led, led | (new > 0)], np.float64)


def _bound(problem: Problem, listed: _Listed, sums: Floats, level: int) -> Floats:
    """(m,) lower bounds of F below nodes at `level`, from their (J, m) sums; exact at the leaves.

    Infinite where a limit is exceeded. The loads of the rows that are left may be split.
    """
    brokers, dims = problem.loads_before.shape
    limited = np.flatnonzero(np.isfinite(listed.limit))
    over = (sums[limited] > listed.limit[limited, None]).any(axis=0)
    found, beyond = sums[brokers * dims].copy(), np.zeros(sums.shape[1])
    holding = np.flatnonzero(problem.may.holding)
    for k, d in enumerate(problem.column.tolist()):
        if problem.weight[k] > 0.0:
            slope, rest = problem.slope[holding, k, None], float(listed.rest[level, d])
            deviation = sums[holding * dims + d] * slope - 1.0
            excess = problem.weight[k] * _least_excess(deviation, slope, rest, problem.tolerance[k])
            beyond += excess
            if problem.band:
                found += excess_price(problem) * excess
            else:
                found += problem.weight[k] * _least_squares(deviation, slope, rest)
    # What is beyond by less than `EDGE` counts as inside, on every broker.
    slack = EDGE * (1.0 + len(holding) * problem.weight.sum())
    outside = over | (beyond > problem.most_excess + slack)
    return np.where(outside, math.inf, found)


def _least_squares(deviation: Floats, slope: Floats, rest: float) -> Floats:
    """(m,) least sums of the squares of (B, m) deviations once the load `rest` is added.

    `slope` is (B, 1). The load goes where it costs least: the derivatives of the squares there
    become equal.
    """
    if rest > 0.0:
        rise, width = deviation * slope, np.broadcast_to(1.0 / (slope * slope), deviation.shape)
        order = np.argsort(rise, axis=0, kind="stable")
        low, wide = np.take_along_axis(rise, order, 0), np.take_along_axis(width, order, 0)
        level = (rest + np.cumsum(low * wide, axis=0)) / np.cumsum(wide, axis=0)
        deviation = np.maximum(rise, level.min(axis=0)) / slope
    return _total(deviation * deviation)


def _least_excess(deviation: Floats, slope: Floats, rest: float, tolerance: float) -> Floats:
    """(m,) least sums of what (B, m) deviations are beyond the tolerance once `rest` is added."""
    above = np.maximum(0.0, deviation - tolerance)
    below = np.maximum(0.0, -deviation - tolerance)
    if rest <= 0.0:
        return _total(above + below)
    lacking = _total(below / slope) - rest
    surplus = rest - _total(np.maximum(0.0, tolerance - deviation) / slope)
    found: Floats = np.maximum(0.0, np.maximum(lacking, surplus)) * slope.min()
    return _total(above) + found


def _total(terms: Floats) -> Floats:
    """(m,) sums of (B, m) terms, one by one: a library's sums differ between processors."""
    found = np.zeros(terms.shape[1])
    for each in terms:
        found += each
    return found

"""All configurations of a few rows: which brokers hold each row, and which one leads."""

from collections import Counter
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.bounds.reduced_cost_fixing import open_choices
from solver.kernels.compiled import linked
from solver.kernels.node_bound import Configurations
from solver.kernels.problem_arrays import Columns, sum_loads_at
from solver.problem.row_configurations import configurations_of
from solver.search.local_search import LocalSearch
from solver.tolerance.forced_excess import deviations_between


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationList:
    """Configurations of R rows with a choice, as far as each row's rules allow."""

    rows: Ints
    """(R,) rows of the problem."""
    brokers: Ints
    """(N, M) brokers of each configuration, leader first; -1 fills."""
    configurations: Configurations
    """Their loads and costs, as compiled loops take them."""
    fixed: Floats
    """(J,) deviations from all other rows, scaled to weight 1."""
    between: Floats
    """(2, J) least and largest deviations that a choice may leave, scaled likewise; infinite for
    any."""

    @property
    def bounded(self) -> bool:
        """Whether any deviation is bounded."""
        return bool(np.isfinite(self.between).any())

    def part(self, rows: Ints) -> tuple[Configurations, Ints]:
        """Return the configurations of some rows and their (N',) indices in this list.

        `rows` are positions in `self.rows`, at least one; the part numbers them from 0 in
        that order.
        """
        c = self.configurations
        kept = np.concatenate([np.arange(c.start[r], c.start[r + 1]) for r in rows])
        start = np.zeros(len(rows) + 1, np.int64)
        start[1:] = np.cumsum(np.diff(c.start)[rows])
        part = Configurations(
            start=start, at=c.at[kept], load=c.load[kept], used=c.used[kept], price=c.price[kept]
        )
        return linked(part), kept

    def counted(self, counts: Bools, stiffness: float) -> "ConfigurationList":
        """Return the list with a count of rows as one more deviation.

        `counts` is (N,): configurations that count. The deviation starts at 0, and each
        row that takes one adds `stiffness`, the root of the cost in units of F of a number
        that is one off.
        """
        c, deviation = self.configurations, len(self.fixed)
        at, load = np.pad(c.at, ((0, 0), (0, 1))), np.pad(c.load, ((0, 0), (0, 1)))
        end = np.flatnonzero(counts), c.used[counts]
        at[end], load[end] = deviation, stiffness
        return ConfigurationList(
            rows=self.rows,
            brokers=self.brokers,
            configurations=linked(
                Configurations(start=c.start, at=at, load=load, used=c.used + counts, price=c.price)
            ),
            fixed=np.append(self.fixed, 0.0),
            between=np.column_stack((self.between, (-np.inf, np.inf))),
        )


MOST_CONFIGURATIONS: Final = 20_000
"""Configurations, over all rows, up to which they are listed."""

EQUALS: Final = 0.25
"""Share of rows that may be identical to another row."""


def list_configurations(local: LocalSearch) -> ConfigurationList | None:
    """List the configurations that no reduced cost rules out; unloaded rows stay.

    The search must have an incumbent and solved dual prices. Returns None if there are more
    than `MOST_CONFIGURATIONS`, none at all, or if over `EQUALS` of the rows are identical to
    another one. Unloaded rows that need not move are at home.
    """
    problem, c = local.search.problem, local.columns
    among = open_choices(local)
    loaded = set(local.relaxation.rows.tolist())
    rows = [row for row in among[0] if row in loaded]
    size = sum(comb(len(among[0][row]), int(problem.rf[row])) for row in rows)
    if not rows or size > MOST_CONFIGURATIONS or _equals(c, rows):
        return None
    listed = [list(configurations_of(problem, row, among[0][row], among[1][row])) for row in rows]
    start = np.zeros(len(rows) + 1, np.int64)
    start[1:] = np.cumsum([len(each) for each in listed])
    brokers = np.full((start[-1], c.home.shape[1]), -1, np.int64)
    for i, (at, _) in enumerate(one for each in listed for one in each):
        brokers[i, : len(at)] = at
    price = np.array([price for each in listed for _, price in each])
    others = np.ones(len(c.home), np.bool_)
    others[rows] = False
    loads = sum_loads_at(c, np.flatnonzero(others), c.home[others])
    fixed = np.where(c.holding[:, None], loads - 1.0, 0.0)
    between = deviations_between(problem) * np.sqrt(c.weight)
    return ConfigurationList(
        rows=np.array(rows, np.int64),
        brokers=brokers,
        configurations=_linked(c, np.array(rows), start, brokers, price),
        fixed=(fixed * np.sqrt(c.weight)).ravel(),
        between=between.reshape(2, -1),
    )


def _equals(c: Columns, rows: list[int]) -> bool:
    """Whether many rows are identical: then trees repeat themselves."""
    found = Counter(
        (
            c.home[p].tobytes(),
            c.lead[p].tobytes(),
            c.follow[p].tobytes(),
            int(c.group[p]),
            float(c.price[p]),
        )
        for p in rows
    )
    return sum(n for n in found.values() if n > 1) > len(rows) * EQUALS


def _linked(c: Columns, rows: Ints, start: Ints, brokers: Ints, price: Floats) -> Configurations:
    """Configurations as compiled loops take them; zero loads are left out."""
    row, root = np.repeat(rows, np.diff(start)), np.sqrt(c.weight)
    dims, most = len(root), brokers.shape[1]
    loads = np.zeros((len(row), most, dims))
    for k in range(most):
        held = brokers[:, k] >= 0
        each = (c.lead if k == 0 else c.follow)[row[held]]
        loads[held, k] = each * c.scale[brokers[held, k]] * root
    load = loads.reshape(len(row), -1)
    first = np.maximum(brokers, 0)[:, :, None] * dims
    at = (first + np.arange(dims)).reshape(len(row), -1)
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

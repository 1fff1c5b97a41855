"""A bound that keeps rows whole: each broker solves its own subproblem exactly.

Lagrangian decomposition for rows with one replica. Each row p pays mu_p to the broker
that holds it; a broker then chooses what to hold. For any mu

F >= sum_p mu_p + sum_b (least value of broker b)

since an actual placement is one choice of all brokers. The relaxation may split a row
over brokers, but a broker's choice is whole: this is the bound of Dantzig and Wolfe,
1960. The ascent is a proximal bundle method (Kiwiel, 1990); choices that no better plan
uses are left out.
"""

from itertools import combinations, product
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats
from solver.bounds.single_replica_choices import (
    SLACK,
    WORK_PER_OPERATION,
    RowChoices,
    find_choices,
    has_choices,
)
from solver.kernels.broker_subproblems import Subproblems, solve_brokers
from solver.kernels.compiled import linked
from solver.kernels.row_prices import add_sets, new_master, solve_master
from solver.kernels.single_broker_bnb import new_tree
from solver.search.local_search import LocalSearch

METHOD: Final = "brokers kept whole"

LARGE_PARTITION_SHARE: Final = 0.7
"""Share of the work for branch and bound on large partitions, where there are any."""

FEW_NODES: Final = 1_000
MOST_NODES: Final = 64_000
"""Branchings for one broker, at most; `FEW_NODES` at first."""

MOST_BRANCHED: Final = 64_000
"""Branchings between two checks of the limits."""

ACCURACY: Final = 1e-3
"""Accuracy of subproblems and master problem, in costs of a move."""

KEPT_SETS: Final = 40
"""Sets of rows kept for each broker."""

GRID_LENGTHS: Final = (0.08, 0.16, 0.3, 0.5, 0.75, 1.0)
"""Prices of the grid, as shares of the largest that can matter."""

MOST_PAIRED: Final = 8
"""Dimensions up to which the grid has prices of two dimensions at once."""

FIRST_REACH: Final = 0.02
"""First weight of the proximal term: how far a step goes, in costs of a move."""

SERIOUS_STEP: Final = 0.1
"""Share of the promised ascent from which on a step is taken."""

MOST_NULL_STEPS: Final = 60
"""Rejected steps in a row after which the ascent ends."""


def improve_bound(local: LocalSearch, work: float) -> None:
    """Prove a better bound for rows with one replica, within `work` work units.

    Also grows the tree of large partitions, if there is one. Does nothing without an
    incumbent or where `has_choices` is False: rows with several replicas, or too many pairs
    of rows and brokers. The relaxation must be solved.
    """
    r, search = local.relaxation, local.search
    c = r.columns
    if not has_choices(c, r) or search.best is None:
        return
    end = search.work + work
    if local.tree is not None:
        local.tree.grow(work * LARGE_PARTITION_SHARE)
    if search.stopped or search.near_enough:
        return
    found = find_choices(search, c, r)
    if not len(found.rows):
        search.prove(search.objective, METHOD)
        return
    _Ascent(local, found).run(end)


def directions(dims: int) -> Floats:
    """Return (G, K) prices spread over all directions, as shares of the largest one.

    Along each of the K = `dims` dimensions, both ways, and up to `MOST_PAIRED` dimensions
    also along pairs of two, in the lengths `GRID_LENGTHS`.
    """
    found = [_unit(dims, {d: s}) for d in range(dims) for s in (1, -1)]
    ratios = ((1, 1), (2, 1), (1, 2)) if dims <= MOST_PAIRED // 2 else ((1, 1),)
    signs = tuple(product((1, -1), (1, -1)))
    if dims <= MOST_PAIRED:
        pairs = product(combinations(range(dims), 2), ratios, signs)
        found += [_unit(dims, {d: s * x, e: t * y}) for (d, e), (x, y), (s, t) in pairs]
    return np.array([unit * length for unit in found for length in GRID_LENGTHS])


def _unit(dims: int, parts: dict[int, int]) -> Floats:
    found = np.zeros(dims)
    length = float(np.sqrt(sum(x * x for x in parts.values())))
    for d, x in parts.items():
        found[d] = x / length
    return found


class _Ascent:
    """The brokers' subproblems over I choices, and the state of the multipliers.

    The master problem begins with the incumbent's sets.
    """

    def __init__(self, local: LocalSearch, o: RowChoices) -> None:
        c, search = local.columns, local.search
        assert search.best is not None  # noqa: S101  # asked for at the entrance
        broker, row = np.nonzero(np.isfinite(o.cost).T)
        start = np.zeros(len(c.scale) + 1, np.int64)
        start[1:] = np.cumsum(np.bincount(broker, minlength=len(c.scale)))
        self._local = local
        self._problems = linked(
            Subproblems(
                start=start,
                row=row.astype(np.int32),
                cost=o.cost[row, broker],
                load=c.lead[o.rows[row]] * c.scale[broker],
                fixed=o.fixed,
                weight=c.weight,
            )
        )
        longest = 4 * (len(o.rows) // len(c.scale)) + 100
        self._master = new_master(len(c.scale), KEPT_SETS, longest)
        self._held: Bools = search.best.leader[o.rows[row]] == broker
        """(I,) the brokers' last solutions."""
        add_sets(self._master, self._problems, self._held)
        self._tree = new_tree(start, directions(len(c.weight)), MOST_NODES)
        self._decided = o.decided
        self._mu = o.between
        """(R,) multipliers to be tried."""
        self._eta = local.relaxation.prices.copy()
        """(B, K) dual prices of the deviations."""
        self._centre = o.between.copy()
        """(R,) the best multipliers so far."""
        self._reach = FIRST_REACH * local.relaxation.price
        """Weight of the proximal term."""
        self._value = -np.inf
        """Bound at the centre."""
        self._model = np.inf
        """Upper model of the bound at `_mu`, from the sets known."""
        self._nodes, self._null_steps = FEW_NODES, 0

    def run(self, end: float) -> None:
        """Try multipliers until the model promises no more, or the work limit is reached."""
        search, small = self._local.search, ACCURACY * self._local.relaxation.price
        while self._null_steps < MOST_NULL_STEPS and not search.over(end):
            found = self._evaluate(small)
            if found is None:
                return
            bound, open_ = found
            search.prove(min(bound - SLACK, search.objective), METHOD)
            if search.near_enough:
                return
            self._take_or_reject(bound, open_)
            promised = 0.0 if np.isinf(self._model) else 0.02 * (self._model - self._value)
            model, effort = solve_master(
                self._master, self._centre, self._reach, self._mu, max(small, promised)
            )
            search.work += effort * WORK_PER_OPERATION
            self._model = model + self._decided
            if self._model - self._value < 3.0 * small:
                return

    def _evaluate(self, small: float) -> tuple[float, float] | None:
        """The bound at `mu`, and how far the sets found may be from the best ones.

        None where the search budget ends before all brokers are solved.
        """
        search, brokers = self._local.search, len(self._problems.start) - 1
        value = open_ = 0.0
        step = max(1, MOST_BRANCHED // self._nodes)
        for first in range(0, brokers, step):
            if search.over():
                return None
            end = min(brokers, first + step)
            at = self._problems, first, end, self._mu, self._eta, self._held
            more, apart, effort = solve_brokers(*at, small, self._nodes, self._tree)
            value, open_ = value + more, open_ + apart
            search.work += effort * WORK_PER_OPERATION
        add_sets(self._master, self._problems, self._held)
        return self._decided + sum(self._mu.tolist()) + value, open_

    def _take_or_reject(self, bound: float, open_: float) -> None:
        """Take the step or reject it; adapt the next step's length and accuracy."""
        promised = self._model - self._value
        first = np.isinf(self._value)
        if first or bound - self._value >= SERIOUS_STEP * promised:
            if not first and bound - self._value >= 0.5 * promised:
                self._reach *= 1.6
            self._centre, self._value, self._null_steps = self._mu.copy(), bound, 0
            return
        self._null_steps += 1
        if bound < self._value - promised:
            self._reach *= 0.6
        if open_ > 0.5 * promised:
            self._nodes = min(2 * self._nodes, MOST_NODES)
            if bound > self._value - 0.3 * promised:
                self._reach = min(1.5 * self._reach, self._local.relaxation.price)

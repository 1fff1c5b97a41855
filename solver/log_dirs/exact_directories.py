"""Optimal directories of one broker, proved by CP-SAT where there are few replicas.

As in the exact model of brokers, squares are approximated by tangents, added where solutions are
found, and every figure is rounded so that the model's optimum is a valid bound.
"""

import math
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from model.snapshot.snapshot import Ints
from solver.budget import Budget
from solver.cpsat.model import new_solver
from solver.cpsat.objective import (
    F_BITS,
    FIRST_TANGENTS,
    MEAN_UNITS,
    MOST_BITS,
    DeviationTerm,
    WholeLoads,
    bound_of,
)
from solver.cpsat.stopping import solve_stoppable
from solver.log_dirs.broker_dirs import CLOSE, BrokerDirs

MAX_PAIRS: Final = 400
"""Replicas x directories up to which a broker is solved exactly."""

ROOM_UNITS: Final = 2**32
"""Integer units of a broker's bytes for capacities. Sizes are rounded down, so no
choice is lost; solutions are checked in bytes."""


def is_small(dirs: BrokerDirs) -> bool:
    """Return whether the exact model is quick: 1 to `MAX_PAIRS` replicas x directories."""
    return 0 < len(dirs.row) * len(dirs.open) <= MAX_PAIRS


class _Choices:
    """Decisions about which replica lies in which directory, within its capacity."""

    def __init__(self, dirs: BrokerDirs, *, all_placed: bool) -> None:
        self.dirs, self.model = dirs, cp_model.CpModel()
        rows, places = np.nonzero(dirs.allowed(np.arange(len(dirs.row))))
        self.on = {
            (i, j): self.model.new_bool_var(f"on[{dirs.row[i]},{j}]")
            for i, j in zip(rows.tolist(), places.tolist(), strict=True)
        }
        for i, home in enumerate(dirs.home.tolist()):
            mine = [v for (item, _), v in self.on.items() if item == i]
            if all_placed or home >= 0:
                self.model.add_exactly_one(mine)
            else:
                self.model.add_at_most_one(mine)
        self._post_room()

    def _post_room(self) -> None:
        dirs = self.dirs
        unit = max(1.0, dirs.total / ROOM_UNITS)
        for j in np.flatnonzero(np.isfinite(dirs.limit)).tolist():
            here = [(v, dirs.size[i]) for (i, k), v in self.on.items() if k == j]
            room = math.ceil((dirs.limit[j] - dirs.fixed[j]) / unit)
            parts = [math.floor(size / unit) for _, size in here]
            if sum(parts) > room:
                variables = [v for v, _ in here]
                filled = cp_model.LinearExpr.weighted_sum(variables, parts)
                self.model.add(filled <= room)

    def hint(self, where: Ints) -> None:
        """Give CP-SAT a `where` as its starting hint."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]  # untyped upstream
        for (i, j), variable in self.on.items():
            self.model.add_hint(variable, int(where[i] == j))

    def where(self, solver: cp_model.CpSolver) -> Ints:
        """Read the `where` from a solution."""
        found = np.full(len(self.dirs.row), -1, np.int64)
        for (i, j), variable in self.on.items():
            if solver.boolean_value(variable):
                found[i] = j
        return found


def fit(dirs: BrokerDirs, where: Ints, budget: Budget) -> Ints:
    """Find a `where`, (k,), with as many bytes in directories as possible.

    Replicas that could stay make room for arrivals that fit nowhere; costs are ignored. Returns
    the given `where` unless one with more bytes was found that keeps every limit.
    """
    choices = _Choices(dirs, all_placed=False)
    choices.hint(where)
    unit = max(1.0, dirs.total / ROOM_UNITS)
    parts = [1 + math.floor(dirs.size[i] / unit) for i, _ in choices.on]
    placed = cp_model.LinearExpr.weighted_sum(list(choices.on.values()), parts)
    choices.model.maximize(placed)
    solver = new_solver(budget.limits, budget.work_left)
    status = solve_stoppable(budget, solver, choices.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return where
    found = choices.where(solver)
    more = dirs.size[found >= 0].sum() > dirs.size[where >= 0].sum()
    return found if more and dirs.fits(found) else where


def solve_exactly(dirs: BrokerDirs, where: Ints, budget: Budget) -> tuple[Ints, float]:
    """Find the best `where`, (k,), from a start in which all are placed, and a lower bound.

    Returns the start if nothing better was found; the bound of `dirs.objective` is in units of F, 0
    if none was proved. Ends within the gap of the limits or a share `CLOSE` of the cost, at the
    latest when the search budget, which is charged, is exhausted.
    """
    most = dirs.objective(where)
    model, gap = _Model(dirs, most), max(budget.limits.gap, CLOSE * most)
    best, bound = where, 0.0
    while not budget.over() and dirs.objective(best) - bound > gap:
        solver = new_solver(budget.limits, budget.work_left)
        solver.parameters.absolute_gap_limit = gap / 4 * model.units
        model.choices.hint(best)
        status = solve_stoppable(budget, solver, model.choices.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        bound = max(bound, bound_of(solver.best_objective_bound, model.units))
        found = model.choices.where(solver)
        finer = model.refine(found)
        if dirs.fits(found) and dirs.objective(found) < dirs.objective(best):
            best = found
        if status != cp_model.OPTIMAL or not finer:
            break
    return best, bound


class _Model:
    """The objective of one broker in whole numbers, never above the true one."""

    def __init__(self, dirs: BrokerDirs, most: float) -> None:
        self.dirs, self._most = dirs, most
        self.units: int = 2 ** min(F_BITS, MOST_BITS - math.ceil(math.log2(most + 1)))
        self.choices = _Choices(dirs, all_placed=True)
        self._terms = [self._term(j) for j in range(len(dirs.fixed))]
        for term in self._terms:
            if dirs.excess is None:
                for deviation in FIRST_TANGENTS:
                    term.add_tangent(deviation)
            else:
                term.add_band(dirs.tolerance, dirs.excess)
        self._minimise()

    def refine(self, where: Ints) -> bool:
        """Add tangents at a solution's deviations; return whether any was new."""
        if self.dirs.excess is not None:
            return False
        relative = self.dirs.deviation(self.dirs.used(where)).tolist()
        new = [term.add_tangent(at) for term, at in zip(self._terms, relative, strict=True)]
        return any(new)

    def _term(self, j: int) -> DeviationTerm:
        dirs, model = self.dirs, self.choices.model
        slope = float(dirs.slope[j]) * MEAN_UNITS
        held = [(v, float(dirs.size[i])) for (i, k), v in self.choices.on.items() if k == j]
        whole = WholeLoads.of([size * slope for _, size in held], float(dirs.fixed[j]) * slope)
        deviation = model.new_int_var(*whole.range(self._reach(whole.error)), f"deviation[{j}]")
        total = cp_model.LinearExpr.weighted_sum([v for v, _ in held], whole.units)
        model.add(deviation == total + whole.start)
        most = math.ceil(self._most * self.units) + 1
        return DeviationTerm(
            model=model,
            units=self.units,
            weight=dirs.weight,
            deviation=deviation,
            error=whole.error,
            cost=model.new_int_var(0, most, f"cost[{j}]"),
        )

    def _reach(self, error: float) -> float:
        """Deviations beyond this cost more by themselves than the start."""
        dirs = self.dirs
        if dirs.excess is None:
            return (math.sqrt(self._most / dirs.weight) + error) * (1 + 1e-9)
        return dirs.tolerance + error + self._most / (dirs.weight * dirs.excess)

    def _minimise(self) -> None:
        dirs = self.dirs
        costs = [term.cost for term in self._terms]
        each = [1] * len(costs)
        for (i, j), variable in self.choices.on.items():
            if j != dirs.home[i]:
                costs.append(variable)
                each.append(math.floor(dirs.price[i] * self.units))
        total = cp_model.LinearExpr.weighted_sum(costs, each)
        self.choices.model.minimize(total)

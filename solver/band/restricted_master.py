"""The integer program over the placements generated for the linear program.

Its relaxation is tight: hardly more rows are split than bands bind. So CP-SAT finds good plans
among placements of small reduced cost, and those of known plans, where annealing is stuck
(restricted master heuristic: Joncour et al., 2010). It proves nothing.
"""

import math
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
from ortools.sat.python import cp_model

from model.snapshot.snapshot import Ints
from solver.band.column_generation import LEAST_REDUCED_COST, GeneratedColumns
from solver.band.load_prices import BandDual
from solver.band.row_placements import Placements, describe
from solver.cpsat.model import new_solver
from solver.cpsat.stopping import solve_stoppable
from solver.kernels.band import stay_costs
from solver.kernels.problem_arrays import Columns, unit_prices
from solver.search.search import Search

SHIFT_UNITS: Final = 10**7
"""Integer units of one mean load: rounding takes under 0.1 % of a band of 2 % from 200 moves."""
PRICE_UNITS: Final = 10**6
"""Integer units of the cost of a move."""
MOST_UNITS: Final = 2**40
"""Largest number: sums over a million rows fit 64 bits."""
WORK_OF_TIME: Final = 2.0
"""Work units per unit of the solver's deterministic time; measured."""
WORK_OF_MODEL: Final = 0.02
"""Work units for building and presolving the smallest model; measured."""
WORK_OF_PLACEMENT: Final = 1e-4
"""Work units for posting one placement; measured."""


class RestrictedMaster:
    """The known placements, with their reduced costs at the prices of the bound."""

    def __init__(self, dual: BandDual, generated: GeneratedColumns) -> None:
        self._dual, self._prices = dual, generated.prices
        self._elastic = generated.excess > LEAST_REDUCED_COST
        self._known = _distinct(dual.columns, generated.row, generated.at)
        dual.value(generated.prices)
        home = stay_costs(dual.columns, unit_prices(dual.columns, generated.prices))
        self._over = home - dual.least
        """(n,) by how much staying costs more than the cheapest placement."""

    def run(self, search: Search, best: Ints, reach: float, work: float) -> None:
        """Solve over placements of small reduced cost; offer the result if it is allowed.

        `best` is (n, M): the best placement known, leader first, -1 as filler; it is the
        hint and always a choice. `reach` is the largest reduced cost in units of F, `work`
        the work units for the solver; all work is charged to the search. Raises ValueError
        if CP-SAT rejects the model as invalid.
        """
        best = _ordered(best)
        self._learn(best)
        among = self._among(best, reach)
        search.work += WORK_OF_MODEL + WORK_OF_PLACEMENT * len(among.row)
        model, takes = self._model(among, best, reach)
        solver = new_solver(search.limits, work / WORK_OF_TIME)
        # The linear relaxation over all constraints guides CP-SAT best here.
        solver.parameters.linearization_level = 2
        status = solve_stoppable(search, solver, model, rate=WORK_OF_TIME)
        if status == cp_model.MODEL_INVALID:
            raise ValueError(model.validate())
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            taken = np.array([solver.value(take) for take in takes], np.bool_)
            at = self._dual.columns.home.copy()
            at[among.row[taken]] = among.at[taken]
            placement = self._dual.allowed(at)
            if placement is not None:
                search.offer(placement)

    def _learn(self, best: Ints) -> None:
        known, c = self._known, self._dual.columns
        row = np.flatnonzero((best != c.home).any(axis=1))
        self._known = _distinct(
            c, np.concatenate([known.row, row]), np.concatenate([known.at, best[row]])
        )

    def _among(self, best: Ints, reach: float) -> Placements:
        known = self._known
        reduced = known.price + known.cost_of_load(self._prices) + self._over[known.row]
        here = (best[known.row] == known.at).all(axis=1)
        return known.of(np.flatnonzero((reduced <= reach) | here))

    def _model(
        self, among: Placements, best: Ints, reach: float
    ) -> tuple[cp_model.CpModel, list[Any]]:
        model = cp_model.CpModel()
        takes = [model.new_bool_var("") for _ in range(len(among.row))]
        here = (best[among.row] == among.at).all(axis=1).tolist()
        for take, known in zip(takes, here, strict=True):
            model.add_hint(take, known)
        c = self._dual.columns
        moves = (self._over > reach) & (best != c.home).any(axis=1)
        must = c.forced | moves
        of_row = zip(among.row.tolist(), takes, strict=True)
        for row, pairs in groupby(of_row, key=itemgetter(0)):
            own = [take for _, take in pairs]
            if must[row]:
                model.add_exactly_one(own)
            else:
                model.add_at_most_one(own)
        unit = PRICE_UNITS / self._dual.problem.costs.move
        cost = [min(MOST_UNITS, round(p * unit)) for p in among.price.tolist()]
        excess, price = self._post_bands(model, among, takes)
        price = [min(MOST_UNITS, round(p * unit / SHIFT_UNITS)) for p in price]
        model.minimize(cp_model.LinearExpr.weighted_sum(takes + excess, cost + price))
        return model, takes

    def _post_bands(
        self, model: cp_model.CpModel, among: Placements, takes: list[Any]
    ) -> tuple[list[Any], list[float]]:
        """Keep each deviation in its band; return excess variables with their prices."""
        excess: list[Any] = []
        price: list[float] = []
        dual = self._dual
        for broker, d, at, by in _shifted(among):
            home, tolerance = float(dual.home[broker, d]), float(dual.tolerance[d])
            # Rounding of shifts must not hide a deviation outside its band.
            narrower = len(set(among.row[at].tolist())) / 2 / SHIFT_UNITS
            low = math.ceil((narrower - tolerance - home) * SHIFT_UNITS)
            high = math.floor((tolerance - narrower - home) * SHIFT_UNITS)
            terms, factors = [takes[i] for i in at.tolist()], list(by)
            if self._elastic or low > high:
                over, under = (model.new_int_var(0, MOST_UNITS, "") for _ in range(2))
                terms, factors = [*terms, over, under], [*factors, -1, 1]
                excess += [over, under]
                price += 2 * [float(dual.most[d])]
            if low > high:
                low = high = (low + high) // 2
            shift = cp_model.LinearExpr.weighted_sum(terms, factors)
            model.add_linear_constraint(shift, low, high)
        return excess, price


def _distinct(c: Columns, row: Ints, at: Ints) -> Placements:
    """Each placement once, by rows and brokers, followers ascending."""
    found = np.unique(np.column_stack([row, _ordered(at)]), axis=0)
    return describe(c, found[:, 0].copy(), found[:, 1:].copy())


def _ordered(at: Ints) -> Ints:
    """(m, M) brokers with the followers ascending."""
    most = np.iinfo(np.int64).max
    follow = np.where(at[:, 1:] < 0, most, at[:, 1:].astype(np.int64))
    follow.sort(axis=1)
    return np.column_stack([at[:, 0], np.where(follow == most, -1, follow)])


def _shifted(among: Placements) -> Iterator[tuple[int, int, Ints, list[int]]]:
    """Broker, dimension, the placements that shift it, and each shift in units."""
    for broker in range(int(among.broker.max(initial=-1)) + 1):
        for d in range(among.shift.shape[2]):
            at, e = np.nonzero((among.broker == broker) & (among.shift[:, :, d] != 0))
            units = [round(x * SHIFT_UNITS) for x in among.shift[at, e, d].tolist()]
            if len(at):
                yield broker, d, at, units

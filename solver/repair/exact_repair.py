"""The best repair of a small cluster by CP-SAT: most racks, then least excess."""

import math
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from model.snapshot.snapshot import Bools
from solver.budget import Budget
from solver.cpsat.constraints import post_constraints
from solver.cpsat.model import WORK_OF_PAIR, new_solver, pairs
from solver.cpsat.stopping import solve_stoppable
from solver.cpsat.variables import Variables, make_variables
from solver.problem.placement import Placement, is_allowed
from solver.problem.problem import Problem

LARGEST: Final = 2.0**61
"""Largest objective value; CP-SAT refuses more than 2^62."""

UNITS: Final = 2**30
"""Integer units of one limit's excess; loads are rounded up, so that no excess goes unseen."""

MOST: Final = 2**10
"""Multiple of a limit at which one partition's load is capped."""


def repair_exactly(
    problem: Problem, broken: Bools, known: Placement | None, budget: Budget
) -> tuple[Placement | None, bool]:
    """Look for a placement that repairs more than the known one, within the budget.

    `broken` is (n,): rows whose racks to repair. Returns the better placement, or else the
    known one, and whether no allowed placement repairs more. Returns the known one unproved,
    without a model, where the work left does not suffice for building it, or where 64-bit
    integers cannot hold the excess. Nothing is proved where a partition's load exceeds `MOST`
    limits. Charges the work to `budget`. Raises ValueError if CP-SAT rejects the model as invalid.
    """
    building = WORK_OF_PAIR * pairs(problem)
    if building >= budget.work_left or not _representable(problem, broken):
        return known, False
    variables = make_variables(problem, cp_model.CpModel())
    post_constraints(problem, variables)
    excess = _excesses(problem, variables)
    shared = list(_shared(problem, variables, broken))
    # One row's racks outweigh all excess.
    heavy = 1 + sum(most for _, most in excess)
    variables.model.minimize(heavy * sum(shared) + sum(variable for variable, _ in excess))
    if known is not None:
        variables.hint(known)
    part = budget.part(budget.work_left - building)
    solver = new_solver(part.limits, part.limits.work)
    status = solve_stoppable(part, solver, variables.model)
    budget.work += building + part.work
    if status == cp_model.MODEL_INVALID:
        raise ValueError(variables.model.validate())
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return known, False
    found = variables.placement(problem, solver.value)
    if not is_allowed(problem, found):
        return known, False
    return found, status == cp_model.OPTIMAL and not _capped(problem)


def _representable(problem: Problem, broken: Bools) -> bool:
    """Whether the objective and every sum of the model fit 64 bits."""
    beyond = problem.allowed > problem.limit
    with np.errstate(over="ignore"):
        excess = float((problem.allowed[beyond] / problem.limit[beyond]).sum())
    most = problem.goals.replicas_per_broker
    held = problem.allowed_replicas
    excess += float(held[held > most].sum()) / most
    return 4.0 * UNITS * excess * (2 + int(broken.sum())) < LARGEST


def _shared(problem: Problem, variables: Variables, broken: Bools) -> list[cp_model.IntVar]:
    """For each row that shares racks now, whether its replicas stay."""
    found = []
    for row in np.flatnonzero(broken).tolist():
        if row not in variables.holders:
            continue
        home = [b for b in problem.replicas[row].tolist() if (row, b) in variables.on]

        def stays(placement: Placement, _: object, row: int = row) -> int:
            here = problem.replicas[row]
            return int(placement.holders(row) == sorted(here[here >= 0].tolist()))

        stay = variables.boolean(f"shares[{problem.snapshot.id(row)}]", stays)
        on = sum(variables.on[row, b] for b in home)
        variables.model.add(on <= int(problem.rf[row]) - 1 + stay)
        found.append(stay)
    return found


def _excesses(problem: Problem, variables: Variables) -> list[tuple[cp_model.IntVar, int]]:
    """The excess of each broker over each limit it exceeds now, with its upper bound."""
    model, found = variables.model, []
    beyond = problem.allowed > problem.limit
    for b, d in np.argwhere(beyond).tolist():
        limit = problem.limit[b, d]
        most = math.ceil((problem.allowed[b, d] / limit - 1) * UNITS) + 1
        variable = model.new_int_var(0, most * 2, f"excess[{b},{d}]")
        terms = variables.terms.get(b, [])
        shares = [min(float(MOST), float(load[d]) / limit) for _, load in terms]
        total = cp_model.LinearExpr.weighted_sum(
            [v for v, _ in terms], [math.ceil(share * UNITS) for share in shares]
        )
        fixed = math.ceil((variables.fixed[b, d] / limit - 1) * UNITS)
        model.add(variable >= total + fixed)
        found.append((variable, most * 2))
    found += _replica_excesses(problem, variables)
    return found


def _capped(problem: Problem) -> bool:
    """Whether some partition's load is capped, in which case nothing is proved."""
    most = np.maximum(problem.lead, problem.follow).max(axis=0, initial=0.0)
    beyond = problem.allowed > problem.limit
    return bool((beyond & (most > MOST * problem.limit)).any())


def _replica_excesses(problem: Problem, variables: Variables) -> list[tuple[cp_model.IntVar, int]]:
    limit = problem.goals.replicas_per_broker
    rows = list(variables.rows)
    stay = problem.home.sum(axis=0) - problem.home[rows].sum(axis=0)
    over = (problem.allowed_replicas > limit) & problem.may.holding
    found = []
    for b in np.flatnonzero(over).tolist():
        on = [v for (_, holder), v in variables.on.items() if holder == b]
        most = math.ceil((int(problem.allowed_replicas[b]) / limit - 1) * UNITS)
        variable = variables.model.new_int_var(0, most, f"replicas[{b}]")
        unit = math.ceil(UNITS / limit)
        beyond = sum(on) + int(stay[b]) - limit
        variables.model.add(variable >= unit * beyond)
        found.append((variable, most))
    return found

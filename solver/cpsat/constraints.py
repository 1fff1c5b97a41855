"""The solver's half of each hard rule, as constraints of the exact model.

Rules that only remove choices have their half in `solver.problem.eligibility`.
"""

from collections import defaultdict
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from solver.cpsat.move_budgets import post_budgets
from solver.cpsat.rack_spread import post_racks
from solver.cpsat.variables import Variables
from solver.problem.problem import CAPACITY_SLACK, Problem

LIMIT_UNITS: Final = 2**42
"""A broker's limit in whole units. Rounding each of 1,000 loads then errs by 1e-10 of
it, less than `CAPACITY_SLACK`; sums of 1,000 times the limit still fit 64 bits."""

LARGEST: Final = 2.0
"""Loads count as at most this many limits: they fit nowhere either way."""


def post_constraints(problem: Problem, variables: Variables) -> None:
    """Add every hard rule to the model of `variables`, once, before `Objective`.

    Rules that forbid single choices are not posted: those have no variable.
    """
    _post_replication_factor(problem, variables)
    post_racks(problem, variables)
    _post_capacity(problem, variables)
    _post_replica_count(problem, variables)
    post_budgets(problem, variables)
    _post_minimums(problem, variables)


def _post_replication_factor(problem: Problem, variables: Variables) -> None:
    """Each row keeps its number of replicas, on distinct brokers, exactly one of which leads.

    One variable per broker makes replicas distinct.
    """
    model = variables.model
    for row, holders in variables.holders.items():
        on = [variables.on[row, b] for b in holders]
        if problem.rf[row] == 1:
            model.add_exactly_one(on)
            continue
        model.add(sum(on) == int(problem.rf[row]))
        lead = {b: variables.lead[row, b] for b in variables.leaders[row]}
        model.add_exactly_one(lead.values())
        for b, leads in lead.items():
            model.add_implication(leads, variables.on[row, b])


def _post_capacity(problem: Problem, variables: Variables) -> None:
    """Load stays within the limit; a broker over its limit gets no more.

    Loads become whole shares of the limit, of which it has `LIMIT_UNITS`. Only limits that
    could be exceeded are posted.
    """
    for b, terms in variables.terms.items():
        most = variables.fixed[b] + sum(np.maximum(0, load) for _, load in terms)
        for d in np.flatnonzero(most > problem.allowed[b]).tolist():
            limit = problem.allowed[b, d]
            shares = [min(LARGEST, float(load[d]) / limit) for _, load in terms]
            room = 1 + CAPACITY_SLACK - variables.fixed[b, d] / limit
            total = cp_model.LinearExpr.weighted_sum(
                [variable for variable, _ in terms],
                [round(share * LIMIT_UNITS) for share in shares],
            )
            variables.model.add(total <= int(room * LIMIT_UNITS))


def _post_replica_count(problem: Problem, variables: Variables) -> None:
    """A broker holds at most `allowed_replicas`, those of rows without a choice included."""
    rows = list(variables.rows)
    stay = problem.home.sum(axis=0) - problem.home[rows].sum(axis=0)
    held: dict[int, list[cp_model.IntVar]] = defaultdict(list)
    for (_, b), variable in variables.on.items():
        held[b].append(variable)
    for b, on in held.items():
        room = int(problem.allowed_replicas[b] - stay[b])
        if len(on) > room:
            variables.model.add(sum(on) <= room)


def _post_minimums(problem: Problem, variables: Variables) -> None:
    """Each broker leads its minimum of rows of a topic, those without a choice included."""
    for minimum in problem.minimums:
        rows = minimum.rows.tolist()
        stay = [int(problem.leader[row]) for row in rows if row not in variables.holders]
        for b in minimum.brokers:
            leads = [variables.lead[row, b] for row in rows if (row, b) in variables.lead]
            variables.model.add(sum(leads) >= minimum.leaders - stay.count(b))

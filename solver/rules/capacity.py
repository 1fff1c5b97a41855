"""No broker is filled over its limits."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from solver.problem import CAPACITY_SLACK, Problem
from solver.variables import Variables

LIMIT_UNITS: Final = 2**42
"""A broker's limit in whole units. Rounding each of 1,000 loads then errs by 1e-10 of
it, under `CAPACITY_SLACK`; sums of 1,000 times the limit still fit 64 bits."""

LARGEST: Final = 2.0
"""Loads count as no more than this many limits: they fit nowhere either way."""


@dataclass(frozen=True)
class CapacityLimit:
    """Load stays under the limit; a broker over it does not get worse."""

    name: str = "capacity"

    def post(self, problem: Problem, variables: Variables) -> None:
        """One sum for each broker and resource that could get over its limit."""
        for b, terms in variables.terms.items():
            most = variables.fixed[b] + sum(load for _, load in terms)
            for r in np.flatnonzero(most > problem.allowed[b]).tolist():
                limit = problem.allowed[b, r]
                shares = [min(LARGEST, float(load[r]) / limit) for _, load in terms]
                room = 1 + CAPACITY_SLACK - variables.fixed[b, r] / limit
                total = cp_model.LinearExpr.weighted_sum(
                    [variable for variable, _ in terms],
                    [round(share * LIMIT_UNITS) for share in shares],
                )
                variables.model.add(total <= int(room * LIMIT_UNITS))


@dataclass(frozen=True)
class ReplicaLimit:
    """A broker holds at most so many replicas; one over it does not get more."""

    name: str = "replicas per broker"

    def post(self, problem: Problem, variables: Variables) -> None:
        """One sum for each broker that could get over its limit."""
        rows = list(variables.rows)
        stay = problem.home.sum(axis=0) - problem.home[rows].sum(axis=0)
        for b in variables.terms:
            on = [v for (_, holder), v in variables.on.items() if holder == b]
            room = int(problem.allowed_replicas[b] - stay[b])
            if len(on) > room:
                variables.model.add(sum(on) <= room)

"""No broker is filled beyond its limits."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from solver.cpsat.constraints.constraint import Guard, enforce, unguarded
from solver.cpsat.variables import Variables
from solver.problem.problem import CAPACITY_SLACK, Problem

LIMIT_UNITS: Final = 2**42
"""A broker's limit in whole units. Rounding each of 1,000 loads then errs by 1e-10 of
it, less than `CAPACITY_SLACK`; sums of 1,000 times the limit still fit 64 bits."""

LARGEST: Final = 2.0
"""Loads count as at most this many limits: they fit nowhere either way."""


@dataclass(frozen=True)
class CapacityConstraints:
    """Load stays within the limit; a broker over its limit gets no more.

    Guards `capacity of broker ID in DIMENSION`.
    """

    name: str = "capacity"

    def post(self, problem: Problem, variables: Variables, guard: Guard = unguarded) -> None:
        """Post one sum for each broker and dimension that could exceed its limit.

        Loads become whole shares of the limit, of which it has `LIMIT_UNITS`.
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
                key = problem.dimensions[d].key
                enforce(
                    variables.model.add(total <= int(room * LIMIT_UNITS)),
                    guard(f"{self.name} of broker {problem.brokers[b]} in {key}"),
                )


@dataclass(frozen=True)
class ReplicaCountConstraints:
    """A broker holds at most so many replicas; one over the limit gets no more.

    Guards `replicas per broker on broker ID`.
    """

    name: str = "replicas per broker"

    def post(self, problem: Problem, variables: Variables, guard: Guard = unguarded) -> None:
        """Post one sum for each broker that could get more replicas than
        `allowed_replicas`.

        Replicas of rows without a choice count towards it.
        """
        rows = list(variables.rows)
        stay = problem.home.sum(axis=0) - problem.home[rows].sum(axis=0)
        held: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for (_, b), variable in variables.on.items():
            held[b].append(variable)
        for b, on in held.items():
            room = int(problem.allowed_replicas[b] - stay[b])
            if len(on) > room:
                enforce(
                    variables.model.add(sum(on) <= room),
                    guard(f"{self.name} on broker {problem.brokers[b]}"),
                )

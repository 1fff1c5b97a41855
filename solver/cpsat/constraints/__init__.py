"""The solver's half of each hard rule, as constraints of the exact model.

Rules that only remove choices have their half in `solver.problem.eligibility`.
"""

from solver.cpsat.constraints.broker_limits import CapacityConstraints, ReplicaCountConstraints
from solver.cpsat.constraints.constraint import ExactConstraint, Guard, unguarded
from solver.cpsat.constraints.move_budgets import BudgetConstraints
from solver.cpsat.constraints.rack_spread import RackConstraints
from solver.cpsat.constraints.replication_factor import ReplicationFactor

ALWAYS: tuple[ExactConstraint, ...] = (ReplicationFactor(),)
"""Constraints without which a placement is meaningless."""

LIMITS: tuple[ExactConstraint, ...] = (
    RackConstraints(),
    CapacityConstraints(),
    ReplicaCountConstraints(),
    BudgetConstraints(),
)
"""Constraints that can make a plan infeasible, in the order in which they are blamed."""

__all__ = ["ALWAYS", "LIMITS", "ExactConstraint", "Guard", "unguarded"]

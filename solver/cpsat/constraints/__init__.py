"""The solver's half of each hard rule, as constraints of the exact model.

Rules that only take choices away have their half in `solver.problem.eligibility`.
"""

from solver.cpsat.constraints.broker_limits import (
    CapacityConstraints,
    ReplicaCountConstraints,
)
from solver.cpsat.constraints.constraint import ExactConstraint, Guard, unguarded
from solver.cpsat.constraints.move_budgets import BudgetConstraints
from solver.cpsat.constraints.rack_spread import RackConstraints
from solver.cpsat.constraints.replication_factor import ReplicationFactor

ALWAYS: tuple[ExactConstraint, ...] = (ReplicationFactor(),)
"""Without these a placement means nothing."""

LIMITS: tuple[ExactConstraint, ...] = (
    RackConstraints(),
    CapacityConstraints(),
    ReplicaCountConstraints(),
    BudgetConstraints(),
)
"""What can make a plan impossible, in the order in which it is named as the reason."""

__all__ = ["ALWAYS", "LIMITS", "ExactConstraint", "Guard", "unguarded"]

"""The solver's half of each hard rule, as constraints of the exact model.

Rules that only take choices away have their half in `solver.problem.eligibility`.
"""

from solver.cpsat.constraints.broker_limits import CapacityLimit, ReplicaLimit
from solver.cpsat.constraints.constraint import ExactRule, Guard, unguarded
from solver.cpsat.constraints.move_budgets import WithinBudgets
from solver.cpsat.constraints.rack_spread import RackSpread
from solver.cpsat.constraints.replication_factor import Replicas

ALWAYS: tuple[ExactRule, ...] = (Replicas(),)
"""Without these a placement means nothing."""

LIMITS: tuple[ExactRule, ...] = (
    RackSpread(),
    CapacityLimit(),
    ReplicaLimit(),
    WithinBudgets(),
)
"""What can make a plan impossible, in the order in which it is named as the reason."""

__all__ = ["ALWAYS", "LIMITS", "ExactRule", "Guard", "unguarded"]

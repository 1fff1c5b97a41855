"""The solver's half of each hard rule, as constraints of the exact model.

Rules that only take choices away have their half in `solver.eligible`.
"""

from solver.rules.budgets import WithinBudgets
from solver.rules.capacity import CapacityLimit, ReplicaLimit
from solver.rules.racks import RackSpread
from solver.rules.replicas import Replicas
from solver.rules.rule import ExactRule, Guard, unguarded

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

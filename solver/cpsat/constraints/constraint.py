"""What a rule is to the exact model."""

from collections.abc import Callable
from typing import Protocol

from ortools.sat.python import cp_model

from solver.cpsat.variables import Variables
from solver.problem.problem import Problem

Literal = cp_model.LiteralT
"""A decision or its opposite."""

Guard = Callable[[str], cp_model.IntVar | None]
"""The assumption under which a named thing binds; None where it always does."""


def unguarded(_: str) -> cp_model.IntVar | None:
    """Everything binds always."""
    return None


class ExactConstraint(Protocol):
    """A hard rule in its CP-SAT form."""

    @property
    def name(self) -> str:
        """The rule's name, that of its plain half."""
        ...

    def post(
        self, problem: Problem, variables: Variables, guard: Guard = unguarded
    ) -> None:
        """Add the rule's constraints, each named thing under its guard."""
        ...


def enforce(constraint: cp_model.Constraint, *literals: Literal | None) -> None:
    """Let a constraint bind only where all of these hold; None always holds."""
    given = [literal for literal in literals if literal is not None]
    if given:
        constraint.only_enforce_if(given)

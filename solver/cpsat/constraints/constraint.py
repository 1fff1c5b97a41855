"""The interface of constraints of the exact model."""

from collections.abc import Callable
from typing import Protocol

from ortools.sat.python import cp_model

from solver.cpsat.variables import Variables
from solver.problem.problem import Problem

Literal = cp_model.LiteralT
"""A boolean variable or its negation."""

Guard = Callable[[str], cp_model.IntVar | None]
"""Maps a named constraint to the assumption literal under which it binds; None for always."""


def unguarded(_: str) -> cp_model.IntVar | None:
    """Return None for any name, so that every constraint always binds."""
    return None


class ExactConstraint(Protocol):
    """A hard rule in its CP-SAT form; its independent half is in `model.rules`."""

    @property
    def name(self) -> str:
        """The rule's name, the same as in `model.rules`; guards begin with it."""
        ...

    def post(self, problem: Problem, variables: Variables, guard: Guard = unguarded) -> None:
        """Add the rule's constraints to the model, each under its guard."""
        ...


def enforce(constraint: cp_model.Constraint, *literals: Literal | None) -> None:
    """Make a constraint bind only where all these literals are true.

    None stands for a literal that is always true; without others the constraint always binds.
    """
    given = [literal for literal in literals if literal is not None]
    if given:
        constraint.only_enforce_if(given)

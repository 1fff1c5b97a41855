"""What a rule is to the exact model."""

from typing import Protocol

from solver.problem import Problem
from solver.variables import Variables


class ExactRule(Protocol):
    """A hard rule in its CP-SAT form."""

    @property
    def name(self) -> str:
        """The rule's name, that of its plain half."""
        ...

    def post(self, problem: Problem, variables: Variables) -> None:
        """Add the rule's constraints."""
        ...

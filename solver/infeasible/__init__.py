"""Why no placement keeps every rule: reasons by name, and minimal conflicts."""

from solver.budget import Budget
from solver.infeasible.messages import conflict_words
from solver.infeasible.minimal_conflict import Conflict, find_conflict
from solver.infeasible.plain_reasons import plain_reasons
from solver.problem.problem import Problem

__all__ = ["Conflict", "conflict", "find_conflict", "plain_reasons"]


def conflict(problem: Problem, budget: Budget) -> tuple[str, ...]:
    """Describe a smallest set of requirements that cannot all be met.

    Empty where none was found within the search budget.
    """
    found = find_conflict(problem, budget)
    return () if found is None else conflict_words(problem, found)

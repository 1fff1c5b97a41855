"""Why no placement keeps every rule, in words with names."""

from solver.budget import Budget
from solver.infeasible.messages import conflict_words
from solver.infeasible.minimal_conflict import Conflict, find_conflict
from solver.infeasible.plain_reasons import plain_reasons
from solver.problem.problem import Problem

__all__ = ["Conflict", "conflict", "find_conflict", "plain_reasons"]


def conflict(problem: Problem, budget: Budget) -> tuple[str, ...]:
    """The smallest set of things that cannot all be kept, in words.

    Empty where none was found within the search budget.
    """
    found = find_conflict(problem, budget)
    return () if found is None else conflict_words(problem, found)

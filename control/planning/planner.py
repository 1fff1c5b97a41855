"""The planner as the loop calls it; the solver is loaded with the first plan."""

from collections.abc import Callable

from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver

Planner = Callable[[Snapshot, Goals, SolveLimits, SolveObserver], Result]
"""Finds the best plan for a snapshot. The observer receives the progress, and may end the
solve early."""


def planner(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
) -> Result:
    """Call `solver.solve.solve`, importing it first."""
    # The import takes a second or two, which the first screen need not wait for.
    from solver.solve import solve

    return solve(snapshot, goals, limits, observer)

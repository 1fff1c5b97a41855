"""The planner as the loop calls it; the solver is loaded with the first plan."""

from collections.abc import Callable

from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver

Planner = Callable[[Snapshot, Goals, SolveLimits, SolveObserver, Plan | None], Result]
"""Finds the best plan for a snapshot, near to an earlier one if there is one. The observer
receives the progress, and may end the solve early."""


def planner(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver,
    earlier: Plan | None,
) -> Result:
    """Call `solver.solve.solve`, importing it first."""
    # The import takes a second or two, which the first screen need not wait for.
    from solver.solve import solve

    return solve(snapshot, goals, limits, observer, earlier)

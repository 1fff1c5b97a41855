"""The planner, loaded with the first plan."""

from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver


def planner(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver | None = None,
) -> Result:
    """`solver.solve.solve`."""
    # The import takes a second or two, which the first screen need not wait for.
    from solver.solve import solve

    return solve(snapshot, goals, limits, observer)

"""The planner as the loop calls it; the solver is loaded with the first plan."""

from typing import Protocol

from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver


class Planner(Protocol):
    """Finds the best plan for a snapshot; `solver.solve.solve` is one."""

    def __call__(
        self, snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
    ) -> Result:
        """Solve; `observer` receives the progress and may end the solve early."""
        ...


def planner(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver | None = None
) -> Result:
    """Call `solver.solve.solve`, importing it first."""
    # The import takes a second or two, which the first screen need not wait for.
    from solver.solve import solve

    return solve(snapshot, goals, limits, observer)

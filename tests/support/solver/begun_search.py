"""Searches that have only begun, for tests of their parts, and one who stops them."""

from model.goals.goals import Goal, Goals, ObjectiveKind, SolveLimits
from model.snapshot.snapshot import Resource, Snapshot
from solver.problem.placement import Placement
from solver.problem.problem import compile_problem
from solver.search.observer import SolveObserver
from solver.search.search import Search


def begun(snapshot: Snapshot, goals: Goals, work: float = 2.0) -> Search:
    """A search that knows the placement of the snapshot, where that is allowed."""
    problem = compile_problem(snapshot, goals)
    search = Search(problem=problem, limits=SolveLimits(work=work))
    if not problem.may.forced.any():
        search.offer(Placement.home(problem))
    return search


def banded(tolerance: float = 0.09) -> Goals:
    """The tolerance band of both rates."""
    return Goals(
        objective=ObjectiveKind.BAND,
        balance=tuple(
            Goal(resource=r, floor=0.0, tolerance=tolerance)
            for r in (Resource.NET_IN, Resource.NET_OUT)
        ),
    )


class Stopping(SolveObserver):
    """Asks to stop at once."""

    def stops(self) -> bool:
        return True

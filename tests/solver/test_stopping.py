"""A solve that is asked to end does, also while CP-SAT works, with what it has."""

import pytest

from model.goals import Goals, ObjectiveKind, SolveLimits
from model.plan import PlanStatus
from model.snapshot import BrokerState, Snapshot
from solver.exact import solve_exactly
from solver.observer import SolveObserver
from solver.placement import Placement
from solver.problem import compile_problem
from solver.search import Search
from solver.solve import solve
from tests.solver.instances import synthetic

HARD = synthetic(8, 80, seed=2)
"""Whose exact model is not proved within `LIMITS`, which take minutes."""
LIMITS = SolveLimits(work=20.0)


class Asking(SolveObserver):
    """Asks to end once it has heard of so many plans."""

    def __init__(self, after: int) -> None:
        self._left = after

    def on_solution(self, objective: float, moves: int) -> None:
        self._left -= 1

    def stops(self) -> bool:
        return self._left <= 0


@pytest.mark.parametrize("objective", ObjectiveKind)
@pytest.mark.parametrize("better", [0, 2])
def test_the_exact_rounds_end_with_the_best_so_far(
    objective: ObjectiveKind, better: int
) -> None:
    wanted = Goals(objective=objective)
    problem = compile_problem(HARD, wanted)
    search = Search(
        problem=problem,
        limits=LIMITS,
        observer=Asking(after=1 + better),
    )
    search.offer(Placement.home(problem))
    before = search.objective
    solve_exactly(search)
    assert search.stopped
    assert search.work < LIMITS.work / 10
    assert not search.proved
    assert search.objective < before or not better


def test_a_solve_that_ends_before_any_placement_was_found_says_so() -> None:
    """Not that the limits allow none, and without looking for reasons."""
    result = solve(
        _draining(synthetic(12, 200, seed=2)),
        Goals(objective=ObjectiveKind.BAND),
        LIMITS,
        Asking(after=0),
    )
    assert result.status is PlanStatus.STOPPED
    assert result.best is None
    assert result.reasons == (
        "no placement that keeps every rule was found until then",
    )


def _draining(snapshot: Snapshot) -> Snapshot:
    """Its second broker is to end with nothing."""
    brokers = list(snapshot.header.brokers)
    brokers[1] = brokers[1].model_copy(update={"state": BrokerState.DRAINING})
    header = snapshot.header.model_copy(update={"brokers": tuple(brokers)})
    return Snapshot(header, snapshot.partitions)


def test_whoever_follows_and_does_not_ask_changes_nothing() -> None:
    snapshot = synthetic(3, 12, seed=1)
    plans = [
        solve(snapshot, Goals(), SolveLimits(work=2.0), observer).best
        for observer in (None, Asking(after=10**9))
    ]
    assert plans[0] is not None
    assert plans[0] == plans[1]

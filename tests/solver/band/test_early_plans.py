"""Large clusters have a plan before the bound is proved."""

import pytest

from model.goals.goals import SolveLimits
from solver.band import column_generation
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.solver.begun_search import banded
from tests.support.solver.zipf_clusters import synthetic


class Recording(SolveObserver):
    """Records the F of plans found before the first bound, and stops there."""

    def __init__(self) -> None:
        self.before: list[float] = []
        self.proved = False

    def on_solution(self, objective: float, moves: int) -> None:
        """A better plan was found."""
        if not self.proved:
            self.before.append(objective)

    def on_bound(self, bound: float) -> None:
        """A better bound was proved."""
        self.proved = True

    def stops(self) -> bool:
        """Whether there is a bound."""
        return self.proved


@pytest.mark.parametrize(("first_at", "expected_early"), [(0.0, True), (1e9, False)])
def test_a_plan_is_found_before_the_bound_is_proved(
    monkeypatch: pytest.MonkeyPatch, first_at: float, expected_early: bool
) -> None:
    monkeypatch.setattr(column_generation, "EARLY_WORK", first_at)
    observer = Recording()
    result = solve(synthetic(10, 500, seed=3), banded(), SolveLimits(work=20.0), observer)
    stays, *early = observer.before
    assert bool(early) is expected_early
    assert all(objective < stays for objective in early)
    assert result.bound is not None
    assert result.objective is not None
    assert 0.0 < result.bound <= result.objective

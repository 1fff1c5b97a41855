"""Large clusters have a plan before the bound is proved."""

import pytest

from model.evaluate import evaluate
from model.goals.goals import Goal, Goals, ObjectiveKind, SolveLimits
from model.snapshot.snapshot import BrokerState, Count, Resource
from solver.band import column_generation
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.solver.begun_search import banded
from tests.support.solver.exact_oracle import Row, broker, cluster
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


def counted() -> Goals:
    """The tolerance band of a rate and of the number of replicas."""
    goals = [Goal(resource=r, floor=0.0, tolerance=0.09) for r in (Resource.NET_IN, Count.REPLICAS)]
    return Goals(objective=ObjectiveKind.BAND, balance=tuple(goals))


@pytest.mark.parametrize(
    ("goals", "work", "expected"),
    [(counted(), 20.0, True), (counted(), 2.0, True), (banded(), 20.0, False)],
)
def test_counts_are_balanced_before_there_are_prices(
    monkeypatch: pytest.MonkeyPatch, goals: Goals, work: float, expected: bool
) -> None:
    monkeypatch.setattr(column_generation, "EARLY_WORK", 1e9)
    observer = Recording()
    result = solve(synthetic(10, 500, seed=3), goals, SolveLimits(work=work), observer)
    assert (len(observer.before) > 1) is expected
    assert result.bound is not None
    # The first plan already has every broker inside its band: F counts its moves.
    assert not expected or observer.before[-1] < 3 * result.bound


def test_a_plan_made_without_prices_empties_a_draining_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column_generation, "EARLY_WORK", 1e9)
    members = [broker(1, state=BrokerState.DRAINING), *(broker(b) for b in range(2, 9))]
    snapshot = cluster(members, [Row(replicas=(i % 4 + 1,)) for i in range(200)])
    observer = Recording()
    result = solve(snapshot, counted(), SolveLimits(work=20.0), observer)
    evacuated, *early = observer.before
    assert result.objective == min(early) < evacuated
    assert result.best is not None
    evaluation = evaluate(snapshot, counted(), result.best.moves)
    assert evaluation.violations == ()
    assert evaluation.within_band(counted())

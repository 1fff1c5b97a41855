"""Tolerance bands beyond exact sizes: bounds and plans, against all placements."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from model.evaluate import evaluate
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.band.load_prices import BandDual
from solver.band.tolerance_band import Lift, solve_by_prices
from solver.problem.placement import is_allowed
from solver.problem.problem import compile_problem
from solver.solve import solve
from tests.support.solver.begun_search import banded, begun
from tests.support.solver.exact_oracle import least
from tests.support.solver.random_problems import clusters, random_goals
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search


@settings(max_examples=40, deadline=None)
@given(
    snapshot=clusters(most_brokers=3, most_rows=4, most_rf=2),
    goals=random_goals(),
    draw=st.randoms(use_true_random=False),
)
def test_any_prices_prove_a_bound(snapshot: Snapshot, goals: Goals, draw: object) -> None:
    """For any prices, D is at most the F of every allowed placement."""
    goals = goals.model_copy(update={"objective": ObjectiveKind.BAND})
    best = least(snapshot, goals)
    assume(best is not None)
    assert best is not None
    dual = BandDual(compile_problem(snapshot, goals))
    for scale in (0.0, 0.1, 3.0):
        prices = np.array(
            [
                [scale * draw.uniform(-m, m) for m in dual.most.tolist()]  # type: ignore[attr-defined]
                for _ in dual.home
            ]
        ).reshape(dual.home.shape)
        prices = np.clip(prices, -dual.most, dual.most) * (dual.columns.scale > 0)
        assert dual.value(prices) <= best + 1e-9


@settings(max_examples=25, deadline=None)
@given(snapshot=clusters(most_brokers=3, most_rows=4, most_rf=2), goals=random_goals())
@pytest.mark.slow
def test_bound_and_annealing_enclose_the_optimum(snapshot: Snapshot, goals: Goals) -> None:
    goals = goals.model_copy(update={"objective": ObjectiveKind.BAND})
    search = begun(snapshot, goals)
    best = least(snapshot, goals)
    assume(best is not None)
    assert best is not None
    solve_by_prices(search)
    assert not search.infeasible
    assert search.bound <= best + 1e-9
    assert search.objective >= best - 1e-9
    if search.best is not None:
        assert is_allowed(search.problem, search.best)


@pytest.mark.parametrize("seed", [3, 5])
def test_ten_brokers_and_five_hundred_partitions_are_proved(seed: int) -> None:
    """The fewest moves into a band of 9 %, found and proved."""
    snapshot = synthetic(10, 500, seed=seed)
    result = solve(snapshot, banded(), SolveLimits(work=20.0))
    assert result.best is not None
    assert result.objective == pytest.approx(result.bound, abs=1e-6)
    evaluation = evaluate(snapshot, banded(), result.best.moves)
    assert evaluation.violations == ()
    assert evaluation.within_band(banded())
    assert evaluation.objective == pytest.approx(result.objective)


@pytest.mark.slow
def test_plans_are_reproducible() -> None:
    """Equal arguments, equal bytes; so does not another seed by chance."""
    snapshot, limits = synthetic(12, 300, rf=3, seed=3), SolveLimits(work=3.0)
    first = solve(snapshot, banded(), limits).best
    again = solve(snapshot, banded(), limits).best
    assert first is not None
    assert again is not None
    assert first.hash == again.hash


def test_a_band_out_of_reach_is_approached() -> None:
    """Large partitions fit no band: the bound holds, and the excess falls."""
    snapshot = synthetic(30, 60, seed=5)
    search = begun(snapshot, banded())
    before = search.objective
    solve_by_prices(search)
    assert search.bound <= search.objective < before


@pytest.mark.parametrize(
    ("bound", "lifted"), [(10.0, 10.5), (10.5, 10.5), (10.5001, 10.51), (10.6, 11.55), (0.0, 0.0)]
)
def test_a_bound_is_lifted_to_the_next_possible_cost(bound: float, lifted: float) -> None:
    lift = Lift(step=1.05, slack=100.0)
    assert lift.of(bound) == pytest.approx(lifted)


def test_the_least_needed_bound_proves_the_plan() -> None:
    lift = Lift(step=1.05, slack=100.0)
    assert lift.of(lift.needed(11.55)) == pytest.approx(11.55)
    assert lift.needed(11.55) < 10.52


def test_without_a_plan_no_bound_is_enough() -> None:
    assert Lift(step=1.05, slack=100.0).of(float("inf")) == float("inf")
    assert Lift(step=1.05, slack=100.0).needed(float("inf")) == float("inf")


@pytest.mark.search
def test_a_dead_broker_is_emptied_however_small_the_budget() -> None:
    """Forced moves are placed before the linear program is built."""
    snapshot = _with_dead_broker(4)
    first = snapshot.header.brokers[0]
    result = solve(snapshot, banded(), SolveLimits(work=0.01))
    assert result.best is not None
    assert not any(first.id in m.replicas_after for m in result.best.moves)


def _with_dead_broker(seed: int) -> Snapshot:
    snapshot = synthetic(9, 240, rf=3, seed=seed)
    first, *others = snapshot.header.brokers
    dead = first.model_copy(update={"state": BrokerState.DEAD})
    header = snapshot.header.model_copy(update={"brokers": (dead, *others)})
    return Snapshot(header, snapshot.partitions)


@pytest.mark.search
def test_more_rows_must_move_than_one_round_adds_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program has a placement for each of them, so it proves a bound all the same."""
    snapshot = _with_dead_broker(4)
    usual = solve(snapshot, banded(), SolveLimits(work=2.0))
    monkeypatch.setattr("solver.band.column_generation.MOST_NEW", 20)
    result = solve(snapshot, banded(), SolveLimits(work=2.0))
    assert result.best is not None
    assert result.objective is not None
    assert usual.best is not None
    assert result.best.price_bound == pytest.approx(usual.best.price_bound, rel=0.01)
    assert 0.0 < result.best.price_bound <= result.objective


@pytest.mark.search
def test_leaders_on_a_dead_broker_are_a_bound_at_once() -> None:
    """Before the program has proved anything, each of them must be changed all the same."""
    snapshot, given_goals = _with_dead_broker(4), banded()
    dead = snapshot.header.brokers[0].id
    led = int((snapshot.partitions.leader == dead).sum())
    result = solve(snapshot, given_goals, SolveLimits(work=0.02))
    assert led > 0
    assert result.best is not None
    assert result.best.price_bound >= given_goals.leader_price_share * led * (1 - 1e-6)

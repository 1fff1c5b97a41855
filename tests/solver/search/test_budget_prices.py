"""Prices of budgets: what they charge, and what they prove."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from control.planning.validate import refuse_broken
from model.bound.bound import price_bound
from model.goals.goals import Budgets, Goals, ObjectiveKind, SolveLimits
from model.snapshot.snapshot import Snapshot, StorageKind
from solver.bounds.lagrangian import improve_bound
from solver.bounds.reduced_cost_fixing import prove_over_open_choices
from solver.budget import Budget
from solver.infeasible.plain_reasons import plain_reasons
from solver.kernels.move_deltas import new_state, objective
from solver.kernels.problem_arrays import find_columns
from solver.problem.problem import compile_problem
from solver.search.budget_prices import allowed, price_budgets, use_of
from solver.search.dual import Relaxation, solve_relaxation, warm_up
from solver.search.local_search import search_locally
from solver.search.search import Search
from solver.solve import solve
from tests.support.solver.exact_methods import exact_method
from tests.support.solver.exact_oracle import least, placement_count
from tests.support.solver.random_problems import clusters, random_goals
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

LIMITS = SolveLimits(work=4.0)
MOST_WAYS = 3_000
"""Placements up to which all of a cluster's are tried."""


def wanted(**budgets: int) -> Goals:
    return Goals(move_price=0.002, budgets=Budgets(**budgets))


def warm(snapshot: Snapshot, goals: Goals) -> tuple[Relaxation, float]:
    """A relaxation that is warm, and F without changes."""
    c = find_columns(compile_problem(snapshot, goals))
    home = new_state(c, c.home)
    r = Relaxation(c, home.v, 1)
    warm_up(r)
    return r, objective(c, home)


@pytest.mark.parametrize("rf", [1, 3])
@pytest.mark.parametrize(
    "budgets",
    [
        {"replica_moves": 2},
        {"replica_moves": 6},
        {"replica_moves": 10, "leader_changes": 6},
        {"bytes": 20_000_000_000},
    ],
    ids=str,
)
def test_the_relaxation_uses_about_what_the_budgets_allow(rf: int, budgets: dict[str, int]) -> None:
    storage = StorageKind.REPLICATED
    r, before = warm(synthetic(10, 300, rf=rf, seed=2, storage=storage), wanted(**budgets))
    most = allowed(r.columns)
    assert (use_of(r) > most).any()
    price_budgets(r, before)
    use, priced = use_of(r), r.budget_prices > 1e-6 * before / most
    assert priced.any()
    assert (use <= 1.1 * most).all()
    assert (use >= 0.9 * most)[priced].all()


def test_budgets_that_do_not_bind_have_no_price() -> None:
    r, before = warm(synthetic(10, 300, seed=2), wanted(replica_moves=10_000, leader_changes=900))
    columns = r.columns
    price_budgets(r, before)
    assert r.columns is columns
    assert not r.budget_prices.any()
    assert r.given_back == 0.0


def test_a_budget_of_nothing_has_a_price_at_which_nothing_moves() -> None:
    r, before = warm(synthetic(10, 300, seed=2), wanted(replica_moves=0))
    price_budgets(r, before)
    assert use_of(r)[0] < 1.0
    solve_relaxation(r, 1.0)
    assert r.given_back == 0.0
    assert r.bound == pytest.approx(before, rel=0.02)


@pytest.mark.parametrize("size", [0, 1, 1_000])
@pytest.mark.parametrize("rf", [1, 3])
def test_hardly_a_byte_has_a_bound_that_can_be_recomputed(rf: int, size: int) -> None:
    """A price too high for one byte drowned the rest in rounding."""
    snapshot = synthetic(8, 200, rf=rf, seed=7, storage=StorageKind.REPLICATED)
    goals = wanted(bytes=size)
    plan = solve(snapshot, goals, SolveLimits(work=2.0)).best
    assert plan is not None
    prices = {b.id: b.bound_prices for b in plan.brokers}
    recomputed = price_bound(snapshot, goals, prices, plan.repaired, plan.budget_prices)
    assert plan.price_bound == pytest.approx(recomputed, rel=1e-6)
    assert plan.gap < 0.1 * plan.objective


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("rf", [1, 3])
def test_the_bound_knows_the_budgets(rf: int, seed: int) -> None:
    """Without prices of budgets, the gap was over 80 % of F."""
    snapshot = synthetic(10, 400, rf=rf, seed=seed)
    free = solve(snapshot, wanted(), LIMITS).best
    assert free is not None
    moves = sum(len(m.added) for m in free.moves)
    leaders = sum(m.leader_before != m.leader_after for m in free.moves)
    goals = wanted(replica_moves=moves // 5, leader_changes=leaders // 5)
    plan = solve(snapshot, goals, LIMITS).best
    assert plan is not None
    refuse_broken(snapshot, plan)
    assert plan.objective > 2.0 * free.objective
    assert plan.gap < 0.1 * plan.objective
    assert set(plan.budget_prices) <= {"replica_moves", "leader_changes"}
    prices = {b.id: b.bound_prices for b in plan.brokers}
    recomputed = price_bound(snapshot, goals, prices, plan.repaired, plan.budget_prices)
    assert plan.price_bound == pytest.approx(recomputed, rel=1e-8)
    assert plan.schema_version == "1.12"


@pytest.mark.slow
@pytest.mark.usefixtures(exact_method.__name__)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    snapshot=clusters(most_rows=7),
    goals=random_goals(),
    replicas=st.none() | st.integers(0, 4),
    leaders=st.none() | st.integers(0, 4),
    size=st.none() | st.sampled_from([0, 1, 10, 300, 1_000, 10**6]),
    move_price=st.sampled_from([None, 1e-6, 0.01, 1.0]),
)
def test_no_placement_within_the_budgets_beats_what_is_proved(
    snapshot: Snapshot,
    goals: Goals,
    replicas: int | None,
    leaders: int | None,
    size: int | None,
    move_price: float | None,
) -> None:
    """By prices, by brokers kept whole, and over the choices that prices leave open."""
    budgets = Budgets(replica_moves=replicas, leader_changes=leaders, bytes=size)
    given_goals = goals.model_copy(
        update={"objective": ObjectiveKind.VARIANCE, "budgets": budgets, "move_price": move_price}
    )
    problem = compile_problem(snapshot, given_goals)
    assume(not plain_reasons(problem, Budget(limits=LIMITS)))
    assume(placement_count(snapshot, given_goals) <= MOST_WAYS)
    best = least(snapshot, given_goals)
    search = Search(problem=problem, limits=LIMITS)
    local = search_locally(search, work=0.2)
    if best is None or local is None or search.best is None:
        assert best is not None or search.best is None
        return
    slack = 1e-9 * max(1.0, best)
    assert search.bound <= best + slack
    prices = {} if search.prices is None else prices_of(search)
    proved = price_bound(snapshot, given_goals, prices, (), search.budget_prices)
    assert proved <= best + slack
    assert search.price_bound <= proved + 1e-7 * max(1.0, best)
    improve_bound(local, 0.2)
    assert search.bound <= best + slack
    if not problem.topic_share:
        prove_over_open_choices(local)
        assert search.bound <= best + 1e-5 * max(1.0, best)


def prices_of(search: Search) -> dict:
    """The prices of each broker that may keep load, as in a plan."""
    problem = search.problem
    assert search.prices is not None
    return {
        broker: dict(zip(problem.keys, search.prices[b].tolist(), strict=True))
        for b, broker in enumerate(problem.brokers)
        if problem.may.holding[b]
    }


def test_the_price_of_a_budget_is_what_one_more_move_gains() -> None:
    """About: F of the relaxation with a move more or less."""
    snapshot, bounds, price = synthetic(10, 400, seed=5), [], 0.0
    for moves in (5, 6, 7):
        r, before = warm(snapshot, wanted(replica_moves=moves))
        price_budgets(r, before)
        solve_relaxation(r, 2.0)
        bounds.append(r.bound - r.given_back)
        price = float(r.budget_prices[0]) if moves == 6 else price
    gained = -np.diff(bounds)
    assert gained[1] * 0.95 <= price <= gained[0] * 1.05

"""The solver and the evaluator agree on any cluster and goals."""

import pytest
from hypothesis import assume, given, settings

from control.planning.validate import refuse_broken
from model.bound.bound import price_bound
from model.evaluate import evaluate
from model.goals.goals import Goal, Goals, ObjectiveKind, SolveLimits
from model.ids import BrokerId
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Broker, BrokerState, Resource, Snapshot, StorageKind
from solver.budget import Budget
from solver.infeasible.plain_reasons import plain_reasons
from solver.problem.problem import compile_problem
from solver.report.build_plan import build_plan
from solver.report.result import Result
from solver.search.local_search import search_locally
from solver.search.observer import SolveObserver
from solver.search.search import Search
from solver.solve import solve
from tests.support.solver.exact_methods import exact_method
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, least, placement_count
from tests.support.solver.random_problems import clusters, random_goals

pytestmark = [pytest.mark.search, pytest.mark.usefixtures(exact_method.__name__)]

ALIVE = BrokerState.ALIVE
LIMITS = SolveLimits(work=1.0)
MOST_WAYS = 3_000
"""Placements up to which all of a cluster's are tried."""


@settings(max_examples=60, deadline=None)
@given(snapshot=clusters(most_rows=8), goals=random_goals())
def test_every_plan_passes_the_evaluator(snapshot: Snapshot, goals: Goals) -> None:
    """Same F, same levels, no violation, and a bound that is not above F."""
    result = solve(snapshot, goals, LIMITS)
    assert (result.best is None) == (
        result.status in (PlanStatus.INFEASIBLE, PlanStatus.NONE_IN_TIME)
    )
    if result.best is None:
        assert result.reasons
        return
    assert result.objective is not None
    assert result.bound is not None
    evaluation = evaluate(snapshot, goals, result.best.moves)
    assert evaluation.violations == ()
    refuse_broken(snapshot, result.best)
    assert evaluation.objective == pytest.approx(result.objective, rel=1e-9, abs=1e-9)
    assert result.bound <= evaluation.objective
    levels = result.best.levels
    assert {key: evaluation.levels[key] for key in levels} == pytest.approx(levels)
    assert result.best.moves or result.reasons


@settings(max_examples=100, deadline=None)
@given(snapshot=clusters(), goals=random_goals())
def test_no_placement_beats_the_bound(snapshot: Snapshot, goals: Goals) -> None:
    """The bound holds for all placements, and infeasibility agrees with enumeration."""
    assume(placement_count(snapshot, goals) <= MOST_WAYS)
    result = solve(snapshot, goals, LIMITS)
    best = least(snapshot, goals, result.best)
    if best is None:
        assert result.status is PlanStatus.INFEASIBLE
        return
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= best
    if not unproved(result):
        assert result.objective <= best + 1e-5 * max(1.0, best)
    if result.best is not None:
        assert bound_of(result.best, snapshot) <= best


def unproved(result: Result) -> bool:
    """Whether the search budget was exhausted before the proof."""
    assert result.objective is not None
    assert result.bound is not None
    return result.objective - result.bound > LIMITS.gap


def bound_of(plan: Plan, snapshot: Snapshot) -> float:
    """What its prices prove."""
    prices = {b.id: b.bound_prices for b in plan.brokers}
    return price_bound(snapshot, plan.goals, prices, plan.repaired, plan.budget_prices)


@settings(max_examples=100, deadline=None)
@given(snapshot=clusters(), goals=random_goals())
@pytest.mark.slow
def test_searched_plans_keep_rules_and_bounds_too(snapshot: Snapshot, goals: Goals) -> None:
    """The method for large clusters, on small ones whose placements are enumerated."""
    goals = goals.model_copy(update={"objective": ObjectiveKind.VARIANCE})
    assume(not plain_reasons(compile_problem(snapshot, goals), Budget(limits=LIMITS)))
    assume(placement_count(snapshot, goals) <= MOST_WAYS)
    check_search(snapshot, goals)


@pytest.mark.parametrize(("capacity", "later"), [(50.0, 40.0), (3.0, 2.0)])
def test_a_search_leaves_no_leader_on_a_demoted_broker(capacity: float, later: float) -> None:
    """Where the other replica's broker is nearly full, the leader stayed and the replica moved."""
    members = [
        Broker(id=BrokerId(1), rack="a", state=ALIVE, capacity={Resource.NET_OUT: capacity}),
        Broker(id=BrokerId(2), rack="a", state=BrokerState.DEMOTED),
        Broker(id=BrokerId(3), rack="a", state=ALIVE, capacity={Resource.NET_OUT: 3.0}),
    ]
    small = Row(replicas=(1,), load=(1.0, 1.0), later=(1.0, 1.0), leader=1)
    led = Row(replicas=(1, 2), load=(1.0, 1.0), later=(1.0, later), leader=2)
    goals = Goals(balance=(Goal(resource=Resource.NET_IN),), move_price=0.01)
    check_search(cluster(members, [small, small, led]), goals)


@pytest.mark.parametrize("objective", ObjectiveKind)
@pytest.mark.parametrize("budgets", [{"replica_moves": 0}, {"bytes": 0}, {}])
def test_a_leader_changes_alone_where_no_replica_may_move(
    objective: ObjectiveKind, budgets: dict[str, int]
) -> None:
    """Its replicas share a rack, and stay there for lack of room; else both are repaired."""
    members = [broker(1, "b"), broker(2, "a"), broker(3, "b", BrokerState.DEMOTED)]
    rows = [Row(replicas=(3, 1)), Row(replicas=(2,))]
    snapshot = cluster(members, rows, storage=StorageKind.REPLICATED)
    given_goals = goals(
        5.0, balance=(Goal(resource=Resource.NET_IN),), objective=objective, budgets=budgets
    )
    plan = solve(snapshot, given_goals, LIMITS).best
    assert plan is not None
    refuse_broken(snapshot, plan)
    assert plan.moves[0].leader_before == BrokerId(3) != plan.moves[0].leader_after
    assert bool(plan.repaired) == any(move.added for move in plan.moves) == (not budgets)
    assert plan.objective == pytest.approx(least(snapshot, given_goals, plan))
    assert bound_of(plan, snapshot) <= plan.objective
    check_search(snapshot, given_goals)


def check_search(snapshot: Snapshot, goals: Goals) -> None:
    """Search by the method for large clusters, and judge what it found by enumeration."""
    problem = compile_problem(snapshot, goals)
    best = least(snapshot, goals)
    search = Search(problem=problem, limits=LIMITS, observer=SolveObserver())
    search_locally(search, work=0.2)
    if best is None:
        assert search.best is None
        return
    assert search.bound <= best
    if search.best is not None:
        plan = build_plan(search, search.best, PlanStatus.IMPROVED)
        evaluation = evaluate(snapshot, goals, plan.moves)
        assert evaluation.violations == ()
        assert evaluation.objective == pytest.approx(search.objective, rel=1e-9, abs=1e-9)
        assert bound_of(plan, snapshot) <= best

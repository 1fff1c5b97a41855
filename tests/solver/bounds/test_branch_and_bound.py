"""Branch and bound agrees with enumeration, and proves its result."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.instances import build, goals_of
from benchmarks.shapes import shape_of
from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import BrokerState, Snapshot, StorageKind
from solver.bounds.branch_and_bound import branch_and_bound
from solver.bounds.cardinality import prove_by_counts
from solver.bounds.configurations import list_configurations
from solver.bounds.incumbent import METHOD, Incumbent
from solver.search.local_search import LocalSearch, search_locally
from solver.solve import solve
from tests.support.solver.begun_search import begun
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, least

pytestmark = pytest.mark.search

BROKERS = [broker(1, "a"), broker(2, "a"), broker(3, "b"), broker(4, "b")]
LOADS = st.tuples(st.sampled_from([0.0, 1.0, 3.1, 10.2]), st.sampled_from([0.0, 2.3, 5.9, 17.0]))
HOMES = st.sampled_from([(1, 3), (3, 1), (2, 4), (1,), (4,)])
ROWS = st.lists(
    st.builds(Row, replicas=HOMES, load=LOADS, local_bytes=st.integers(1, 300)),
    min_size=2,
    max_size=4,
    unique_by=lambda row: (row.load, row.replicas, row.local_bytes),
)


def searched(snapshot: Snapshot, given_goals: Goals) -> LocalSearch | None:
    return search_locally(begun(snapshot, given_goals, 3.0), 0.1)


@settings(max_examples=15, deadline=None)
@given(
    rows=ROWS,
    drained=st.booleans(),
    price=st.sampled_from([0.01, 0.3]),
    capacity=st.sampled_from([None, 30.0]),
)
@pytest.mark.slow
def test_plan_and_bound_meet_at_the_least_f_of_all_placements(
    rows: list[Row], drained: bool, price: float, capacity: float | None
) -> None:
    state = BrokerState.DRAINING if drained else BrokerState.ALIVE
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    members = [broker(b, rack, capacity=capacity) for b, rack in racks.items()]
    members[0] = broker(1, "a", state, capacity)
    snapshot = cluster(members, rows, storage=StorageKind.REPLICATED)
    given_goals = goals(price)
    local = searched(snapshot, given_goals)
    best = least(snapshot, given_goals)
    if local is None or best is None:
        return
    branch_and_bound(local)
    search = local.search
    assert search.bound <= best + 1e-9
    assert search.objective >= best - 1e-9
    if capacity is None and search.method == METHOD:
        assert search.objective == pytest.approx(best, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(rows=ROWS, price=st.sampled_from([0.01, 0.3]))
@pytest.mark.slow
def test_numbers_of_moves_prove_no_more_than_all_placements_do(
    rows: list[Row], price: float
) -> None:
    snapshot = cluster(BROKERS, rows)
    given_goals = goals(price)
    local, best = searched(snapshot, given_goals), least(snapshot, given_goals)
    listed = None if local is None else list_configurations(local)
    if local is None or best is None or listed is None:
        return
    search = local.search
    prove_by_counts(Incumbent(local, listed), search.work + 1.0)
    assert search.bound <= best + 1e-9
    assert search.objective >= best - 1e-9


def test_where_all_moves_cost_the_same_their_number_is_proved() -> None:
    # Prices alone leave 12 and 13 moves open, and take ten times as long.
    shape = shape_of("3x60")
    result = solve(build(shape, 2), goals_of(shape), SolveLimits(work=2.0))
    assert result.status is PlanStatus.OPTIMAL
    assert result.objective == pytest.approx(0.0136023734, abs=1e-9)


def test_a_small_replicated_cluster_gets_a_better_bound_than_prices_prove() -> None:
    shape = replace(shape_of("6x60-rf3"), partitions=45)
    given_goals = goals_of(shape).model_copy(update={"move_price": None})
    snapshot = build(shape, 1)
    result = solve(snapshot, given_goals, SolveLimits(work=1.0))
    assert result.best is not None
    assert result.best.bound_method == METHOD
    assert result.best.price_bound < result.best.bound <= result.best.objective
    evaluation = evaluate(snapshot, given_goals, result.best.moves)
    assert not evaluation.violations
    assert evaluation.objective == pytest.approx(result.best.objective, abs=1e-8)


def test_equal_seeds_give_equal_plans() -> None:
    shape = replace(shape_of("6x60-rf3"), partitions=45)
    snapshot, limits = build(shape, 2), SolveLimits(work=0.5, seed=3)
    one, other = (solve(snapshot, goals_of(shape), limits) for _ in range(2))
    assert one.best is not None
    assert one.best == other.best


def test_budgets_and_many_equal_rows_are_left_to_the_exact_model() -> None:
    loads = [Row(replicas=(1, 3), load=(1.0 + i, 2.0)) for i in range(6)]
    local = searched(cluster(BROKERS, loads), goals(0.01, budgets={"replica_moves": 2}))
    assert local is not None
    assert not branch_and_bound(local)
    assert local.search.problem.most_excess == np.inf
    local = searched(cluster(BROKERS, loads[:1] * 6), goals(0.01))
    assert local is not None
    assert not branch_and_bound(local)
    assert local.search.problem.most_excess == np.inf


def test_moves_of_empty_logs_are_free_and_searched_as_well() -> None:
    """Where most logs are empty the price of a typical move was 0, as was the heat."""
    sizes = [0] * 60 + [1_000] * 4
    rows = [
        Row(replicas=(i % 2 + 1,), load=(1.0 + i * i, 2.0 + i), local_bytes=size)
        for i, size in enumerate(sizes)
    ]
    state = cluster([broker(i) for i in range(1, 7)], rows, storage=StorageKind.REPLICATED)
    result = solve(state, goals(1.0), SolveLimits(work=1.0))
    assert result.best is not None
    assert result.best.status in {PlanStatus.OPTIMAL, PlanStatus.IMPROVED}
    assert result.best.objective < 0.5 * result.best.objective_before

"""Tiny problems are solved by branching over rows, with any rules and goals."""

import math
import random
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest

from model.goals.goals import Budgets, Goals, ObjectiveKind, RackRule, SolveLimits
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import Floats, Snapshot, StorageKind
from solver.bounds import row_branching
from solver.bounds.row_branching import branch_over_rows, is_tiny
from solver.cpsat.variables import choices
from solver.problem.placement import is_allowed, objective
from solver.problem.problem import Problem, compile_problem
from solver.search.search import Search
from solver.solve import solve
from tests.support.solver.begun_search import Stopping, begun
from tests.support.solver.exact_oracle import Row, broker, cluster

pytestmark = pytest.mark.search

ANYWHERE = Goals(rack_rule=RackRule.OFF)


def heavy(rows: int, rf: int, brokers: int, seed: int = 1, used: int | None = None) -> Snapshot:
    """Partitions with Pareto's loads, each a large part of a broker's; on the first `used`."""
    rng = random.Random(seed)
    members = [broker(b, capacity=1e9) for b in range(brokers)]
    each = [
        Row(replicas=tuple(rng.sample(range(used or brokers), rf)), load=(load, load))
        for load in (1e6 * rng.paretovariate(1.1) for _ in range(rows))
    ]
    return cluster(members, each, storage=StorageKind.TIERED)


@pytest.mark.parametrize(("rows", "rf", "brokers"), [(3, 3, 6), (5, 2, 6), (9, 1, 6)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_heavy_partitions_are_proved_with_little_work(
    rows: int, rf: int, brokers: int, seed: int
) -> None:
    """The exact model used a budget of 20 work units, and a minute, on the first."""
    result = solve(heavy(rows, rf, brokers, seed), ANYWHERE, SolveLimits())
    assert result.status in (PlanStatus.OPTIMAL, PlanStatus.NO_IMPROVEMENT)
    assert result.work < 3.0


@pytest.mark.parametrize("kind", ObjectiveKind)
def test_bounds_lose_no_placement(kind: ObjectiveKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same F as without bounds on the rows that are left, over unequal brokers."""
    loads = ((9e6, 1e6), (5e6, 4e6), (3e6, 3e6), (2e6, 8e6), (2e6, 1e6))
    rows = [Row(replicas=(0,), load=load) for load in loads]
    members = [broker(b, capacity=c) for b, c in enumerate((1e7, 2.5e7, 4e7))]
    goals = Goals(objective=kind, move_price=0.01)
    searches = [begun(cluster(members, rows), goals, work=20.0) for _ in range(2)]
    assert branch_over_rows(searches[0])
    bound = row_branching._bound

    def unbounded(
        problem: Problem, listed: row_branching._Listed, sums: Floats, level: int
    ) -> Floats:
        found = bound(problem, listed, sums, level)
        return found if level == len(listed.rows) else np.zeros_like(found)

    monkeypatch.setattr(row_branching, "_bound", unbounded)
    assert branch_over_rows(searches[1])
    assert searches[0].objective == pytest.approx(searches[1].objective, rel=1e-12)
    assert searches[0].bound == pytest.approx(searches[0].objective, rel=1e-9)


@pytest.mark.parametrize(
    "budgets",
    [{"replica_moves": 2}, {"leader_changes": 1}, {"partitions": 2}, {"bytes": 250}],
    ids=str,
)
def test_budgets_hold(budgets: dict[str, int]) -> None:
    cheap = Goals(rack_rule=RackRule.OFF, move_price=0.001)
    limited = cheap.model_copy(update={"budgets": Budgets(**budgets)})
    search, free = (begun(heavy(4, 2, 5, used=2), goals, work=20.0) for goals in (limited, cheap))
    assert branch_over_rows(search)
    assert branch_over_rows(free)
    assert search.best is not None
    assert is_allowed(search.problem, search.best)
    assert free.objective < search.objective


@pytest.mark.parametrize("name", ["replica_moves_in_per_broker", "partitions_per_topic"])
def test_budgets_of_a_broker_or_topic_are_left_to_the_exact_model(name: str) -> None:
    """Where the best placements all exceed them, so that too many would be judged one by one."""
    goals = Goals(rack_rule=RackRule.OFF, move_price=0.001, budgets=Budgets(**{name: 1}))
    search = begun(heavy(4, 2, 5, used=2), goals, work=20.0)
    assert not branch_over_rows(search)
    assert search.work < 1.0
    result = solve(search.problem.snapshot, goals, SolveLimits())
    assert result.status is PlanStatus.OPTIMAL


def test_a_tree_that_is_too_large_leaves_its_best_plan() -> None:
    """Equal partitions, whose bounds say nothing."""
    rows = [Row(replicas=(b % 2,), load=(4e6, 4e6)) for b in range(11)]
    search = begun(cluster([broker(b) for b in range(7)], rows), ANYWHERE, work=0.5)
    before = search.objective
    assert not branch_over_rows(search)
    assert search.bound == 0.0
    assert search.objective < before
    assert search.best is not None
    assert search.objective == objective(search.problem, search.best)
    assert 0.05 <= search.work < 0.06


@pytest.mark.parametrize(("rows", "rf", "brokers"), [(1, 3, 120), (2, 1, 1_500), (30, 1, 3)])
def test_many_configurations_or_placements_are_not_listed(rows: int, rf: int, brokers: int) -> None:
    """Those of one row of three replicas on 300 brokers are 13 million."""
    problem = compile_problem(heavy(rows, rf, brokers), ANYWHERE)
    assert not is_tiny(problem, choices(problem)[0])


def test_a_row_on_many_brokers_needs_little_memory() -> None:
    snapshot = heavy(1, 1, 1_500)
    problem = compile_problem(snapshot, ANYWHERE)
    assert is_tiny(problem, choices(problem)[0])
    tracemalloc.start()
    search = begun(snapshot, ANYWHERE, work=20.0)
    before = tracemalloc.get_traced_memory()[1]
    branch_over_rows(search)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - before < 500_000_000


def test_stops_at_once_on_request() -> None:
    problem = compile_problem(heavy(4, 2, 5), ANYWHERE)
    search = Search(problem=problem, limits=SolveLimits(), observer=Stopping())
    assert not branch_over_rows(search)
    assert (search.best, search.bound, search.work) == (None, 0.0, 0.0)


@pytest.mark.parametrize("scales", [(1.0, 1e15), (1e-9, 1.0)], ids=str)
def test_loads_far_apart_are_proved_too(scales: Sequence[float]) -> None:
    rows = [Row(replicas=(0,), load=(s * (i + 1), s)) for i in range(3) for s in scales]
    search = begun(cluster([broker(b) for b in range(3)], rows), ANYWHERE, work=20.0)
    assert branch_over_rows(search)
    assert math.isfinite(search.objective)
    assert 0.0 <= search.bound <= search.objective

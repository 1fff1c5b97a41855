"""Starts from coarse to fine: their levels, and what they gain where partitions are large."""

from dataclasses import replace

import numpy as np
import pytest

from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.goals.goals import Budgets, Goals, SolveLimits
from model.snapshot.snapshot import Snapshot, StorageKind
from solver.kernels.compiled import changed
from solver.kernels.problem_arrays import Columns, find_columns
from solver.problem.problem import compile_problem
from solver.search import local_search
from solver.search.coarse_to_fine import levels, passes, starts_coarse
from solver.search.local_search import has_large_partitions, search_locally
from solver.search.search import Search
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

GOALS = Goals(move_price=1e-3, tolerance_first=False)


def with_large(brokers: int, partitions: int, seed: int) -> Snapshot:
    """Half as many partitions as brokers are of up to 0.6 of a broker's mean load."""
    shape = ClusterShape(brokers=brokers, partitions=partitions, large_partitions=True)
    name = ClusterName(cluster_id="large", taken_at_ms=1)
    return cluster(shape, StorageKind.SHARED, name, np.random.default_rng(seed))


def columns(snapshot: Snapshot, goals: Goals = GOALS) -> Columns:
    return find_columns(compile_problem(snapshot, goals))


def searched(snapshot: Snapshot, work: float) -> Search:
    search = Search(problem=compile_problem(snapshot, GOALS), limits=SolveLimits(work=work, seed=1))
    search_locally(search, work)
    return search


@pytest.mark.parametrize("price", [1e-6, 1e-3, 0.03, 10.0])
def test_levels_go_from_large_to_small_and_from_hot_to_cold(price: float) -> None:
    c = columns(with_large(20, 400, 1))
    arms = levels(c, price, 1_000_000)
    sizes = [arm.size for arm in arms if arm.size is not None]
    assert len(sizes) == len(arms)
    assert sizes == sorted(sizes, reverse=True)
    assert [arm.hot for arm in arms] == sorted((arm.hot for arm in arms), reverse=True)
    assert all(0.0 < arm.cold < arm.hot for arm in arms)
    assert 900_000 <= sum(arm.most_steps for arm in arms) <= 1_000_000
    unit = float(np.sqrt(price / c.weight.max()))
    assert sizes[-1] == pytest.approx(0.25 * unit)
    assert sizes[0] <= max(3.2 * unit, 0.25 * c.lead.max())


def test_levels_depend_on_the_ratio_of_load_and_cost_alone() -> None:
    """Loads of twice the size at four times the cost per move are the same problem."""
    c = columns(with_large(20, 400, 1))
    double = changed(c, lead=2.0 * c.lead)
    for one, two in zip(levels(c, 1e-3, 10_000), levels(double, 4e-3, 10_000), strict=True):
        assert one.size is not None
        assert two.size == pytest.approx(2.0 * one.size)
        assert replace(two, size=one.size) == one


def test_passes_need_steps_for_each_row() -> None:
    c = columns(with_large(20, 400, 1))
    steps = (0, 10**6, 10**7, 10**8, 10**12)
    found = [passes(c, 1e-3, one) for one in steps]
    counts = [count for count, _ in found]
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] > 1
    assert all(count * each <= most for (count, each), most in zip(found, steps, strict=True))
    assert found[-1][1] == passes(c, 1e-3, 10**13)[1]


def test_few_brokers_budgets_and_several_replicas_start_otherwise() -> None:
    snapshot = with_large(20, 400, 1)
    budgets = GOALS.model_copy(update={"budgets": Budgets(replica_moves=9)})
    assert starts_coarse(columns(snapshot))
    assert not starts_coarse(columns(with_large(10, 400, 1)))
    assert not starts_coarse(columns(snapshot, budgets))
    assert not starts_coarse(columns(synthetic(9, 60, rf=3, seed=4)))


@pytest.mark.slow
def test_starts_from_coarse_to_fine_make_better_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = [with_large(40, 1_600, seed) for seed in (1, 2)]
    assert all(has_large_partitions(columns(snapshot)) for snapshot in snapshots)
    after = [searched(snapshot, 4.0).objective for snapshot in snapshots]
    monkeypatch.setattr(local_search, "starts_coarse", lambda c: False)
    before = [searched(snapshot, 4.0).objective for snapshot in snapshots]
    assert sum(after) < 0.97 * sum(before)


def test_a_start_stays_within_its_budget() -> None:
    search = searched(with_large(40, 1_600, 3), 1.0)
    assert search.best is not None
    assert search.work < 1.3

"""Places of large partitions with several replicas: better plans, valid values, equal results."""

import time
from dataclasses import replace

import numpy as np
import pytest

from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.goals.goals import Budgets, Goals, SolveLimits
from model.snapshot.snapshot import BrokerState, Snapshot, StorageKind
from solver.kernels.problem_arrays import find_columns
from solver.problem.placement import is_allowed
from solver.problem.problem import compile_problem
from solver.search import local_search
from solver.search.large_places import place_large, places_large
from solver.search.local_search import search_locally
from solver.search.search import Search
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

PRICE = 1e-3
GOALS = Goals(move_price=PRICE, tolerance_first=False)


def with_large(*, drain: bool = False) -> Snapshot:
    """Four of 250 partitions are up to 0.6 of a broker's mean load."""
    shape = ClusterShape(brokers=9, partitions=250, rf=3, racks=3, large_partitions=True)
    name = ClusterName(cluster_id="large", taken_at_ms=1)
    made = cluster(shape, StorageKind.REPLICATED, name, np.random.default_rng(2))
    if not drain:
        return made
    first, *others = made.header.brokers
    left = first.model_copy(update={"state": BrokerState.DRAINING})
    return replace(made, header=made.header.model_copy(update={"brokers": (left, *others)}))


def searched(snapshot: Snapshot, work: float) -> Search:
    search = Search(problem=compile_problem(snapshot, GOALS), limits=SolveLimits(work=work, seed=1))
    search_locally(search, work)
    return search


@pytest.mark.slow
def test_plans_are_better_than_by_annealing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same work; twice, with equal results."""
    found = searched(with_large(), 2.0)
    assert found.best is not None
    assert is_allowed(found.problem, found.best)
    again = searched(with_large(), 2.0)
    assert again.best is not None
    assert (again.best.replicas == found.best.replicas).all()
    assert (again.objective, again.work) == (found.objective, found.work)
    monkeypatch.setattr(local_search, "places_large", lambda _search, _c: False)
    plain = searched(with_large(), 2.0)
    assert found.objective < plain.objective - PRICE


def test_the_work_limit_holds_and_a_draining_broker_is_left() -> None:
    search = searched(with_large(drain=True), 1.0)
    before = search.objective
    place_large(search, find_columns(search.problem), search.work + 0.5)
    assert search.best is not None
    assert is_allowed(search.problem, search.best)
    assert not (search.best.replicas == 0).any()
    assert search.objective <= before
    assert search.work < 1.8


def test_only_for_several_replicas_without_budgets() -> None:
    def places(snapshot: Snapshot, goals: Goals = GOALS) -> bool:
        problem = compile_problem(snapshot, goals)
        return places_large(
            Search(problem=problem, limits=SolveLimits(work=1.0)), find_columns(problem)
        )

    assert places(with_large())
    assert not places(with_large(), replace_budgets(replica_moves=10))
    assert not places(synthetic(9, 240, rf=1, seed=4))


def twenty_brokers() -> Search:
    """20 brokers have 3,420 configurations of three replicas: 70 million pairs of pairs of rows."""
    shape = ClusterShape(brokers=20, partitions=300, rf=3, racks=10, large_partitions=True)
    name = ClusterName(cluster_id="pairs", taken_at_ms=1)
    made = cluster(shape, StorageKind.REPLICATED, name, np.random.default_rng(2))
    return searched(made, 0.3)


def test_more_brokers_than_configurations_can_be_paired_for() -> None:
    """Charged for, so the work ends close to its limit, and the CPU time with it."""
    search = twenty_brokers()
    before, begun_s = search.work, time.process_time()
    place_large(search, find_columns(search.problem), before + 0.5)
    assert before < search.work < before + 1.0
    assert time.process_time() - begun_s < 15.0
    assert search.best is not None
    assert is_allowed(search.problem, search.best)


def test_too_little_work_to_list_configurations_places_nothing() -> None:
    search = twenty_brokers()
    before, objective = search.work, search.objective
    place_large(search, find_columns(search.problem), before + 0.05)
    assert (search.work, search.objective) == (before, objective)


def replace_budgets(**limits: int) -> Goals:
    return GOALS.model_copy(update={"budgets": Budgets(**limits)})

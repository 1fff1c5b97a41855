"""Bounds that keep rows whole lie between those of prices and the optimum."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.instances import build, goals_of
from model.goals.goals import Goals
from model.snapshot.snapshot import Snapshot
from solver.bounds.lagrangian import directions, improve_bound
from solver.kernels.broker_subproblems import Subproblems, solve_brokers
from solver.kernels.compiled import linked
from solver.kernels.single_broker_bnb import new_tree
from solver.search.search import Search
from tests.support.solver.begun_search import Stopping
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, least
from tests.support.solver.single_replica_clusters import (
    searched,
    single_replica_clusters,
    small_shape,
)

pytestmark = pytest.mark.search


def with_lagrangian_bound(snapshot: Snapshot, given_goals: Goals, work: float = 2.0) -> Search:
    local = searched(snapshot, given_goals)
    assert local is not None
    improve_bound(local, work)
    return local.search


LOADS = st.tuples(
    st.sampled_from([0.0, 1.0, 3.0, 10.0, 31.0]), st.sampled_from([0.0, 2.0, 5.0, 17.0])
)
CLUSTERS = single_replica_clusters(LOADS, most=5)


@settings(max_examples=60, deadline=None)
@given(CLUSTERS, st.sampled_from([1e-6, 0.001, 0.05, 0.5]))
def test_no_plan_is_below_the_bound(snapshot: Snapshot, price: float) -> None:
    given_goals = goals(price)
    local = searched(snapshot, given_goals, 0.1)
    optimum = least(snapshot, given_goals)
    if local is None or optimum is None:
        return
    improve_bound(local, 0.5)
    assert local.search.bound <= optimum + 1e-9


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.floats(0.0, 2.0), st.integers(0, 2**32 - 1))
def test_a_single_broker_subproblem_is_solved_exactly(
    choices: int, dims: int, spread: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    cost = np.where(rng.random(choices) < 0.5, 0.0, 0.1)
    load = rng.random((choices, dims))
    fixed = rng.normal(-1.0, 0.5, (1, dims))
    weight = rng.uniform(0.2, 2.0, dims)
    mu = spread * rng.normal(size=choices)
    values = [
        (cost - mu)[list(chosen)].sum()
        + (weight * (fixed[0] + load[list(chosen)].sum(axis=0)) ** 2).sum()
        for many in range(choices + 1)
        for chosen in itertools.combinations(range(choices), many)
    ]
    problems = linked(
        Subproblems(
            start=np.array([0, choices]),
            row=np.arange(choices, dtype=np.int32),
            cost=cost,
            load=load,
            fixed=fixed,
            weight=weight,
        )
    )
    tree = new_tree(problems.start, directions(dims), 4_000)
    selected = np.zeros(choices, np.bool_)
    eta = rng.normal(size=(1, dims))
    at = problems, 0, 1, mu, eta, selected
    value, open_, _ = solve_brokers(*at, 0.0, 4_000, tree)
    chosen = np.flatnonzero(selected)
    assert value == pytest.approx(min(values), abs=1e-9)
    assert open_ == pytest.approx(0.0, abs=1e-9)
    assert (cost - mu)[chosen].sum() + (
        weight * (fixed[0] + load[chosen].sum(axis=0)) ** 2
    ).sum() == pytest.approx(min(values), abs=1e-9)


def test_three_equal_rows_on_two_brokers_cannot_be_split() -> None:
    rows = [Row(replicas=(1,)), Row(replicas=(1,)), Row(replicas=(2,))]
    snapshot = cluster([broker(1), broker(2)], rows)
    result = with_lagrangian_bound(snapshot, goals(0.01))
    assert result.price_bound < 0.2
    assert result.bound == pytest.approx(4 / 9, abs=1e-6)
    assert result.method == "giants kept whole"


@pytest.mark.parametrize("name", ["10x500", "10x500-near-level", "10x500-drain"])
def test_the_bound_is_between_that_of_prices_and_the_plan(name: str) -> None:
    shape = small_shape(name)
    result = with_lagrangian_bound(build(shape, 3), goals_of(shape))
    assert result.price_bound + 1e-4 < result.bound <= result.objective


def test_large_partitions_get_a_smaller_gap_than_from_prices() -> None:
    shape = small_shape("10x500-giants")
    result = with_lagrangian_bound(build(shape, 3), goals_of(shape))
    assert result.objective - result.bound < 0.5 * (result.objective - result.price_bound)


def test_the_bound_is_reproducible() -> None:
    shape = small_shape("10x500")
    first, second = (with_lagrangian_bound(build(shape, 1), goals_of(shape), 0.5) for _ in range(2))
    assert (first.bound, first.work) == (second.bound, second.work)


def test_replicated_rows_are_bounded_by_prices_alone() -> None:
    rows = [Row(replicas=(1, 2)), Row(replicas=(1, 2)), Row(replicas=(2, 3))]
    snapshot = cluster([broker(b) for b in (1, 2, 3)], rows)
    assert with_lagrangian_bound(snapshot, goals(0.01)).method == "prices"


def test_an_observer_that_stops_ends_the_ascent() -> None:
    shape = small_shape("10x500")
    local = searched(build(shape, 1), goals_of(shape))
    assert local is not None
    local.search.observer = Stopping()
    before = local.search.bound
    improve_bound(local, 5.0)
    assert local.search.stopped
    assert local.search.bound == before

"""Branch and bound on large partitions: valid bounds, and starts that are plans."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.instances import build, goals_of
from benchmarks.shapes import Shape, shape_of
from model.snapshot.snapshot import Floats, Snapshot
from solver.bounds.large_partitions import LargePartitionTree
from solver.bounds.single_replica_choices import has_choices
from solver.kernels.branching import place_cheapest, price_children, relax
from solver.kernels.relaxed_point import Relaxed, new_relaxed
from tests.support.solver.exact_oracle import Row, broker, cluster, goals, least
from tests.support.solver.single_replica_clusters import (
    searched,
    single_replica_clusters,
    small_shape,
)

pytestmark = pytest.mark.search

LOADS = st.tuples(st.sampled_from([0.0, 1.0, 3.0, 40.0, 90.0]), st.sampled_from([0.0, 2.0, 50.0]))
CLUSTERS = single_replica_clusters(LOADS, most=6)
"""Some partitions are as large as a broker."""


def planted(snapshot: Snapshot, price: float) -> LargePartitionTree | None:
    local = searched(snapshot, goals(price), 0.1)
    if local is None or not has_choices(local.columns, local.relaxation):
        return None
    return LargePartitionTree(local.search, local.columns, local.relaxation)


def planted_with_optimum(snapshot: Snapshot, price: float) -> tuple[LargePartitionTree, float]:
    """A new tree and the least F; the example is skipped if there is neither."""
    tree, optimum = planted(snapshot, price), least(snapshot, goals(price))
    assume(tree is not None and optimum is not None)
    assert tree is not None
    assert optimum is not None
    return tree, optimum


def relaxed(rows: int, brokers: int, dims: int, seed: int) -> Relaxed:
    """Rows at their cheapest brokers, up to the mean load, a third of pairs barred."""
    rng = np.random.default_rng(seed)
    cost = np.where(rng.random((rows, brokers)) < 0.3, 0.0, 0.1)
    cost[rng.random(cost.shape) < 0.3] = np.inf
    cost[np.arange(rows), rng.integers(0, brokers, rows)] = 0.0
    result = new_relaxed(
        cost,
        rng.random((rows, dims)),
        rng.uniform(0.5, 2.0, (brokers, dims)),
        rng.normal(-1.0, 0.5, (brokers, dims)),
        rng.uniform(0.2, 2.0, dims),
    )
    place_cheapest(result, np.zeros((brokers, dims)))
    return result


def values(x: Relaxed) -> dict[tuple[int, ...], float]:
    """F of every whole placement."""
    result = {}
    for at in itertools.product(range(len(x.fixed)), repeat=len(x.cost)):
        price = float(x.cost[np.arange(len(at)), at].sum())
        v: Floats = x.fixed.copy()
        for p, b in enumerate(at):
            v[b] += x.load[p] * x.scale[b]
        result[at] = price + float((x.weight * v * v).sum())
    return result


SHAPES = (st.integers(1, 5), st.integers(2, 3), st.integers(1, 3))
SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(*SHAPES, SEEDS)
def test_a_node_is_solved_to_the_value_that_its_prices_prove(
    rows: int, brokers: int, dims: int, seed: int
) -> None:
    x = relaxed(rows, brokers, dims, seed)
    bound, value, _ = relax(x, 1e-6, np.inf, 2_000, 10**9, 1e-12)
    assert bound <= min(values(x).values()) + 1e-9
    assert value - bound <= 1e-4
    assert x.mass.sum(axis=1) == pytest.approx(1.0, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(*SHAPES, SEEDS)
def test_no_placement_is_below_the_bound_with_which_a_child_waits(
    rows: int, brokers: int, dims: int, seed: int
) -> None:
    x = relaxed(rows, brokers, dims, seed)
    bound, _, _ = relax(x, 1e-3, np.inf, 100, 10**9, 1e-9)
    more, known = np.empty(brokers), values(x)
    for p in range(rows):
        price_children(x, p, more)
        for b in range(brokers):
            under = [f for at, f in known.items() if at[p] == b]
            assert bound + more[b] <= min(under) + 1e-9


@settings(max_examples=30, deadline=None)
@given(CLUSTERS, st.sampled_from([1e-6, 0.001, 0.05, 0.5]), st.integers(1, 12))
def test_no_plan_is_below_the_bound_whenever_it_ends(
    snapshot: Snapshot, price: float, nodes: int
) -> None:
    tree, optimum = planted_with_optimum(snapshot, price)
    for _ in range(nodes):
        tree.grow(1e-12)
        assert tree.search.bound <= optimum + 1e-9


@settings(max_examples=30, deadline=None)
@given(CLUSTERS, st.sampled_from([0.001, 0.05]))
def test_children_of_a_node_with_a_high_bound_inherit_no_more_than_is_proved(
    snapshot: Snapshot, price: float
) -> None:
    """What a child adds is over the prices of the node itself, which may prove less."""
    tree, optimum = planted_with_optimum(snapshot, price)
    root = tree.waiting[0][2]
    root.bound = optimum - tree.choices.decided
    tree.search.objective = optimum + 1.0
    tree.grow(1e-12)
    waiting = [bound for bound, _, _ in tree.waiting]
    assert min(waiting, default=0.0) + tree.choices.decided <= optimum + 1e-9


@settings(max_examples=30, deadline=None)
@given(CLUSTERS, st.sampled_from([0.001, 0.05]))
def test_an_exhausted_tree_proves_nearly_the_optimum(snapshot: Snapshot, price: float) -> None:
    tree, optimum = planted_with_optimum(snapshot, price)
    tree.grow(60.0)
    assert not tree.waiting or tree.search.proved
    assert tree.search.bound >= optimum - 0.01 * tree.search.objective - 1e-6


def test_a_partition_above_the_mean_load_is_not_split() -> None:
    rows = [Row(replicas=(1,), load=(90.0, 9.0)), *[Row(replicas=(1,))] * 3]
    tree = planted(cluster([broker(b) for b in (1, 2, 3)], rows), 0.001)
    assert tree is not None
    before = tree.search.price_bound
    tree.grow(1.0)
    assert tree.search.bound > 1.5 * before
    assert tree.search.method == "giants kept whole"


def large_partitions_of_ten_brokers(seed: int) -> LargePartitionTree:
    shape: Shape = shape_of("10x500-giants")
    local = searched(build(shape, seed), goals_of(shape), 1.0)
    assert local is not None
    return LargePartitionTree(local.search, local.columns, local.relaxation)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.slow
def test_branching_on_large_partitions_closes_most_of_the_gap(seed: int) -> None:
    tree = large_partitions_of_ten_brokers(seed)
    before = tree.starts
    tree.grow(1.0)
    search = tree.search
    assert not before
    assert tree.starts
    assert search.bound > search.price_bound + 0.002
    assert all(s.bound >= search.price_bound - tree.choices.decided for s in tree.starts)


@pytest.mark.slow
def test_branch_and_bound_is_reproducible() -> None:
    first, second = (large_partitions_of_ten_brokers(2), large_partitions_of_ten_brokers(2))
    first.grow(0.5)
    second.grow(0.25)
    second.grow(0.25)
    assert first.search.bound == pytest.approx(second.search.bound, rel=0.01)
    again = large_partitions_of_ten_brokers(2)
    again.grow(0.5)
    assert (again.search.bound, again.solved) == (first.search.bound, first.solved)


def test_small_instances_get_a_better_bound_too() -> None:
    shape = small_shape("10x500-giants")
    local = searched(build(shape, 3), goals_of(shape))
    assert local is not None
    tree = LargePartitionTree(local.search, local.columns, local.relaxation)
    tree.grow(0.5)
    assert local.search.bound > local.search.price_bound + 1e-4

"""Relaxations of groups of brokers: what they start from, and what they leave."""

import numpy as np
import pytest

from model.goals.goals import Budgets, Goals, Pin
from model.names import Names
from model.snapshot.snapshot import Snapshot
from solver.kernels.move_deltas import new_state, objective
from solver.kernels.problem_arrays import Columns, find_columns, sum_loads_at
from solver.kernels.smoothing import list_options
from solver.problem.problem import compile_problem
from solver.search import broker_groups
from solver.search.broker_groups import Groups, deviations_of_groups, find_groups
from solver.search.budget_prices import use_of
from solver.search.dual import Relaxation, solve_relaxation, warm_up
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

WANTED = Goals(move_price=0.002)


@pytest.fixture(autouse=True)
def _few_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_groups, "LEAST_BROKERS", 12)
    monkeypatch.setattr(broker_groups, "GROUPS", 5)


def columns_of(snapshot: Snapshot, goals: Goals = WANTED) -> Columns:
    return find_columns(compile_problem(snapshot, goals))


def test_groups_are_of_brokers_that_deviate_alike() -> None:
    c = columns_of(synthetic(12, 240, seed=1))
    v = new_state(c, c.home).v
    group = find_groups(c, v)
    assert group is not None
    assert np.bincount(group).min() > 0
    assert group.max() == broker_groups.GROUPS - 1
    within = sum(float(v[group == g].var(axis=0).sum()) * (group == g).sum() for g in range(5))
    assert within < 0.2 * float(v.var(axis=0).sum()) * len(v)
    u = deviations_of_groups(c, group, v)
    assert (u**2).sum() == pytest.approx((v**2).sum() - within)


def test_brokers_with_other_rules_are_in_other_groups() -> None:
    snapshot = synthetic(12, 240, seed=1)
    ids = tuple(b.id for b in snapshot.header.brokers[:4])
    pinned = WANTED.model_copy(update={"pins": (Pin(topics=Names(prefix=("t00",)), brokers=ids),)})
    c = columns_of(snapshot, pinned)
    group = find_groups(c, new_state(c, c.home).v)
    assert group is not None
    assert not set(group[:4].tolist()) & set(group[4:].tolist())


def test_several_replicas_and_few_brokers_are_left_to_single_brokers() -> None:
    for snapshot in (synthetic(12, 60, rf=3, seed=1), synthetic(11, 60, seed=1)):
        c = columns_of(snapshot)
        home = new_state(c, c.home).v
        assert Groups.of(Relaxation(c, home, 1), home, 1) is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_masses_of_single_brokers_add_up_to_their_deviations(seed: int) -> None:
    c = columns_of(synthetic(12, 240, seed=seed))
    home = new_state(c, c.home).v
    r = Relaxation(c, home, seed)
    groups = Groups.of(r, home, seed)
    assert groups is not None
    groups.warm_up(objective(c, new_state(c, c.home)), 10.0)
    _check_masses(r)
    assert (r.v**2).sum() < 0.2 * (home**2).sum()
    groups.solve(10.0)
    _check_masses(r)


def _check_masses(r: Relaxation) -> None:
    c = r.columns
    split = r.rows[r.masses.head[r.rows] >= 0]
    assert len(split)
    options = list_options(c, r.masses, split)
    mass = r.masses.mass[options.node]
    assert np.add.reduceat(mass, options.start[:-1]) == pytest.approx(1.0)
    row = np.repeat(split, np.diff(options.start))
    whole = np.setdiff1d(np.arange(len(c.home)), split)
    found = sum_loads_at(c, whole, c.home[whole]) - 1.0
    for d in range(found.shape[1]):
        at = options.broker[:, 0]
        found[:, d] += np.bincount(at, mass * c.lead[row, d], len(found)) * c.scale[:, d]
    assert found == pytest.approx(r.v)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bound_of_groups_is_below_that_of_single_brokers(seed: int) -> None:
    c = columns_of(synthetic(12, 240, seed=seed))
    home = new_state(c, c.home).v
    alone, r = Relaxation(c, home, seed), Relaxation(c, home, seed)
    warm_up(alone)
    solve_relaxation(alone, 10.0)
    groups = Groups.of(r, home, seed)
    assert groups is not None
    groups.warm_up(objective(c, new_state(c, c.home)), 10.0)
    groups.solve(10.0)
    assert r.bound == pytest.approx(groups.relaxation.bound)
    assert 0.5 * alone.bound < r.bound < 1.001 * alone.bound
    warm_up(r, sweeps=4)
    solve_relaxation(r, 10.0)
    assert r.bound == pytest.approx(alone.bound, rel=0.01)


@pytest.mark.parametrize("moves", [3, 12])
def test_groups_price_budgets_for_single_brokers(moves: int) -> None:
    snapshot = synthetic(12, 240, seed=1)
    goals = WANTED.model_copy(update={"budgets": Budgets(replica_moves=moves)})
    c = columns_of(snapshot, goals)
    home = new_state(c, c.home)
    r, free = Relaxation(c, home.v, 1), Relaxation(columns_of(snapshot), home.v, 1)
    for relaxation in (r, free):
        groups = Groups.of(relaxation, home.v, 1)
        assert groups is not None
        groups.warm_up(objective(c, home), 10.0)
    assert use_of(free)[0] > 2 * moves
    assert 0.5 * moves < use_of(r)[0] < 1.5 * moves
    assert r.budget_prices[0] > 0.0
    solve_relaxation(r, 10.0)
    solve_relaxation(free, 10.0)
    assert r.bound - r.given_back > free.bound

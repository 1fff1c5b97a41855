"""Prices and annealing: valid bounds, allowed plans, the same bits every time."""

import itertools
import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from model.bound.bound import price_bound
from model.evaluate import evaluate
from model.goals.goals import Budgets, Goals, RackRule, SolveLimits
from model.snapshot.snapshot import BrokerState, Resource, Snapshot
from solver.kernels.move_deltas import new_state, objective, reassign
from solver.kernels.neighbourhood_annealing import anneal, new_annealing_scratch
from solver.kernels.pricing import change_cost, cheapest, new_pricing_scratch, price_row
from solver.kernels.problem_arrays import Columns, find_columns, unit_prices
from solver.kernels.reduced_cost_candidates import HOLD, LEAD, least_reduced_costs, new_candidates
from solver.problem.placement import Placement
from solver.problem.placement import objective as true_objective
from solver.problem.problem import compile_problem
from solver.search import local_search, neighbourhoods
from solver.search.dual import Relaxation, pricing_work, solve_relaxation, warm_up
from solver.search.local_search import opens_wide, search_locally
from solver.search.search import Search
from solver.solve import solve
from tests.support.solver.begun_search import Stopping
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

WANTED = Goals(move_price=0.002)
ONE = synthetic(8, 120, seed=4)
THREE = synthetic(9, 60, rf=3, seed=4)


def searched(snapshot: Snapshot, goals: Goals, work: float = 1.0) -> Search:
    limits = SolveLimits(work=work, seed=3)
    search = Search(problem=compile_problem(snapshot, goals), limits=limits)
    search_locally(search, work)
    return search


def cheapest_by_enumeration(c: Columns, q: np.ndarray, p: int) -> float:
    """Try every set and leader within the caps per rack, or the present ones."""
    rf, home = int(c.rf[p]), [b for b in c.home[p].tolist() if b >= 0]
    result = math.inf
    for replica_count in itertools.combinations(range(len(c.scale)), rf):
        racks = np.bincount(c.rack[list(replica_count)], minlength=c.usable.shape[1])
        if set(replica_count) != set(home) and (racks > c.most[c.group[p]]).any():
            continue
        for leader in replica_count:
            cost = (set(replica_count) - set(home) != set()) * 0.0
            cost += len(set(replica_count) - set(home)) * c.price[p]
            cost += (leader != home[0]) * c.leader_price
            for b in replica_count:
                load = c.lead[p] if b == leader else c.follow[p]
                cost += float((load * q[:, b]).sum())
            result = min(result, cost)
    return result


@pytest.mark.parametrize("snapshot", [ONE, THREE], ids=["one replica", "three"])
@pytest.mark.parametrize("rule", list(RackRule))
def test_greedy_pricing_finds_the_cheapest_configuration(
    snapshot: Snapshot, rule: RackRule
) -> None:
    c = find_columns(compile_problem(snapshot, WANTED.model_copy(update={"rack_rule": rule})))
    room, rng = new_pricing_scratch(c), np.random.default_rng(5)
    for p in range(0, len(c.home), 7):
        q = np.ascontiguousarray(rng.normal(size=(c.lead.shape[1], len(c.scale))))
        price_row(c, q, p, 0.0, room)
        assert cheapest(c, p, room) == pytest.approx(cheapest_by_enumeration(c, q, p))


@pytest.mark.parametrize("snapshot", [ONE, THREE], ids=["one replica", "three"])
def test_the_dual_bound_can_be_recomputed_from_the_plan(snapshot: Snapshot) -> None:
    """By `model.bound`, which shares no code with the search."""
    search = searched(snapshot, WANTED)
    problem = search.problem
    assert search.prices is not None
    by_broker = {
        broker: dict(zip(problem.keys, row, strict=True))
        for broker, row in zip(problem.brokers, search.prices.tolist(), strict=True)
    }
    recomputed = price_bound(snapshot, WANTED, by_broker)
    assert search.price_bound == pytest.approx(recomputed, rel=1e-8)
    assert 0 < search.price_bound <= search.objective


def relaxed_value(relaxation: Relaxation) -> float:
    """F of the relaxed placement, before the refund is subtracted."""
    c, masses = relaxation.columns, relaxation.masses
    total = float((relaxation.v**2 * c.weight)[c.holding].sum())
    for p, node in enumerate(masses.head.tolist()):
        while node >= 0:
            total += float(masses.mass[node]) * change_cost(c, p, masses.at[node])
            node = int(masses.next[node])
    return total


@pytest.mark.parametrize("snapshot", [ONE, THREE], ids=["one replica", "three"])
def test_the_relaxation_closes_its_duality_gap(snapshot: Snapshot) -> None:
    """The dual prices are optimal when value and bound meet."""
    c = find_columns(compile_problem(snapshot, WANTED))
    relaxation = Relaxation(c, new_state(c, c.home).v, 0)
    solve_relaxation(relaxation, 100.0)
    value = relaxed_value(relaxation)
    assert relaxation.bound <= value
    assert relaxation.bound == pytest.approx(value, rel=2e-3)
    assert unit_prices(c, relaxation.prices).shape == c.scale.T.shape


@pytest.mark.parametrize(
    "goals",
    [
        WANTED,
        WANTED.model_copy(update={"budgets": Budgets(replica_moves=9, replica_moves_per_topic=2)}),
        WANTED.model_copy(update={"budgets": Budgets(partitions=8, partitions_per_topic=2)}),
        WANTED.model_copy(update={"rack_rule": RackRule.EVEN}),
        Goals.model_validate_json(
            '{"move_price": 0.002, "balance": [{"resource": "net_in"},'
            ' {"resource": "leaders"}, {"resource": "topic_replicas", "weight": 0.1}]}'
        ),
    ],
    ids=["plain", "budgets", "budgets of partitions", "even racks", "counts"],
)
@pytest.mark.parametrize("snapshot", [ONE, THREE], ids=["one replica", "three"])
@pytest.mark.slow
def test_the_evaluator_agrees_with_a_searched_plan(snapshot: Snapshot, goals: Goals) -> None:
    """Same F, no rule broken, better than staying."""
    result = solve(snapshot, goals, SolveLimits(work=0.4))
    assert result.best is not None
    evaluation = evaluate(snapshot, goals, result.best.moves)
    assert evaluation.violations == ()
    assert evaluation.objective == pytest.approx(result.best.objective, rel=1e-8)
    assert result.best.bound <= result.best.objective < result.best.objective_before


def test_the_state_has_the_objective_of_its_placement() -> None:
    problem = compile_problem(THREE, WANTED)
    c = find_columns(problem)
    state = new_state(c, c.home)
    home = true_objective(problem, Placement.home(problem))
    assert objective(c, state) == pytest.approx(home)


def test_the_plan_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = synthetic(30, 900, seed=2)
    plans = []
    for threads in (1, 4):
        monkeypatch.setattr(neighbourhoods, "THREADS", threads)
        result = solve(snapshot, WANTED, SolveLimits(work=0.4))
        assert result.best is not None
        plans.append(result.best.hash)
    assert plans[0] == plans[1]


def test_a_search_stops_at_its_observers_request() -> None:
    """The result has the best plan so far."""
    result = solve(synthetic(30, 900, seed=2), WANTED, SolveLimits(), Stopping())
    assert result.status == "stopped"
    assert result.best is not None
    assert result.best.moves


def test_resources_without_load_are_not_balanced() -> None:
    goals = WANTED.model_copy(update={"balance": ()})
    result = solve(ONE, goals, SolveLimits(work=0.1))
    assert result.status == "level already"
    assert Resource.NET_IN not in (result.best.levels if result.best else {})


@pytest.mark.parametrize("snapshot", [ONE, THREE], ids=["one replica", "three"])
def test_without_room_for_all_candidates_those_of_least_reduced_cost_stay(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = find_columns(compile_problem(snapshot, WANTED))
    relaxation = Relaxation(c, new_state(c, c.home).v, 0)
    solve_relaxation(relaxation, 1.0)
    q = unit_prices(c, relaxation.prices)
    least = least_reduced_costs(c, q, relaxation.rows, relaxation.scratch)
    monkeypatch.setattr(neighbourhoods, "MOST_CANDIDATE_PAIRS", 5 * len(c.scale))
    around = neighbourhoods.Neighbourhoods(relaxation, 0)
    with around.threads:
        state = new_state(c, c.home)
        around.anneal(state, neighbourhoods.Arm(reduced_cost=1.0, brokers=5), 1, 0, 10_000)
    moved = np.flatnonzero((state.at != c.home).any(axis=1))
    fifth = np.sort(least)[4]
    assert len(moved)
    assert least[np.isin(relaxation.rows, moved)].max() <= fifth


def test_half_of_the_budget_is_left_to_annealing() -> None:
    """Prices alone, warm-up included, stop at their share."""
    c = find_columns(compile_problem(THREE, WANTED))
    relaxation = Relaxation(c, new_state(c, c.home).v, 0)
    work = 0.02
    warm_up(relaxation, work / 2)
    solve_relaxation(relaxation, work - relaxation.work)
    rows = len(relaxation.rows) * pricing_work(c)
    assert relaxation.work <= work + 2 * rows
    assert np.isfinite(relaxation.bound)


def test_a_budget_that_just_suffices_empties_a_broker() -> None:
    """The cheapest places of forced rows would move replicas besides, beyond the budget."""
    snapshot = synthetic(9, 240, rf=3, seed=4)
    first, *others = snapshot.header.brokers
    dead = first.model_copy(update={"state": BrokerState.DEAD})
    header = snapshot.header.model_copy(update={"brokers": (dead, *others)})
    held = int((snapshot.partitions.replica_broker == first.id).sum())
    goals = WANTED.model_copy(update={"budgets": Budgets(replica_moves=held)})
    result = solve(replace(snapshot, header=header), goals, SolveLimits(work=2.0))
    assert result.best is not None
    assert sum(len(m.added) for m in result.best.moves) == held


def test_a_search_opens_on_all_brokers_only_without_budgets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_search, "LARGE_LOAD", 10.0)
    snapshot = synthetic(60, 600, seed=2)
    budgets = WANTED.model_copy(update={"budgets": Budgets(replica_moves=9)})
    assert opens_wide(find_columns(compile_problem(snapshot, WANTED)))
    assert not opens_wide(find_columns(compile_problem(snapshot, budgets)))
    assert not opens_wide(find_columns(compile_problem(ONE, WANTED)))


def test_a_needless_move_returns_home() -> None:
    """One of 60 brokers is home: other draws find it once in 60 steps."""
    snapshot = synthetic(60, 600, seed=2)
    expensive = WANTED.model_copy(update={"move_price": 1_000.0})
    c = find_columns(compile_problem(snapshot, expensive))
    state = new_state(c, c.home)
    rows = np.arange(40)
    for p in rows.tolist():
        reassign(c, state, p, (c.home[p] + 1) % 60)
    may = np.full((len(rows), 60), HOLD | LEAD, np.uint8)
    x = new_candidates(rows, may)
    scratch = new_annealing_scratch(c, x, 60)
    subset, seed = np.arange(60), cast("int", np.uint64(7))
    steps = 20 * len(rows)
    anneal(c, state, x, rows, subset, steps, steps, 1e-9, 1e-9, seed, scratch)
    away = (state.at[rows, 0] != c.home[rows, 0]).sum()
    assert away < len(rows) / 2

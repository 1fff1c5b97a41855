"""Parts of the search into tolerance bands: placements, evening out, master."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.cruise_format import snapshot_of
from benchmarks.random_clusters import SPECS, random_cluster
from model.goals.goals import Goals, ObjectiveKind
from model.snapshot.snapshot import Snapshot, StorageKind
from solver.band.annealing import BandAnnealing
from solver.band.candidates import BandCandidates
from solver.band.column_generation import ColumnGeneration, first_excess_price
from solver.band.load_prices import BandDual
from solver.band.restricted_master import RestrictedMaster
from solver.band.row_placements import describe
from solver.cpsat.model import solve_exactly
from solver.problem.placement import (
    Placement,
    change_cost,
    deviation_cost,
    deviations,
    is_allowed,
    loads_of,
    objective,
)
from solver.problem.problem import compile_problem
from solver.search.search import Search
from tests.support.solver.begun_search import banded, begun
from tests.support.solver.random_problems import clusters, random_goals
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search

GOALS = banded()


def uneven(search: Search) -> float:
    assert search.best is not None
    problem = search.problem
    squares = deviations(problem, loads_of(problem, search.best)) ** 2
    return math.fsum((problem.weight * squares).ravel().tolist())


@settings(max_examples=25, deadline=None)
@given(snapshot=clusters(most_brokers=3, most_rows=4, most_rf=2), goals=random_goals())
def test_evening_out_keeps_the_rules_and_never_costs_more(snapshot: Snapshot, goals: Goals) -> None:
    goals = goals.model_copy(update={"objective": ObjectiveKind.BAND})
    search = begun(snapshot, goals)
    solve_exactly(search)
    assume(search.best is not None)
    cost, spread = search.objective, uneven(search)
    dual = BandDual(search.problem)
    prices = np.zeros(dual.home.shape)
    annealing = BandAnnealing(search, dual, prices, dual.columns.home)
    annealing.even_out(BandCandidates(dual, prices), math.inf)
    assert search.best is not None
    assert search.objective <= cost + 1e-9 * max(1.0, cost)
    assert uneven(search) <= spread
    assert is_allowed(search.problem, search.best)
    assert objective(search.problem, search.best) == search.objective


def test_among_equally_cheap_plans_a_more_even_one_is_chosen() -> None:
    search = begun(synthetic(10, 500, seed=3), GOALS)
    dual = BandDual(search.problem)
    generated = ColumnGeneration(search, dual).run()
    candidates = BandCandidates(dual, generated.prices)
    annealing = BandAnnealing(search, dual, generated.prices, generated.rounded)
    annealing.run(candidates, 0.03 * search.problem.costs.move)
    cost, spread = search.objective, uneven(search)
    annealing.even_out(candidates, cost - generated.bound)
    assert search.objective <= cost + 1e-9
    assert uneven(search) < spread


def test_the_restricted_master_finds_what_annealing_misses() -> None:
    """From the relaxation's own placements: near the bound, all in band."""
    search = begun(synthetic(12, 600, rf=3, seed=3), GOALS)
    dual = BandDual(search.problem)
    generated = ColumnGeneration(search, dual).run()
    candidates = BandCandidates(dual, generated.prices)
    annealing = BandAnnealing(search, dual, generated.prices, generated.rounded)
    reach = 0.1 * search.problem.costs.move
    annealing.run(candidates, reach)
    walked = search.objective
    RestrictedMaster(dual, generated).run(search, annealing.best(), reach, 5.0)
    assert search.best is not None
    assert generated.bound <= search.objective < walked
    assert search.objective <= 1.1 * generated.bound
    loads = loads_of(search.problem, search.best)
    assert deviation_cost(search.problem, loads) == 0.0


@settings(max_examples=25, deadline=None)
@given(
    snapshot=clusters(most_brokers=3, most_rows=4, most_rf=2),
    draw=st.randoms(use_true_random=False),
)
def test_a_placement_shifts_and_costs_what_a_plan_of_it_does(
    snapshot: Snapshot, draw: object
) -> None:
    problem = compile_problem(snapshot, GOALS)
    dual = BandDual(problem)
    c = dual.columns
    free = np.flatnonzero(c.free & ~c.forced)
    assume(len(free) > 0 and len(dual.kept) > 0)
    row = int(draw.choice(free.tolist()))  # type: ignore[attr-defined]
    at = np.full((1, c.home.shape[1]), -1)
    brokers = range(len(problem.brokers))
    at[0, : c.rf[row]] = draw.sample(brokers, int(c.rf[row]))  # type: ignore[attr-defined]
    result = describe(c, np.array([row]), at)
    home = Placement.home(problem)
    replicas, leader = home.replicas.copy(), home.leader.copy()
    replicas[row], leader[row] = at[0], at[0, 0]
    moved = Placement(replicas=replicas, leader=leader)
    shift = np.zeros(dual.home.shape)
    for e, held in enumerate(result.broker[0].tolist()):
        if held >= 0:
            shift[held] += result.shift[0, e]
    now = deviations(problem, loads_of(problem, moved))[:, dual.kept]
    np.testing.assert_allclose(dual.home + shift, now, atol=1e-9)
    before, after = change_cost(problem, home), change_cost(problem, moved)
    assert result.price[0] == pytest.approx(after - before)


def test_a_way_inside_spares_most_of_the_linear_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """From brokers far outside, prices alone send all rows to the same few, round after round."""
    clumped = replace(SPECS["sc4-50x5000-rf1-clumped"], brokers=30, partitions=1_000)
    monkeypatch.setitem(SPECS, "smaller", clumped)
    snapshot = snapshot_of(random_cluster("smaller"), StorageKind.SHARED)
    works, bounds = [], []
    for way in (False, True):
        search = begun(snapshot, banded(), 60.0)
        dual = BandDual(search.problem)
        start, prices = dual.columns.home, np.zeros(dual.home.shape)
        if way:
            annealing = BandAnnealing(search, dual, prices, start)
            start = annealing.way_inside(first_excess_price(dual))
        generated = ColumnGeneration(search, dual).run(start=start)
        works.append(search.work)
        bounds.append(generated.bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-6)
    assert works[1] < works[0] / 2

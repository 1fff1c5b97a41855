"""Annealing over configurations: all that rules allow, valued as F, and never a worse plan."""

from dataclasses import replace

import numpy as np
import pytest

from model.goals.goals import Budgets, Goals, SolveLimits
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.cpsat.variables import choices
from solver.problem.placement import Placement, is_allowed, objective
from solver.problem.problem import compile_problem
from solver.problem.row_configurations import configurations_of
from solver.search.budget_prices import exceeds, price_budgets
from solver.search.configuration_annealing import anneal_configurations
from solver.search.dual import solve_relaxation, warm_up
from solver.search.local_search import LocalSearch
from solver.search.priced_configurations import price_configurations
from solver.search.search import Search
from tests.support.solver.zipf_clusters import synthetic

GOALS = Goals(move_price=0.002)
SNAPSHOT = synthetic(9, 240, rf=3, seed=4)


def draining(snapshot: Snapshot) -> Snapshot:
    """The first broker must be left by all its replicas."""
    first, *others = snapshot.header.brokers
    left = first.model_copy(update={"state": BrokerState.DRAINING})
    header = snapshot.header.model_copy(update={"brokers": (left, *others)})
    return replace(snapshot, header=header)


def relaxed(snapshot: Snapshot, goals: Goals = GOALS, work: float = 4.0) -> LocalSearch:
    """A search with prices, and without a plan unless the present one is allowed."""
    problem = compile_problem(snapshot, goals)
    search = Search(problem=problem, limits=SolveLimits(work=work, seed=3))
    if not problem.may.forced.any():
        search.offer(Placement.home(problem))
    local = LocalSearch(search)
    warm_up(local.relaxation, 1.0)
    solve_relaxation(local.relaxation, 1.0)
    return local


@pytest.mark.search
@pytest.mark.parametrize("snapshot", [SNAPSHOT, draining(SNAPSHOT)], ids=["all alive", "draining"])
def test_lists_what_rules_allow(snapshot: Snapshot) -> None:
    """Without a limit of reduced costs, the configurations are those of the exact search."""
    local = relaxed(snapshot)
    problem, c, r = local.search.problem, local.columns, local.relaxation
    listed = price_configurations(problem, c, r, np.inf)
    assert listed is not None
    among = choices(problem)
    for i, row in enumerate(listed.rows.tolist()):
        mine = slice(listed.start[i], listed.start[i + 1])
        brokers, prices = listed.brokers[mine].tolist(), listed.price[mine].tolist()
        found = {tuple(at): price for at, price in zip(brokers, prices, strict=True)}
        wanted = dict(configurations_of(problem, row, among[0][row], among[1][row]))
        assert found.keys() == wanted.keys()
        assert [found[at] for at in wanted] == pytest.approx([*wanted.values()])
        assert listed.reduced[mine].min() == 0.0


@pytest.mark.search
def test_a_limit_keeps_the_present_configuration() -> None:
    local = relaxed(SNAPSHOT)
    c = local.columns
    listed = price_configurations(local.search.problem, c, local.relaxation, 0.0)
    assert listed is not None
    for i, row in enumerate(listed.rows.tolist()):
        mine = listed.brokers[listed.start[i] : listed.start[i + 1]].tolist()
        assert c.home[row].tolist() in mine


@pytest.mark.search
@pytest.mark.parametrize("snapshot", [SNAPSHOT, draining(SNAPSHOT)], ids=["all alive", "draining"])
@pytest.mark.slow
def test_finds_an_allowed_plan_near_the_bound(snapshot: Snapshot) -> None:
    """Twice, with equal results."""
    found = []
    for _ in range(2):
        local = relaxed(snapshot)
        search, r = local.search, local.relaxation
        assert anneal_configurations(search, local.columns, r, search.limits.work)
        assert search.best is not None
        assert is_allowed(search.problem, search.best)
        assert objective(search.problem, search.best) == search.objective
        bound = r.bound - float(search.problem.costs.refund.sum())
        assert search.objective <= bound + 2.5 * r.price
        found.append((search.objective, search.work, search.best.replicas.tobytes()))
    assert found[0] == found[1]


@pytest.mark.search
@pytest.mark.parametrize(
    ("snapshot", "goals"),
    [
        (SNAPSHOT, GOALS.model_copy(update={"budgets": Budgets(partitions=3)})),
        (synthetic(9, 300, seed=4), GOALS),
        (synthetic(6, 60, rf=3, seed=4), GOALS),
    ],
    ids=["budgets", "one replica", "few choices"],
)
def test_leaves_other_problems_alone(snapshot: Snapshot, goals: Goals) -> None:
    local = relaxed(snapshot, goals)
    search = local.search
    before = search.work, search.objective
    assert not anneal_configurations(search, local.columns, local.relaxation, 4.0)
    assert before == (search.work, search.objective)


@pytest.mark.search
@pytest.mark.parametrize(
    "budgets",
    [
        Budgets(replica_moves=8),
        Budgets(replica_moves=8, leader_changes=6),
        Budgets(leader_changes=3),
    ],
    ids=["replicas", "both", "leaders"],
)
@pytest.mark.parametrize("priced", [True, False])
def test_keeps_budgets_by_prices_alone(budgets: Budgets, *, priced: bool) -> None:
    """Also where no price was sought; what is found then need not be within them."""
    local = relaxed(SNAPSHOT, GOALS.model_copy(update={"budgets": budgets}))
    search, r = local.search, local.relaxation
    before = search.objective
    if priced:
        assert exceeds(r)
        price_budgets(r, before)
        solve_relaxation(r, 1.0)
    assert anneal_configurations(search, local.columns, r, 4.0)
    assert search.best is not None
    assert is_allowed(search.problem, search.best)
    if priced:
        bound = r.bound - r.given_back
        assert search.objective - bound < 0.1 * (before - bound)

"""CPU to the quality of recorded plans: what is read, and what counts as equal."""

import pytest

from benchmarks.cruise import BAND, TABLE
from benchmarks.cruise_format import snapshot_of
from benchmarks.equal_quality import MOVE_PRICE, UntilAsGood, comparisons, recorded, verdict
from benchmarks.random_clusters import SPECS, random_cluster
from model.goals.goals import SolveLimits
from model.snapshot.snapshot import Count, Resource, StorageKind
from solver.solve import solve

PLANS = recorded(TABLE.read_text())


def test_both_plans_of_each_cluster_are_recorded() -> None:
    assert set(PLANS) == set(SPECS)
    assert {tuple(p.goals for p in plans) for plans in PLANS.values()} == {("resource", "default")}


def test_figures_are_rounded_in_favour_of_cruise_control() -> None:
    plan = PLANS["s1-6x300-rf3"][1]
    assert (plan.moves, plan.leader_changes, plan.cpu_s) == (177, 56, 0.13)
    assert plan.largest[Count.LEADERS] == pytest.approx(0.095)
    assert plan.spread[Resource.DISK] == pytest.approx(0.0725)
    assert plan.spread[Resource.NET_IN] == pytest.approx(0.0525)


def test_resources_without_load_are_not_compared() -> None:
    assert Resource.DISK not in PLANS["s2-10x500-rf1"][0].measures


def test_the_aim_is_the_cost_or_the_imbalance_of_the_recorded_plan() -> None:
    plan = PLANS["s1-6x300-rf3"][1]
    band, even = comparisons(plan, 6)
    assert band.aim == pytest.approx(177 + 0.05 * 56)
    tolerances = {g.resource: g.tolerance for g in band.goals.balance}
    assert tolerances[Count.LEADERS] == pytest.approx(0.095)
    assert tolerances[Count.REPLICAS] == BAND
    squares = 6 * (0.0545**2 + 0.0525**2 + 0.0545**2 + 0.0725**2)
    counts = 6 / 5 * (0.085**2 + 0.095**2 + 0.095**2)
    assert even.aim == pytest.approx(squares + counts + MOVE_PRICE * band.aim)
    assert even.goals.budgets.replica_moves == 177


def test_a_solve_ends_with_the_first_plan_that_is_as_good() -> None:
    document = random_cluster("s2-10x500-rf1")
    plan = PLANS["s2-10x500-rf1"][0]
    band, _ = comparisons(plan, len(document["brokers"]))
    observer = UntilAsGood(band.aim)
    snapshot = snapshot_of(document, StorageKind.SHARED)
    result = solve(snapshot, band.goals, SolveLimits(work=20.0), observer)
    assert observer.cpu_s is not None
    assert result.best is not None
    assert len(result.best.moves) <= plan.moves
    assert not result.best.outside


@pytest.mark.parametrize(
    ("times", "as_good", "expected_words"),
    [
        (0.9, True, "wins"),
        (1.4, True, "within 1.5 times"),
        (1.6, True, "loses"),
        (0.5, False, "loses: no plan as good"),
    ],
)
def test_losses_are_named(times: float, as_good: bool, expected_words: str) -> None:
    assert verdict(times, as_good=as_good) == expected_words

"""Plans of leader changes alone, compared with the best such plan."""

import random

import pytest

from lab.synthetic.shape import ClusterShape
from lab.time_lapse.varying_loads import synthetic_start
from model.goals.goals import Goals, SolveLimits, without_replica_moves
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals

LIMITS = SolveLimits(work=1.0)


def mostly_led_by_one(dice: random.Random, capacity: float | None) -> Snapshot:
    """A cluster of spread replicas, led mostly by broker 1."""
    members = [broker(i, "abcd"[i - 1], capacity=capacity) for i in range(1, 5)]
    rows = []
    for _ in range(8):
        others = dice.sample(range(2, 5), 2)
        replicas = (1, *others) if dice.random() < 0.9 else tuple(others)
        rows.append(Row(replicas=replicas, load=(dice.random(), dice.paretovariate(1.2))))
    return cluster(members, rows)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("capacity", [None, 500.0, 20.0])
@pytest.mark.slow
def test_leader_changes_come_near_the_best_plan_without_copies(
    seed: int, capacity: float | None
) -> None:
    snapshot = mostly_led_by_one(random.Random(seed), capacity)
    given_goals = goals(0.001)
    plan = solve(snapshot, given_goals, LIMITS).best
    assert plan is not None
    assert plan.leaders_only is not None
    best = solve(snapshot, without_replica_moves(given_goals), LIMITS).best
    assert best is not None
    assert not any(move.added for move in best.moves)
    assert best.leaders_only is None
    assert best.bound * (1 - 1e-9) <= plan.leaders_only.objective
    gained = plan.objective_before - plan.leaders_only.objective
    assert gained >= 0.9 * (plan.objective_before - best.objective)
    assert plan.leaders_only.leader_changes <= len(snapshot)


def test_leader_changes_that_do_not_help_are_not_reported() -> None:
    one_replica = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 4)
    plan = solve(one_replica, goals(0.01), LIMITS).best
    assert plan is not None
    assert plan.moves
    assert plan.leaders_only is None
    draining = cluster(
        [broker(1, state=BrokerState.DRAINING), broker(2), broker(3)], [Row(replicas=(1, 2))] * 4
    )
    plan = solve(draining, goals(0.01), LIMITS).best
    assert plan is not None
    assert plan.moves
    assert plan.leaders_only is None


def test_leader_changes_stay_within_their_budget() -> None:
    snapshot = mostly_led_by_one(random.Random(0), None)
    plan = solve(snapshot, goals(0.001, budgets={"leader_changes": 2}), LIMITS).best
    assert plan is not None
    assert plan.leaders_only is not None
    assert plan.leaders_only.leader_changes <= 2


@pytest.mark.parametrize(
    "shape",
    [
        ClusterShape(brokers=10, partitions=600, racks=3, rf=3, hot=True),
        ClusterShape(brokers=12, partitions=1500, racks=3, rf=3, topic_skew=1.2),
    ],
)
def test_a_plan_of_leader_changes_is_no_worse_than_what_the_full_plan_says_of_them(
    shape: ClusterShape,
) -> None:
    snapshot = synthetic_start(shape, 1_767_571_200_000, seed=1)
    limits = SolveLimits(work=0.3)
    full = solve(snapshot, Goals(), limits).best
    assert full is not None
    assert full.leaders_only is not None
    alone = solve(snapshot, without_replica_moves(Goals()), limits).best
    assert alone is not None
    assert alone.objective <= full.leaders_only.objective

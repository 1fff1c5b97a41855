"""What racks, pinned partitions and large partitions force beyond the tolerance."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from model.goals.goals import Goals, RackRule, SolveLimits
from model.snapshot.snapshot import Broker, BrokerState, Resource
from solver.problem.problem import compile_problem
from solver.solve import solve
from solver.tolerance.forced_excess import deviations_between, forced_excess
from solver.tolerance.keep_tolerance import PROVED, PROVED_CLOSEST
from tests.support.solver.exact_oracle import Row, allowed_placements, broker, cluster, goals
from tests.support.solver.zipf_clusters import synthetic

REASON = (
    "the rack rule keeps the 6 brokers of rack r2 together at least 11.1 % above the average "
    "in net_in (tolerance 10.0 %)"
)


def in_racks(sizes: Sequence[int]) -> list[Broker]:
    racks = [f"r{q}" for q, size in enumerate(sizes) for _ in range(size)]
    return [broker(n, rack) for n, rack in enumerate(racks)]


@pytest.mark.search
def test_a_third_of_the_replicas_on_six_of_twenty_brokers() -> None:
    """7, 7 and 6 brokers, three replicas: no plan brings the six inside 10 %."""
    snapshot, limits = synthetic(20, 300, rf=3, seed=2), SolveLimits(work=1.0)
    forced = forced_excess(compile_problem(snapshot, Goals()))
    assert forced.excess == pytest.approx(6 * (20 / 18 - 1.1), rel=1e-6)
    assert forced.reason == REASON
    plan = solve(snapshot, Goals(), limits).best
    assert plan is not None
    assert plan.tolerance_unmet in {f"{PROVED}: {REASON}", f"{PROVED_CLOSEST}: {REASON}"}
    assert plan.outside


def test_racks_that_can_be_left_force_nothing() -> None:
    snapshot = synthetic(20, 300, rf=3, seed=2)
    none = Goals(rack_rule=RackRule.OFF)
    assert forced_excess(compile_problem(snapshot, none)).excess == 0.0


def test_a_large_rack_stays_below_the_average() -> None:
    """One replica of two for two of six brokers: the four others get as little each."""
    rows = [Row(replicas=(0, 4), load=(1.0, 1.0)), Row(replicas=(1, 5), load=(1.0, 1.0))] * 4
    forced = forced_excess(compile_problem(cluster(in_racks((4, 2)), rows), goals()))
    # 8 of 16 units on two brokers, 8 on four: 50 % above and 25 % below in net_in.
    assert forced.excess >= 2 * 0.4 + 4 * 0.15 - 1e-6
    assert (
        "rack rule keeps the 2 brokers of rack r1 together at least 50.0 % above" in forced.reason
    )


def test_rows_that_stay_against_the_rack_rule_count_as_they_are() -> None:
    """All replicas are in one rack, and may stay there."""
    rows = [Row(replicas=(0, 1), load=(1.0, 1.0)), Row(replicas=(2, 3), load=(1.0, 1.0))] * 3
    snapshot = cluster([broker(n, "a" if n < 4 else "b") for n in range(6)], rows)
    forced = forced_excess(compile_problem(snapshot, goals(repair_racks=False)))
    assert forced.excess == 0.0


def test_partitions_that_may_not_move_keep_their_broker_outside() -> None:
    rows = [Row(replicas=(n,), load=(x, x)) for n, x in ((0, 4.0), (1, 1.0), (2, 1.0))]
    snapshot = cluster([broker(n) for n in range(3)], rows)
    forced = forced_excess(compile_problem(snapshot, goals(excluded_topics=["orders"])))
    # The two others stay 50 % below.
    assert forced.excess == pytest.approx(2 * (0.9 + 2 * 0.4), rel=1e-6)
    assert forced.reason.startswith(
        "partitions that may not move keep broker 0 at least 100.0 % above the average"
    )


def test_nothing_is_forced_where_a_draining_broker_keeps_replicas() -> None:
    states = (BrokerState.DRAINING, BrokerState.ALIVE, BrokerState.ALIVE)
    brokers = [broker(n, "a", state=state) for n, state in enumerate(states)]
    rows = [Row(replicas=(n,), load=(1.0, 1.0)) for n in (0, 1, 2)] * 4
    assert forced_excess(compile_problem(cluster(brokers, rows), goals())).excess == 0.0


def test_no_broker_no_partition_and_no_weight_force_nothing() -> None:
    light = goals(balance=[{"resource": "net_in", "floor": 0.0, "weight": 0.0}])
    for snapshot, wanted in (
        (cluster([], []), goals()),
        (cluster([broker(1)], []), goals()),
        (cluster([broker(1)], [Row(replicas=(1,))]), light),
    ):
        assert forced_excess(compile_problem(snapshot, wanted)).excess == 0.0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
def test_a_slow_broker_leaves_its_share_of_leaders_to_the_others(scale: float) -> None:
    """The exact model alone would need gigabytes to prove that no plan comes closer."""
    states = (BrokerState.ALIVE, BrokerState.SLOW, BrokerState.ALIVE)
    brokers = [broker(n, state=state) for n, state in enumerate(states)]
    loads = [scale * (1.0 + 0.1 * n) for n in range(6)]
    rows = [
        Row(replicas=(n % 3, (n + 1) % 3, (n + 2) % 3), load=(load, load))
        for n, load in enumerate(loads)
    ]
    snapshot = cluster(brokers, rows)
    wanted = goals(relieve_slow=True)
    forced = forced_excess(compile_problem(snapshot, wanted))
    # 100 % below on the slow one; 100 % above on the two others together.
    assert forced.excess == pytest.approx(0.9 + 1.0 - 2 * 0.1, rel=1e-6)
    for work in (0.01, 20.0):
        plan = solve(snapshot, wanted, SolveLimits(work=work)).best
        assert plan is not None
        assert plan.tolerance_unmet == PROVED_CLOSEST


@pytest.mark.parametrize("rf", [1, 2])
def test_replicas_that_cannot_be_shared_evenly_leave_brokers_outside(rf: int) -> None:
    """Searching for a plan inside took a quarter of the budget, and proved nothing."""
    rows = [Row(replicas=tuple(range(rf)), load=(2.0, 2.0))] * (12 // rf)
    snapshot = cluster([broker(n) for n in range(8)], rows)
    inbound = goals(balance=[{"resource": "net_in", "floor": 0.0}])
    forced = forced_excess(compile_problem(snapshot, inbound))
    # One or two each, where the average is one and a half.
    assert forced.excess == pytest.approx(8 * (1 / 3 - 0.1), rel=1e-6)
    assert forced.reason == "8 brokers cannot share 12 replicas evenly in net_in (tolerance 10.0 %)"
    result = solve(snapshot, inbound, SolveLimits())
    assert result.best is not None
    assert result.best.tolerance_unmet == f"{PROVED_CLOSEST}: {forced.reason}"
    assert result.work < 2.0


@pytest.mark.parametrize("free", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(40))
def test_placements_of_that_excess_deviate_no_further(seed: int, free: float) -> None:
    random = Random(seed)
    racks = random.choice([(2, 1), (2, 1, 1), (3, 1), (2, 2, 1)])
    brokers = in_racks(racks)
    capacity = random.choice([(None, None), (50.0, 50.0), (50.0, 80.0)])
    brokers = [broker(b.id, b.rack, capacity=capacity[n % 2]) for n, b in enumerate(brokers)]
    rf = min(len(racks), random.choice([2, 2, 3]))
    rows = [
        Row(
            replicas=tuple(random.sample(range(len(brokers)), rf)),
            load=(1 + random.random(), random.choice([0.0, 2.0, 5.0])),
        )
        for _ in range(3 if len(brokers) < 5 else 2)
    ]
    balance = [
        {"resource": r, "floor": 0.0, "weight": random.choice([1.0, 1e6])}
        for r in (Resource.NET_IN, Resource.NET_OUT)
    ]
    snapshot, wanted = cluster(brokers, rows), goals(balance=balance)
    problem = compile_problem(snapshot, wanted)
    found = list(allowed_placements(snapshot, wanted))
    most = min(one.excess for one in found) + free
    low, high = deviations_between(replace(problem, most_excess=most))
    kept = [one for one in found if one.excess <= most]
    assert kept
    for one in kept:
        for k, key in enumerate(problem.keys):
            at = np.array([one.deviations[key][b] for b in problem.brokers])
            assert (low[:, k] <= at).all()
            assert (at <= high[:, k]).all()


def test_any_deviation_is_left_where_the_excess_is_unbounded() -> None:
    problem = compile_problem(synthetic(5, 60, rf=3, seed=1), Goals())
    assert np.isinf(deviations_between(problem)).all()


@pytest.mark.parametrize("seed", range(40))
def test_no_placement_has_less_than_the_excess_that_is_forced(seed: int) -> None:
    random = Random(seed)
    size, rf = random.choice([(2, 1), (3, 1), (4, 1), (3, 2), (4, 2)])
    capacities = [random.choice([None, 50.0, 100.0]) for _ in range(size)]
    if None in capacities:
        capacities = [None] * size
    brokers = [broker(n, capacity=capacity) for n, capacity in enumerate(capacities)]
    spread = random.choice([0.0, 0.05, 0.5])
    rows = [
        Row(
            replicas=tuple(random.sample(range(size), rf)),
            load=(random.choice([0.0, 1.0]) * (1 + spread * random.random()), 2.0),
        )
        for _ in range(random.randint(1, 5 if rf == 1 else 3))
    ]
    snapshot, wanted = cluster(brokers, rows), goals()
    least = min(found.excess for found in allowed_placements(snapshot, wanted))
    assert forced_excess(compile_problem(snapshot, wanted)).excess <= least + 1e-9

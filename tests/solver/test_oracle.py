"""The exact solver against every placement of tiny clusters."""

import pytest

from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import BrokerState, Snapshot, StorageKind
from solver.solve import solve
from tests.support.solver.exact_methods import exact_method
from tests.support.solver.exact_oracle import (
    Row,
    broker,
    cluster,
    goals,
    least,
    least_excess,
    moved,
    passed_on,
    tolerance_decides,
)

pytestmark = [pytest.mark.search, pytest.mark.usefixtures(exact_method.__name__)]

LIMITS = SolveLimits(work=5.0, gap_share=0.0)
LOADS = [(5.0, 1.0), (4.0, 6.0), (3.0, 3.0), (2.0, 0.5), (1.0, 2.0)]
ON_ONE = [Row(replicas=(1,), load=load) for load in LOADS]
THREE = [broker(1, "a"), broker(2, "b"), broker(3, "c")]
FOUR = [broker(1, "a"), broker(2, "a"), broker(3, "b"), broker(4, "b")]
PAIRS = [Row(replicas=(1, 3), load=load) for load in LOADS[:3]]
LONELY = [broker(1, "a"), *(broker(i, "b") for i in (2, 3, 4, 5))]


def placed(replicas: str, observers: str = "") -> list[dict[str, object]]:
    """A placement of all topics; one letter a replica."""
    parts = [
        [{"count": 1, "constraints": {"rack": rack}} for rack in part]
        for part in (replicas, observers)
    ]
    placement = {"version": 1, "replicas": parts[0], "observers": parts[1]}
    return [{"topics": {"prefix": [""]}, "placement": placement}]


CASES: dict[str, tuple[Snapshot, Goals]] = {
    "free moves": (cluster(THREE, ON_ONE), goals(1e-9)),
    "dear moves": (cluster(THREE, ON_ONE), goals(2.0)),
    "default price": (cluster(THREE, ON_ONE), goals()),
    "a weight of 3 on what comes in": (
        cluster(THREE, ON_ONE),
        goals(
            0.05,
            balance=[
                {"resource": "net_in", "weight": 3.0, "floor": 0.0},
                {"resource": "net_out", "weight": 0.2, "floor": 0.0},
            ],
        ),
    ),
    "two rest": (cluster(THREE, ON_ONE, recent=[moved(0, 2, 10), moved(1, 3, 599)]), goals(0.01)),
    "one may not return": (
        cluster(THREE, ON_ONE, recent=[moved(0, 2, 700), moved(0, 3, 3599)]),
        goals(0.01),
    ),
    "all rested, none may return": (
        cluster(THREE[:2], [Row(replicas=(1,))] * 2, recent=[moved(0, 2, 601), moved(1, 2, 3599)]),
        goals(0.01),
    ),
    "unequal capacities": (
        cluster([broker(1, capacity=30), broker(2, capacity=20), broker(3, capacity=10)], ON_ONE),
        goals(0.01),
    ),
    "tight capacities": (
        cluster([broker(1, capacity=20), broker(2, capacity=6), broker(3, capacity=5)], ON_ONE),
        goals(0.01),
    ),
    "a draining broker": (
        cluster([broker(1, state=BrokerState.DRAINING), *THREE[1:]], ON_ONE),
        goals(0.5),
    ),
    "an excluded broker": (
        cluster([*THREE[:2], broker(3, "c", BrokerState.EXCLUDED)], ON_ONE),
        goals(0.01),
    ),
    "few replicas a broker": (cluster(THREE, ON_ONE), goals(0.01, replicas_per_broker=1)),
    "bytes are copied": (
        cluster(
            THREE,
            [
                Row(replicas=(1,), load=load, local_bytes=size)
                for load, size in zip(LOADS, (900, 10, 400, 0, 50), strict=True)
            ],
            storage=StorageKind.REPLICATED,
        ),
        goals(0.3),
    ),
    "pairs, racks": (cluster(FOUR, PAIRS), goals(0.05)),
    "pairs, no racks": (cluster([broker(i) for i in (1, 2, 3, 4)], PAIRS), goals(0.05)),
    "pairs, a draining leader": (
        cluster([broker(1, "a", BrokerState.DRAINING), *FOUR[1:]], PAIRS),
        goals(0.05),
    ),
    "pairs, leaders may not return": (
        cluster(FOUR, PAIRS, recent=[passed_on(0, 3, 601), passed_on(1, 3, 3599)]),
        goals(0.05),
    ),
    "pairs, a draining leader passes back": (
        cluster(
            [broker(1, "a", BrokerState.DRAINING), *FOUR[1:]], PAIRS, recent=[passed_on(0, 3, 9)]
        ),
        goals(0.05),
    ),
    "pairs in one rack": (
        cluster(FOUR, [Row(replicas=(1, 2), load=load) for load in LOADS[:3]]),
        goals(0.2),
    ),
    "pairs, more replicas than racks": (
        cluster([broker(i, "a") for i in (1, 2, 3, 4)], PAIRS),
        goals(0.05),
    ),
    "pairs, capacities": (
        cluster([broker(b.id, b.rack, capacity=25) for b in FOUR], PAIRS),
        goals(0.05),
    ),
    "three replicas in two racks": (
        cluster(FOUR, [Row(replicas=(1, 2, 3), load=load) for load in LOADS[:2]]),
        goals(0.01),
    ),
    "even racks, one of them full": (
        cluster(LONELY, [Row(replicas=(1, 2, 3, 4), load=load) for load in LOADS[:2]]),
        goals(0.01, rack_rule="even"),
    ),
    "even racks, one that is to be emptied": (
        cluster(
            [broker(1, "a", BrokerState.DRAINING), *LONELY[1:], broker(6, "c")],
            [Row(replicas=(1, 2, 3), load=load) for load in LOADS[:2]],
        ),
        goals(0.01, rack_rule="even"),
    ),
    "a placement makes one of two move": (
        cluster(
            FOUR,
            [
                Row(replicas=(1, 2), load=(5.0, 1.0), local_bytes=900),
                Row(replicas=(3, 4), load=(1.0, 3.0), local_bytes=90),
            ],
            storage=StorageKind.REPLICATED,
        ),
        goals(0.3, placements=placed("ab")),
    ),
    "observers stand before the others": (
        cluster(
            FOUR,
            [
                Row(replicas=(3, 1), load=(2.0, 2.0), leader=1),
                Row(replicas=(3, 1), load=(1.0, 3.0), leader=3),
                Row(replicas=(2, 4), load=(1.0, 3.0)),
            ],
        ),
        goals(0.3, placements=placed("a", "b")),
    ),
    "an observer beside a replica in its rack": (
        cluster(
            FOUR,
            [
                Row(replicas=(1, 2, 3), load=(2.0, 2.0), leader=3),
                Row(replicas=(1, 3, 2), load=(1.0, 3.0), leader=1),
            ],
        ),
        goals(0.3, placements=placed("ab", "a")),
    ),
    "replicas that cannot be copied use no space elsewhere": (
        cluster(
            [
                broker(1, state=BrokerState.DRAINING, capacity=100),
                *(broker(i, capacity=10) for i in (2, 3)),
            ],
            [Row(replicas=(1,), load=(6.0, 1.0)), Row(replicas=(1,), load=(90.0, 90.0), leader=-1)],
        ),
        goals(0.05),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.slow
def test_the_plan_is_the_best_of_all_placements(case: tuple[Snapshot, Goals]) -> None:
    """Objective and bound enclose the oracle's F, with no tolerance for the bound."""
    snapshot, given_goals = case
    result = solve(snapshot, given_goals, LIMITS)
    best = least(snapshot, given_goals, result.best)
    assert best is not None
    assert result.best is not None
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= best
    assert best - 1e-12 <= result.objective <= best + LIMITS.gap
    assert result.objective - result.bound <= LIMITS.gap
    if tolerance_decides(given_goals):
        closest = least_excess(snapshot, given_goals, result.best)
        assert evaluate(snapshot, given_goals, result.best.moves).excess <= closest + 1e-8
    evaluation = evaluate(snapshot, given_goals, result.best.moves)
    assert evaluation.objective == pytest.approx(result.objective, abs=1e-12)
    assert evaluation.violations == ()


def test_no_placement_means_infeasible() -> None:
    """Where the oracle finds no placement, the solver reports infeasibility."""
    brokers = [broker(1, state=BrokerState.DRAINING), broker(2, capacity=5)]
    snapshot = cluster(brokers, ON_ONE)
    assert least(snapshot, goals()) is None
    result = solve(snapshot, goals(), LIMITS)
    assert result.status is PlanStatus.INFEASIBLE
    assert result.best is None


def test_a_placement_in_an_unknown_rack_is_infeasible() -> None:
    """Even where the counts of existing racks add up to the replication factor."""
    snapshot = cluster(FOUR, [Row(replicas=(1, 2))])
    given_goals = goals(placements=placed("aaz"))
    assert least(snapshot, given_goals) is None
    assert solve(snapshot, given_goals, LIMITS).status is PlanStatus.INFEASIBLE

"""Minimum leaders per broker against every placement of tiny clusters."""

import random

import pytest

from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import VERSION_WITH_MIN_LEADERS, PlanStatus
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.solve import solve
from tests.support.solver.exact_oracle import OTHER, TOPIC, Row, broker, cluster, goals, least

LIMITS = SolveLimits(work=3.0, gap_share=0.0)
ALL = {"prefix": [""]}
UNUSUAL = (BrokerState.DRAINING, BrokerState.EXCLUDED, BrokerState.NEW)


def of_topic(leaders: int, **others: object) -> list[dict[str, object]]:
    return [{"topics": {"exact": ["orders"]}, "leaders": leaders, **others}]


def drawn(seed: int) -> tuple[Snapshot, Goals]:
    """Two to four brokers, and two to five partitions of two topics."""
    draw = random.Random(seed)
    count = draw.randint(2, 4)
    states = [BrokerState.ALIVE] * count
    if draw.random() < 0.25:
        states[draw.randrange(count)] = draw.choice(UNUSUAL)
    brokers = [
        broker(i, draw.choice("ab"), state, capacity=draw.choice([None, None, 30.0]))
        for i, state in enumerate(states, 1)
    ]
    factor = draw.choice([1, 2])
    rows = [
        Row(
            replicas=tuple(draw.sample(range(1, count + 1), factor)),
            load=(float(draw.randint(1, 6)), float(draw.randint(0, 6))),
            topic=draw.choice([TOPIC, TOPIC, OTHER]),
        )
        for _ in range(draw.randint(2, 5 if factor == 1 or count < 4 else 4))
    ]
    wanted = [
        {
            "topics": draw.choice([ALL, {"exact": ["orders"]}]),
            "leaders": draw.choice([1, 1, 1, 2]),
            "brokers": draw.choice([[], [], [], [1]]),
        }
    ]
    others: dict[str, object] = draw.choice(
        [{}, {}, {"tolerance_first": False}, {"budgets": {"replica_moves": 1}}]
    )
    state = cluster(brokers, sorted(rows, key=lambda row: row.topic))
    return state, goals(draw.choice([0.01, 0.1, 1.0]), min_leaders=wanted, **others)


@pytest.mark.search
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.slow
def test_plans_agree_with_all_placements(seed: int) -> None:
    state, given = drawn(seed)
    result = solve(state, given, LIMITS)
    if result.best is None:
        assert result.status is PlanStatus.INFEASIBLE
        assert least(state, given) is None
        return
    found = evaluate(state, given, result.best.moves)
    assert not found.violations
    best = least(state, given, result.best)
    assert best is not None
    assert result.best.bound <= best + 1e-6
    if result.status is PlanStatus.OPTIMAL:
        assert found.objective <= best + 1e-6


ON_ONE = cluster([broker(1), broker(2)], [Row(replicas=(1, 2), load=(1.0, 0.0))] * 4)
LEFT_ALONE = {"move_price": 1000.0, "tolerance_first": False}


def test_leaders_change_for_the_minimum_alone() -> None:
    alone = Goals.model_validate({**LEFT_ALONE, "balance": []}, strict=False)
    assert not (plan := solve(ON_ONE, alone, LIMITS).best) or not plan.moves
    wanted = Goals.model_validate(
        {**LEFT_ALONE, "balance": [], "min_leaders": of_topic(2)}, strict=False
    )
    plan = solve(ON_ONE, wanted, LIMITS).best
    assert plan is not None
    assert [move.leader_after for move in plan.moves] == [2, 2]
    assert not any(move.added for move in plan.moves)
    assert plan.schema_version == VERSION_WITH_MIN_LEADERS
    assert plan.moves[0].reason == "gives broker 2 its minimum of leaders of orders"


def test_too_few_partitions_are_infeasible_with_the_figures() -> None:
    result = solve(ON_ONE, goals(1.0, min_leaders=of_topic(3)), LIMITS)
    assert result.status is PlanStatus.INFEASIBLE
    assert result.reasons == (
        "min_leaders wants 3 leaders of orders on each of 2 brokers, 6 in all, but it has "
        "4 partitions; add partitions, or lower min_leaders for it",
    )


def test_a_broker_that_may_not_lead_enough_is_named() -> None:
    pins = [{"topics": {"exact": ["orders"]}, "brokers": [1]}]
    single = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 4)
    result = solve(single, goals(1.0, min_leaders=of_topic(1), pins=pins), LIMITS)
    assert result.status is PlanStatus.INFEASIBLE
    assert "but broker 2 may lead 0 partitions of it" in result.reasons[0]
    elsewhere = goals(1.0, min_leaders=of_topic(1, brokers=[1]), pins=pins)
    assert solve(single, elsewhere, LIMITS).status is not PlanStatus.INFEASIBLE


def test_shared_racks_are_repaired_where_every_partition_is_anchored() -> None:
    """No partition is left in the group whose rule for even racks is compiled."""
    state = cluster([broker(1, "a"), broker(2, "a"), broker(3, "b")], [Row(replicas=(1, 2))] * 2)
    rules = {"rack_rule": "even", "min_leaders": of_topic(1, brokers=[1, 2]), **LEFT_ALONE}
    plan = solve(state, Goals.model_validate({**rules, "balance": []}, strict=False), LIMITS).best
    assert plan is not None
    assert len(plan.repaired) == 2
    assert {move.leader_after for move in plan.moves} == {1, 2}


def test_a_budget_below_the_minimum_is_infeasible() -> None:
    budget = {"leader_changes": 1}
    result = solve(ON_ONE, goals(1.0, min_leaders=of_topic(2), budgets=budget), LIMITS)
    assert result.status is PlanStatus.INFEASIBLE
    assert "which is proved; lower min_leaders" in result.reasons[0]


@pytest.mark.search
@pytest.mark.slow
def test_sizes_beyond_the_exact_model_keep_the_minimum() -> None:
    draw = random.Random(1)
    rows = []
    for _ in range(500):
        leader = draw.randint(1, 6)
        rest = draw.sample([b for b in range(1, 13) if b != leader], 2)
        rows.append(Row(replicas=(leader, *rest), load=(draw.random(), draw.random())))
    state = cluster([broker(i, "abc"[i % 3]) for i in range(1, 13)], rows)
    given = goals(min_leaders=[{"topics": ALL, "leaders": 41}])
    plan = solve(state, given, SolveLimits(work=4.0)).best
    assert plan is not None
    assert not evaluate(state, given, plan.moves).violations
    assert plan == solve(state, given, SolveLimits(work=4.0)).best

"""Rack violations and exceeded limits are repaired first, where that is possible."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

from control.cli.plan_claims import claims
from control.planning.validate import refuse_broken
from model.evaluate import evaluate_proposal
from model.goals.goals import Goal, Goals, ObjectiveKind, SolveLimits
from model.ids import BrokerId, PartitionId
from model.plan.plan import Plan, PlanStatus
from model.plan.proposal import Change, Proposal
from model.plan.warnings import racks_unknown
from model.snapshot.snapshot import Broker, BrokerState, RecentMove, Resource, Snapshot, StorageKind
from solver.problem.problem import compile_problem
from solver.repair.repair import (
    EXPLAINING_SHARE,
    MOVING_SHARE,
    REASONS_UNREPAIRED,
    SHARE,
    find_repair,
)
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.trace_frontier import trace_plans
from tests.support.solver.begun_search import Stopping
from tests.support.solver.exact_oracle import (
    OTHER,
    TOPIC,
    Row,
    broker,
    cluster,
    goals,
    most_repaired,
    moved,
    placement_count,
    remaining_violations,
)
from tests.support.solver.hard_clusters import hard
from tests.support.solver.random_problems import clusters, random_goals

LIMITS = SolveLimits(work=1.0)
MOST_WAYS = 2_000
FOUR = [broker(0, "A"), broker(1, "B"), broker(2, "A"), broker(3, "B")]
IN_ONE_RACK = [Row(replicas=p) for p in ((0, 2), (1, 3), (2, 0), (3, 1))]
LARGE = SolveLimits(work=0.5)


def planned(snapshot: Snapshot, given_goals: Goals, limits: SolveLimits = LIMITS) -> Plan:
    """The plan, once the evaluator has passed it and what it states."""
    plan = solve(snapshot, given_goals, limits).best
    assert plan is not None
    refuse_broken(snapshot, plan)
    return plan


def reasons(plan: Plan) -> list[str]:
    """Why rack violations remain."""
    return [v.reason for v in plan.rack_violations if not v.repaired]


@pytest.mark.parametrize("objective", ObjectiveKind)
def test_rack_violations_of_a_balanced_cluster_are_repaired(objective: ObjectiveKind) -> None:
    """All four partitions move although moving costs more than it gains."""
    plan = planned(cluster(FOUR, IN_ONE_RACK), goals(objective=objective))
    assert plan.status is PlanStatus.OPTIMAL
    assert len(plan.repaired) == 4
    assert len(plan.moves) == 4
    assert "repairs racks: rack A held all its replicas" in plan.moves[0].reason


def test_every_point_of_the_frontier_repairs_the_racks() -> None:
    """Even the cheapest point; staying in place is not an option."""
    frontier, _ = trace_plans(cluster(FOUR, IN_ONE_RACK), goals(), LIMITS, SolveObserver())
    assert frontier.points
    assert min(point.moves for point in frontier.points) == 4


def test_goals_can_turn_off_rack_repairs() -> None:
    plan = planned(cluster(FOUR, IN_ONE_RACK), goals(repair_racks=False))
    assert plan.moves == ()
    assert reasons(plan) == ["the goals do not repair racks"] * 4


@pytest.mark.parametrize(
    ("changed", "recent", "left"),
    [
        ({"excluded_topics": ["orders"]}, [], ["its topic is excluded"] * 4),
        ({"stay": [{"topic": "orders", "partitions": [1]}]}, [], ["the goals let it stay"]),
        ({}, [moved(2, 1, 10)], ["it is in cooldown after a recent move"]),
        ({"budgets": {"moves": 3}}, [], [REASONS_UNREPAIRED["budgets"]]),
        ({}, [moved(0, 1, 700), moved(0, 3, 700)], [REASONS_UNREPAIRED["brokers"]]),
    ],
)
def test_unrepaired_racks_are_listed_with_the_reason(
    changed: dict[str, object], recent: list[RecentMove], left: list[str]
) -> None:
    plan = planned(cluster(FOUR, IN_ONE_RACK, recent=recent), goals(None, **changed))
    assert reasons(plan) == left
    assert len(plan.repaired) == 4 - len(left)


def test_full_brokers_leave_racks_as_they_are() -> None:
    """The topics that fill the brokers of the other rack are excluded."""
    members = [broker(b.id, b.rack, capacity=2.6) for b in FOUR]
    rows = [Row(replicas=(0, 2))]
    rows += [Row(replicas=(b,), load=(2.0, 2.0), topic=OTHER) for b in (1, 3)]
    plan = planned(cluster(members, rows), goals(excluded_topics=[OTHER]))
    assert reasons(plan) == [REASONS_UNREPAIRED["limits"]]


def test_a_broker_over_its_limit_is_relieved_within_the_tolerance_band() -> None:
    """Variance asks for no move here: broker 1 carries 10 % more than the mean."""
    members = [broker(1, capacity=11.0), broker(2, capacity=20.0), broker(3, capacity=20.0)]
    rows = [Row(replicas=(b,), load=(load, 0.1)) for b, load in ((1, 5.0), (1, 5.0))]
    rows += [Row(replicas=(b,), load=(4.5, 0.1)) for b in (2, 2, 3, 3)]
    plan = planned(cluster(members, rows), goals(5.0, tolerance_first=False))
    (over,) = (o for o in plan.over_limit if o.broker == 1)
    assert (over.before, over.remains) == (10.0, False)
    assert len(plan.moves) == 1
    message = "relieves broker 1, which is over its limit of net_in (10 B/s, the limit is"
    assert f"{message} 9 B/s)" in plan.moves[0].reason


def test_the_reason_of_a_move_that_makes_room_is_the_limit_it_keeps() -> None:
    """Broker 2 can relieve broker 1 only if it gives its own load to broker 3."""
    members = [broker(1, capacity=7.0), broker(2, capacity=9.5), broker(3, capacity=4.8)]
    rows = [Row(replicas=(1,), load=(6.5, 0.1))]
    rows += [Row(replicas=(2,), load=(4.0, 0.1), topic=OTHER)]
    given_goals = goals(5.0)
    plan = planned(cluster(members, rows), given_goals)
    room = next(m for m in plan.moves if m.topic == OTHER)
    assert room.gain < 0
    assert room.reason == (
        "keeps broker 2 within its limit of net_in (10 B/s without this move, the limit is 8 B/s)"
    )
    larger = [broker(b.id, capacity=100.0) for b in members]
    idle = planned(cluster(larger, rows), given_goals)
    assert not any("limit" in move.reason for move in idle.moves)


def test_a_broker_over_its_count_of_replicas_is_named_as_the_reason() -> None:
    members = [broker(i) for i in (1, 2)]
    rows = [Row(replicas=(1,), load=(0.0, 0.0))] * 4
    rows += [Row(replicas=(2,), load=(10.0, 10.0), topic=OTHER)]
    plan = planned(cluster(members, rows), goals(5.0, replicas_per_broker=3))
    (move,) = plan.moves
    message = "relieves broker 1, which is over its limit of replicas (4, the limit is 3)"
    assert move.reason == message


@pytest.mark.parametrize("capacity", [2.0, 0.0018])
def test_an_optimal_plan_repairs_as_much_as_any_other(capacity: float) -> None:
    """Compared with a tiny capacity, loads are capped at a number of limits."""
    members = [broker(1, capacity=capacity), broker(2)]
    rows = [Row(replicas=(2, 1), load=(0.6, 1.0))]
    rows += [Row(replicas=(1, 2), load=(13.6, 20.1))]
    rows += [Row(replicas=(1, 2), load=(1.7, 0.3), topic=OTHER)]
    others = {"budgets": {"leader_changes": 1}, "rack_rule": "off", "objective": "band"}
    state, given_goals = cluster(members, rows), goals(1e-4, **others)
    plan = planned(state, given_goals)
    best = remaining_violations(plan) == pytest.approx(most_repaired(state, given_goals))
    assert (plan.status is PlanStatus.OPTIMAL) == best == (capacity > 1)


@pytest.mark.parametrize("capacity", [1e-9, 1e-6, 1e-300])
def test_loads_far_beyond_a_limit_do_not_fail(capacity: float) -> None:
    """A capacity in the wrong unit: CP-SAT does not hold such excess."""
    members = [broker(b, "a" if b < 3 else "b", capacity=capacity) for b in (1, 2, 3)]
    rows = [Row(replicas=(1, 2), load=(3e6, 6e6)), Row(replicas=(1, 2))]
    plan = solve(cluster(members, rows), goals(), SolveLimits(work=0.3)).best
    assert plan is not None
    assert {o.broker for o in plan.over_limit if o.after > o.limit} >= {1, 2}


def test_an_unrepairable_excess_is_reported_with_its_figure() -> None:
    """Six partitions of 10 on one broker; no other may carry even one."""
    members = [broker(i, capacity=10.0) for i in (1, 2, 3)]
    state = cluster(members, [Row(replicas=(1,), load=(10.0, 10.0))] * 6)
    result = solve(state, goals(), LIMITS)
    assert result.best is not None
    assert result.best.moves == ()
    message = "broker 1 stays over its limit of bytes in: 60 B/s, the limit is 8 B/s"
    assert message in result.summary()
    assert "limits of capacity or replicas rule out the moves" in result.summary()


def test_budgets_are_named_where_they_rule_out_moves() -> None:
    state = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 4)
    result = solve(state, goals(0.1, budgets={"replica_moves": 0}), LIMITS)
    assert result.summary().startswith(
        "no improvement worth its cost: budgets rule out the moves that would pay"
    )


def test_a_limit_exceeded_at_another_hour_is_repaired() -> None:
    members = [broker(i, capacity=10.0) for i in (1, 2)]
    rows = [Row(replicas=(1,), load=(1.0, 1.0), later=(6.0, 1.0)) for _ in range(2)]
    plan = planned(cluster(members, rows), goals(50.0))
    (over,) = plan.over_limit
    assert (over.dimension, over.remains) == ("net_in@later", False)


def test_too_many_replicas_on_a_broker_are_moved() -> None:
    state = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 4)
    plan = planned(state, goals(50.0, replicas_per_broker=3, tolerance_first=False))
    (over,) = plan.over_limit
    assert (over.dimension, over.before, over.after) == ("replicas", 4.0, 3.0)


def crowded() -> Snapshot:
    """12 brokers with 200 partitions each, and 4 empty ones."""
    rows = [Row(replicas=(b,), load=(0.0, 0.0)) for b in range(12) for _ in range(200)]
    return cluster([broker(b) for b in range(16)], rows)


def test_a_repair_of_many_partitions_takes_little_work_and_more_than_its_share_if_needed() -> None:
    problem = compile_problem(crowded(), goals(replicas_per_broker=160))
    limits = SolveLimits(work=0.03)
    result = find_repair(problem, limits, SolveObserver())
    assert result.proved
    assert not result.cut
    assert result.placement is not None
    assert np.bincount(result.placement.replicas.ravel()).max() == 160
    assert SHARE * limits.work < result.work < MOVING_SHARE * limits.work


def test_a_plan_says_where_the_work_left_a_broker_over_its_limit() -> None:
    given_goals = goals(replicas_per_broker=160)
    plan = planned(crowded(), given_goals, SolveLimits(work=0.01))
    assert len(plan.moves) > 0
    assert any(o.remains for o in plan.over_limit)
    assert plan.limited_by == "search budget for repairs exhausted, a share of 0.01 units of work"


def test_the_largest_partitions_leave_a_broker_over_its_limit_first() -> None:
    """Of 2,500 partitions, five of 10 go rather than fifty of 1."""
    rows = [Row(replicas=(1,), load=(10.0 if p % 500 == 7 else 1.0, 0.0)) for p in range(2_500)]
    members = [broker(1, capacity=2_495.0 / 0.85), *(broker(b) for b in range(2, 14))]
    result = find_repair(
        compile_problem(cluster(members, rows), goals()), SolveLimits(), SolveObserver()
    )
    assert result.proved
    assert result.placement is not None
    assert np.flatnonzero(result.placement.leader != 0).tolist() == [7, 507, 1007, 1507, 2007]


def test_the_search_continues_from_a_repair_that_upsets_the_balance() -> None:
    """The limited load must go to six brokers, which can give others partitions without it.

    48 partitions of 1 % of a broker each leave 24 brokers; as many go back.
    """
    capacity = {Resource.NET_OUT: 98.0 / 0.85}
    members = [
        Broker(id=BrokerId(b), state=BrokerState.ALIVE, capacity=capacity) for b in range(30)
    ]
    rows = [Row(replicas=(b,), load=(1.0, float(b < 24))) for b in range(30) for _ in range(100)]
    balance = (Goal(resource=Resource.NET_IN, floor=0.0),)
    given_goals = Goals(balance=balance, move_price=1e-4)
    plan = planned(cluster(members, rows), given_goals, SolveLimits(work=0.5))
    assert sum(o.before > o.limit for o in plan.over_limit) == 24
    assert not any(o.remains for o in plan.over_limit)
    assert plan.objective < 0.02


@pytest.mark.search
def test_large_clusters_are_repaired_too() -> None:
    """By the kernels, with no exact model: racks, limits, and the proved bound."""
    state, given_goals = overloaded(7)
    plan = planned(state, given_goals, LARGE)
    assert len(plan.rack_violations) > 20
    assert reasons(plan) == []
    assert any(o.before > o.limit for o in plan.over_limit)
    assert not any(o.remains for o in plan.over_limit)
    assert all(c.holds is not False for c in claims(plan, state))


def overloaded(seed: int) -> tuple[Snapshot, Goals]:
    """12 brokers in 3 racks, 400 partitions RF 3; racks shared, one broker over."""
    rng = np.random.default_rng(seed)
    members = [broker(i, "abc"[i % 3], capacity=160.0) for i in range(12)]
    rows = []
    for number in range(400):
        among = rng.permutation(12) if number % 8 else rng.permutation(4) * 3
        replicas = among[:3].tolist()
        if number % 5 == 1:
            others = [b for b in rng.permutation(12).tolist() if b % 3]
            replicas = [0, others[0], next(b for b in others if b % 3 != others[0] % 3)]
        rows.append(Row(replicas=tuple(map(int, replicas)), load=(1.0, 0.1)))
    members[0] = broker(0, "a", capacity=130.0)
    return cluster(members, rows), goals()


@pytest.mark.search
@settings(max_examples=80, deadline=None)
@given(snapshot=clusters(most_rows=4), given_goals=random_goals())
def test_no_placement_repairs_more_than_a_plan_called_optimal(
    snapshot: Snapshot, given_goals: Goals
) -> None:
    """Against every placement: what is left broken, and F among those that repair as much."""
    assume(placement_count(snapshot, given_goals) <= MOST_WAYS)
    result = solve(snapshot, given_goals, LIMITS)
    if result.best is None:
        return
    refuse_broken(snapshot, result.best)
    rows, excess = remaining_violations(result.best)
    least_rows, least_excess = most_repaired(snapshot, given_goals)
    assert (rows, excess + 1e-6) >= (least_rows, least_excess)
    if result.status is PlanStatus.OPTIMAL:
        assert rows == least_rows
        assert excess <= least_excess + 1e-6


def unrepairable(rows: int, brokers: int) -> Snapshot:
    """Every row in one rack; no budget lets any of them move."""
    racks = ["A", "B"] * (brokers // 2)
    homes = [(b % brokers, (b + 2) % brokers) for b in range(rows)]
    return cluster(
        [broker(b, rack) for b, rack in enumerate(racks)], [Row(replicas=home) for home in homes]
    )


@pytest.mark.parametrize(("rows", "brokers"), [(20, 8), (900, 40)])
def test_a_repair_takes_no_more_work_than_its_share(rows: int, brokers: int) -> None:
    """Neither building the exact model nor finding reasons exceeds it."""
    given_goals = goals(budgets={"replica_moves": 0})
    problem = compile_problem(unrepairable(rows, brokers), given_goals)
    limits = SolveLimits(work=0.01)
    result = find_repair(problem, limits, SolveObserver())
    assert len(result.unrepaired) == rows
    assert 0 < result.work <= SHARE * (1 + EXPLAINING_SHARE) * limits.work + 1e-3
    if rows > 100:
        assert REASONS_UNREPAIRED["work"] in result.unrepaired.values()


def test_a_stopped_repair_spends_nothing_on_reasons() -> None:
    problem = compile_problem(unrepairable(20, 8), goals())
    result = find_repair(problem, SolveLimits(), Stopping())
    assert set(result.unrepaired.values()) == {REASONS_UNREPAIRED["work"]}


def test_a_change_of_one_row_is_never_made_with_another() -> None:
    """Where rows relieve equally, the change belongs to the row it was found for."""
    snapshot, given_goals = hard(25, 20, 600)
    problem = compile_problem(snapshot, given_goals)
    assert find_repair(problem, SolveLimits(work=0.3), SolveObserver()).placement


def test_a_dead_broker_without_a_rack_leaves_the_rack_rule_on() -> None:
    """Live metadata has no rack for a broker that is no longer registered."""
    members = [
        *(broker(i, rack) for i, rack in enumerate("aabbc", start=1)),
        broker(6, None, BrokerState.DEAD),
    ]
    rows = [Row(replicas=(1, 3, 6))] * 4 + [Row(replicas=(1, 2, 5))]
    snapshot, given_goals = cluster(members, rows), goals()
    plan = planned(snapshot, given_goals)
    rack = {b.id: b.rack for b in snapshot.header.brokers}
    assert len(plan.moves) == len(rows)
    assert all(len({rack[b] for b in m.replicas_after}) == 3 for m in plan.moves)
    assert PartitionId(TOPIC, 4) in plan.repaired
    shared = (Change(0, tuple(map(BrokerId, (1, 2, 3))), BrokerId(1)),)
    violations = evaluate_proposal(Proposal(snapshot, given_goals, shared)).violations
    assert "rack spread" in {v.rule for v in violations}
    assert not racks_unknown(snapshot, given_goals)


@pytest.mark.search
@pytest.mark.parametrize("moves", [0, 5])
def test_budgets_are_the_reason_where_forced_partitions_could_use_them_up(moves: int) -> None:
    """The cheapest places of those led by broker 0 have new replicas, beyond the budget."""
    members = [broker(0, "A", BrokerState.DEMOTED), *(broker(i, "ABC"[i % 3]) for i in range(1, 9))]
    rows = [Row(replicas=(0, b, b % 8 + 1), load=(b, b), local_bytes=1) for b in range(1, 9)] * 40
    state = cluster(members, rows, storage=StorageKind.REPLICATED)
    plan = planned(state, goals(budgets={"replica_moves": moves}), LARGE)
    assert len(plan.repaired) == moves
    assert set(reasons(plan)) == {REASONS_UNREPAIRED["budgets"]}

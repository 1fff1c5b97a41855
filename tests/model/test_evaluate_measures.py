"""F by hand in every measure: slots, CPU, counts, topics, bands."""

import math

import numpy as np
import pytest

from model.dimensions import Dimension, loaded_dimensions, replica_loads
from model.evaluate import Evaluation, counted_dimensions, evaluate, evaluate_proposal
from model.goals.goals import Goal, Goals, ObjectiveKind
from model.goals.move_costs import replica_prices
from model.ids import BrokerId
from model.snapshot.snapshot import (
    BrokerState,
    Count,
    LogDir,
    Measure,
    Resource,
    Snapshot,
    StorageKind,
)
from model.snapshot.topic_spread import least_topic_cost
from tests.support.model.clusters import NO_FLOOR, brokers, change, propose, snapshot, wide

IN, OUT, CPU = Resource.NET_IN, Resource.NET_OUT, Resource.CPU


def goals(*measures: Measure, **others: object) -> Goals:
    balance = tuple(Goal(resource=m) for m in measures)
    return Goals(balance=balance).model_copy(update=others)


def judge(state: Snapshot, *measures: Measure, **others: object) -> Evaluation:
    return evaluate(state, goals(*measures, **others), [])


def columns(state: Snapshot, measure: Measure, slot: str | None = None) -> list:
    return [c.tolist() for c in replica_loads(state, Dimension(measure=measure, slot=slot))]


def test_time_slots_share_the_weight() -> None:
    """Balanced now, all on broker 1 at night: half of 1 + 1."""
    state = wide(brokers(2), [(1,), (2,)], {IN: [5, 5]}, slots={"night": {IN: [4, 0]}})
    evaluation = judge(state, IN)
    assert evaluation.costs == {"net_in": 0.0, "net_in@night": pytest.approx(1.0)}
    assert evaluation.deviations["net_in@night"] == {1: 1.0, 2: -1.0}
    assert evaluation.loads[BrokerId(1)] == {"net_in": 5.0, "net_in@night": 4.0}
    assert evaluation.levels == {"net_in": 5.0, "net_in@night": 2.0}


def test_a_slot_under_its_floor_is_ignored_with_its_share() -> None:
    state = wide(brokers(2), [(1,), (1,)], {IN: [5, 5]}, slots={"night": {IN: [1, 0]}})
    balance = (Goal(resource=IN, floor=2.0),)
    evaluation = evaluate(state, Goals(balance=balance), [])
    assert evaluation.costs == {"net_in": pytest.approx(0.5 * 2)}


def test_each_slot_has_its_tolerance_band() -> None:
    state = wide(brokers(2), [(1,), (2,)], {IN: [5, 5]}, slots={"night": {IN: [6, 4]}})
    evaluation = judge(state, IN)
    assert not evaluation.within_band(goals(IN))
    assert evaluation.within_band(Goals(balance=(Goal(resource=IN, tolerance=0.2),)))


def test_slots_have_their_own_replication_traffic() -> None:
    state = wide(brokers(3), [(1, 2, 3)], {IN: [5], OUT: [7]}, slots={"night": {IN: [1], OUT: [2]}})
    assert columns(state, OUT) == [[17.0], [0.0]]
    assert columns(state, OUT, "night") == [[4.0], [0.0]]


def test_a_follower_uses_cruise_controls_share_of_cpu() -> None:
    """In 10, out 20 + 10 to the one follower: 0.15 x 10 / (7 + 4.5) of 2.3."""
    state = wide(brokers(2), [(1, 2)], {CPU: [2.3], IN: [10], OUT: [20]})
    assert columns(state, CPU) == [[2.3], [pytest.approx(2.3 * 1.5 / 11.5)]]


@pytest.mark.parametrize(
    "loads",
    [
        {CPU: [2.0]},
        {CPU: [2.0], IN: [5.0]},
        {CPU: [2.0], IN: [0.0], OUT: [0.0]},
        {CPU: [2.0], IN: [math.nan], OUT: [1.0]},
        {CPU: [2.0], IN: [1.0], OUT: [math.nan]},
    ],
)
def test_without_known_traffic_a_follower_uses_no_cpu(loads: dict) -> None:
    state = wide(brokers(2), [(1, 2)], loads)
    assert columns(state, CPU) == [[2.0], [0.0]]


def test_requests_go_to_the_leader_and_bytes_on_disk_to_each() -> None:
    state = wide(brokers(2), [(1, 2)], {Resource.REQUESTS: [3], Resource.DISK: [9]})
    assert columns(state, Resource.REQUESTS) == [[3.0], [0.0]]
    assert columns(state, Resource.DISK) == [[9.0], [9.0]]


def test_counts_are_of_the_placement_at_every_hour() -> None:
    state = wide(
        brokers(2), [(1, 2), (1, 2), (1, 2)], {IN: [1, 2, 6]}, slots={"night": {IN: [0, 0, 2]}}
    )
    given_goals = goals(Count.REPLICAS, Count.LEADERS, Count.LEADER_NET_IN)
    evaluation = evaluate(state, given_goals, [])
    assert evaluation.deviations == {
        "replicas": {1: 0.0, 2: 0.0},
        "leaders": {1: 1.0, 2: -1.0},
        "leader_net_in": {1: 1.0, 2: -1.0},
        "leader_net_in@night": {1: 1.0, 2: -1.0},
    }
    assert evaluation.deviation == pytest.approx(2 + 0.5 * 2 + 0.5 * 2)
    assert evaluation.loads[BrokerId(1)]["leader_net_in"] == 9.0


def test_potential_bytes_out_are_those_of_a_leader_on_every_replica() -> None:
    state = wide(brokers(3), [(1, 2), (2, 3)], {IN: [1, 2], OUT: [5, 7]})
    evaluation = judge(state, Count.POTENTIAL_NET_OUT)
    # Each leader also serves one follower.
    potential = {b: evaluation.loads[BrokerId(b)]["potential_net_out"] for b in (1, 2, 3)}
    assert potential == {1: 6.0, 2: 15.0, 3: 9.0}


def test_potential_bytes_out_need_measured_bytes() -> None:
    state = wide(brokers(2), [(1,)], {IN: [1]})
    assert judge(state, Count.POTENTIAL_NET_OUT).levels == {}


def test_leader_bytes_in_need_measured_bytes() -> None:
    state = wide(brokers(2), [(1,)], {OUT: [1]})
    assert judge(state, Count.LEADER_NET_IN).levels == {}


def test_counts_have_no_capacity() -> None:
    state = snapshot(brokers(2, capacity={1: 30.0, 2: 10.0}), [(1,)] * 3 + [(2,)])
    assert judge(state, Count.REPLICAS).deviation == pytest.approx(2 * 0.5**2)


def test_loads_name_the_counts_that_are_goals() -> None:
    state = snapshot(brokers(1), [(1,)])
    given_goals = goals(Count.LEADERS, Count.TOPIC_LEADERS)
    keys = [d.key for d in loaded_dimensions(state.header, given_goals)]
    assert keys == ["net_in", "net_out", "leaders"]


def test_each_topic_is_balanced_by_itself() -> None:
    """t0 has 3 of 4 replicas, all on broker 1; t1 has one, on broker 2."""
    state = wide(brokers(2), [(1,), (1,), (1,), (2,)], {}, topics=[0, 0, 0, 1])
    evaluation = judge(state, Count.TOPIC_REPLICAS)
    assert evaluation.costs == {"topic_replicas": pytest.approx(0.75 * 2 + 0.25 * 2)}
    assert evaluation.levels == {"topic_replicas": 2.0}
    assert evaluation.deviations == {}
    assert evaluation.within_band(goals(Count.TOPIC_REPLICAS))
    moved = evaluate_proposal(propose(state, change(0, 2), goals=goals(Count.TOPIC_REPLICAS)))
    assert moved.deviation == pytest.approx(0.75 * 2 * (0.5 / 1.5) ** 2 + 0.25 * 2)


def test_leaders_of_a_topic_are_balanced_by_themselves() -> None:
    state = wide(brokers(2), [(1, 2), (1, 2)], {})
    evaluation = judge(state, Count.TOPIC_LEADERS, Count.TOPIC_REPLICAS)
    assert evaluation.costs == {
        "topic_leaders": pytest.approx(2.0),
        "topic_replicas": pytest.approx(0.0),
    }


def test_no_placement_beats_the_least_topic_cost() -> None:
    """Five replicas on three brokers, one of them lost: 2 + 2 over the average 5/3."""
    state = snapshot(
        brokers(3, states={3: BrokerState.DEAD}),
        [(1,), (1,), (1,), (2,), (3,)],
        leaders=[1, 1, 1, 2, -1],
    )
    given_goals = goals(Count.TOPIC_REPLICAS)
    proposal = propose(state, change(0, 2), goals=given_goals)
    evaluation = evaluate_proposal(proposal)
    (goal,) = counted_dimensions(proposal)
    assert evaluation.violations == ()
    assert evaluation.deviation == pytest.approx(2 * (2 / 2.5 - 1) ** 2)
    fixed = np.array([False, False, False, False, True])
    assert least_topic_cost(proposal, goal, fixed) == pytest.approx(evaluation.deviation)


def test_the_band_objective_is_costs_plus_excess() -> None:
    """Deviations of 0.5 with a tolerance of 0.1: 2 x 2 x 0.4 outside the band."""
    state = snapshot(brokers(2), [(1,)] * 3 + [(2,)])
    given_goals = NO_FLOOR.model_copy(
        update={"objective": ObjectiveKind.BAND, "excess_price": 100.0}
    )
    evaluation = evaluate(state, given_goals, [])
    assert evaluation.move_price == 1.0
    assert evaluation.excess == pytest.approx(1.6)
    assert evaluation.objective == pytest.approx(160.0)
    assert evaluation.deviation == pytest.approx(1.0)
    moved = evaluate_proposal(propose(state, change(0, 2), goals=given_goals))
    assert moved.objective == pytest.approx(1.05)
    assert moved.within_band(given_goals)


def test_the_band_objective_ignores_topics() -> None:
    state = snapshot(brokers(2), [(1,)] * 3)
    evaluation = judge(state, Count.TOPIC_REPLICAS, objective=ObjectiveKind.BAND)
    assert (evaluation.objective, evaluation.excess) == (0.0, 0.0)
    assert evaluation.deviation > 0


def test_the_cost_of_a_move_under_a_band_may_be_configured() -> None:
    """It also sets the cost of the excess."""
    state = snapshot(brokers(2), [(1,)] * 3 + [(2,)])
    given_goals = NO_FLOOR.model_copy(
        update={"objective": ObjectiveKind.BAND, "excess_price": 100.0, "move_price": 0.5}
    )
    assert evaluate(state, given_goals, []).objective == pytest.approx(80.0)


def test_a_storage_kind_has_its_factor() -> None:
    state = snapshot(brokers(3), [(1, 2)], storage=StorageKind.TIERED)
    given_goals = NO_FLOOR.model_copy(
        update={"move_price": 1.0, "storage_price": {StorageKind.TIERED: 3.0}}
    )
    evaluation = evaluate_proposal(propose(state, change(0, 1, 3), goals=given_goals))
    assert evaluation.prices == pytest.approx(3.0)
    assert replica_prices(state, given_goals).tolist() == [3.0]


def jbod(dirs: list[list[int]]) -> Snapshot:
    listed = (LogDir(path="/a"), LogDir(path="/b"))
    members = [b.model_copy(update={"log_dirs": listed}) for b in brokers(3)]
    return wide(members, [(1, 2)] * len(dirs), {}, dirs=dirs)


@pytest.mark.parametrize(
    ("after", "dirs", "price"),
    [
        ((1, 2), ("/b", "/a"), 1.0),
        ((1, 2), ("/b", "/b"), 2.0),
        ((1, 2), ("/a", "any"), 0.0),
        ((1, 3), ("/a", "/b"), 1.0),
        ((1, 3), ("/b", "any"), 2.0),
        ((1, 2), (), 0.0),
    ],
)
def test_another_log_directory_costs_as_a_new_replica(
    after: tuple[int, ...], dirs: tuple[str, ...], price: float
) -> None:
    """From /a on each broker; a new replica costs once."""
    given_goals = NO_FLOOR.model_copy(update={"move_price": 1.0})
    changed = change(0, *after, dirs=dirs)
    evaluation = evaluate_proposal(propose(jbod([[0, 0]]), changed, goals=given_goals))
    assert evaluation.prices == pytest.approx(price)


def test_replicas_are_evaluated_in_columns() -> None:
    """The sums of 200,000 rows equal those of numpy."""
    n = 200_000
    rng = np.random.default_rng(7)
    state = snapshot(
        brokers(50), [(1 + i % 50, 1 + (i + 7) % 50) for i in range(n)], rng.random((n, 2)).tolist()
    )
    evaluation = evaluate(state, NO_FLOOR, [])
    whole = sum(load["net_in"] for load in evaluation.loads.values())
    assert whole == pytest.approx(2 * state.partitions.loads[:, 0].sum())

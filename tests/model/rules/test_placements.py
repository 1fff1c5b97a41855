"""Rules on places: pins, racks, explicit placements, states, log directories."""

import pytest

from model.goals.goals import Goals, Pin, RackRule
from model.goals.rack_placement import PlacementRule, RackConstraint, RackCount, ReplicaPlacement
from model.ids import BrokerId
from model.names import Names
from model.snapshot.snapshot import BrokerState, LogDir, Snapshot
from tests.support.model.clusters import (
    NO_FLOOR,
    brokers,
    change,
    ids,
    propose,
    snapshot,
    wide,
    words,
)

DRAINING, DEAD = BrokerState.DRAINING, BrokerState.DEAD
ORDERS = Names(exact=("orders",))


def goals_with(**others: object) -> Goals:
    return NO_FLOOR.model_copy(update=others)


def counts(**racks: int) -> tuple[RackCount, ...]:
    return tuple(
        RackCount(count=count, constraints=RackConstraint(rack=rack))
        for rack, count in racks.items()
    )


def placed(observers: dict[str, int] | None = None, **racks: int) -> Goals:
    rule = ReplicaPlacement(
        version=2, replicas=counts(**racks), observers=counts(**(observers or {}))
    )
    return goals_with(placements=(PlacementRule(topics=ORDERS, placement=rule),))


# Brokers that take no new load


@pytest.mark.parametrize("state", [BrokerState.SLOW, BrokerState.CORDONED])
def test_slow_and_cordoned_brokers_take_nothing_new(state: BrokerState) -> None:
    """They may lose load, and their present load counts."""
    cluster = snapshot(brokers(3, states={3: state}), [(1, 2), (3, 1)])
    messages = words(propose(cluster, change(0, 1, 3)), "eligible brokers")
    assert messages == [f"orders-0 would go to broker 3, which is {state}"]
    away = propose(cluster, change(1, 2, 1))
    assert words(away, "eligible brokers") == []
    assert BrokerId(3) in away.holding
    assert words(propose(cluster), "drained brokers") == []


def test_a_slow_broker_does_not_become_leader() -> None:
    state = snapshot(brokers(2, states={2: BrokerState.SLOW}), [(1, 2)])
    assert words(propose(state, change(0, 2, 1)), "eligible brokers") != []


def test_a_new_broker_takes_load() -> None:
    state = snapshot(brokers(2, states={2: BrokerState.NEW}), [(1,)])
    assert words(propose(state, change(0, 2)), "eligible brokers") == []


# Pins


def test_pinned_partitions_are_on_their_brokers() -> None:
    goals = goals_with(pins=(Pin(topics=ORDERS, brokers=ids(1, 2)),))
    state = snapshot(brokers(3), [(1, 2)])
    messages = words(propose(state, change(0, 1, 3), goals=goals), "pins")
    assert messages == ["orders-0 would lie on broker 3, outside its pins"]
    assert words(propose(state, change(0, 2, 1), goals=goals), "pins") == []


def test_pinned_partitions_are_in_their_racks() -> None:
    goals = goals_with(pins=(Pin(topics=ORDERS, racks=("a", "b")),))
    state = snapshot(brokers(3, "abc"), [(1,)])
    assert words(propose(state, change(0, 2), goals=goals), "pins") == []
    assert words(propose(state, change(0, 3), goals=goals), "pins") != []


def test_all_pins_hold_together() -> None:
    pins = (Pin(topics=ORDERS, racks=("a",)), Pin(topics=ORDERS, brokers=ids(2, 3)))
    goals = goals_with(pins=pins)
    state = snapshot(brokers(3, "aab"), [(2,)])
    for broker, fits in ((1, False), (2, True), (3, False)):
        messages = words(propose(state, change(0, broker), goals=goals), "pins")
        assert (messages == []) == fits


def test_a_pin_of_single_partitions_does_not_affect_the_others() -> None:
    goals = goals_with(pins=(Pin(topics=ORDERS, partitions=(1,), brokers=ids(2)),))
    state = snapshot(brokers(2), [(1,), (1,)])
    messages = words(propose(state, goals=goals), "pins")
    assert messages == ["orders-1 would lie on broker 1, outside its pins"]


def test_replicas_outside_their_pin_must_move_despite_other_rules() -> None:
    """Though its topic is excluded; the new replica is free of charge."""
    goals = goals_with(pins=(Pin(topics=ORDERS, brokers=ids(2)),), excluded_topics=ORDERS)
    state = snapshot(brokers(2), [(1,), (2,)])
    proposal = propose(state, change(0, 2), goals=goals)
    assert proposal.forced.rows.tolist() == [True, False]
    assert proposal.forced.replicas.tolist() == [1, 0]
    assert words(proposal, "pins") == words(proposal, "movable partitions") == []


def test_partitions_without_leader_may_stay_outside_their_pin() -> None:
    goals = goals_with(pins=(Pin(topics=ORDERS, brokers=ids(2)),))
    state = snapshot(brokers(2), [(1,)], leaders=[-1])
    assert words(propose(state, goals=goals), "pins") == []


# Racks


def test_the_rack_rule_may_be_off() -> None:
    state = snapshot(brokers(4, "aabb"), [(1, 3)])
    goals = goals_with(rack_rule=RackRule.OFF)
    assert words(propose(state, change(0, 1, 2), goals=goals), "rack spread") == []


def test_even_racks_differ_by_one_at_most() -> None:
    """Spread alone would allow three in one rack and one in the other."""
    state = snapshot(brokers(6, "aaabbb"), [(1, 2, 4, 5)])
    lopsided, even = change(0, 1, 2, 3, 4), change(0, 1, 3, 4, 5)
    goals = goals_with(rack_rule=RackRule.EVEN)
    assert words(propose(state, lopsided), "rack spread") == []
    assert words(propose(state, even, goals=goals), "rack spread") == []
    assert words(propose(state, lopsided, goals=goals), "rack spread") == [
        "orders-0 would lie 3 times in rack a and 1 times in rack b, which differ by more than one"
    ]


def test_a_rack_may_have_an_empty_name() -> None:
    """Kafka accepts an empty `broker.rack=`."""
    named = tuple(b.model_copy(update={"rack": "" if b.id < 3 else "b"}) for b in brokers(4))
    cluster = snapshot(named, [(1, 2)])
    assert words(propose(cluster, change(0, 1, 3)), "rack spread") == []
    messages = words(propose(snapshot(named, [(1, 3)]), change(0, 1, 2)), "rack spread")
    assert messages == ["orders-0 would lie in 1 rack where 2 are possible"]


def test_a_rack_that_is_full_may_fall_behind() -> None:
    state = snapshot(brokers(5, "aaaab"), [(1, 2, 3, 5)])
    goals = goals_with(rack_rule=RackRule.EVEN)
    messages = words(propose(state, change(0, 1, 2, 4, 5), goals=goals), "rack spread")
    assert messages == []


def test_pinned_partitions_are_spread_over_the_racks_of_their_pin() -> None:
    state = snapshot(brokers(4, "aabb"), [(1, 3)])
    goals = goals_with(pins=(Pin(topics=ORDERS, racks=("a",)),))
    assert words(propose(state, change(0, 1, 2), goals=goals), "rack spread") == []


# Explicit placements


def test_replicas_match_the_counts_of_their_placement() -> None:
    state = snapshot(brokers(4, "aabb"), [(1, 2, 3)])
    goals = placed(a=2, b=1)
    fits = propose(state, change(0, 2, 1, 4), goals=goals)
    assert words(fits, "explicit placement") == []
    messages = words(propose(state, change(0, 1, 3, 4), goals=goals), "explicit placement")
    assert messages == [
        "orders-0 would have 1 replicas in rack a, its placement asks for 2",
        "orders-0 would have 2 replicas in rack b, its placement asks for 1",
    ]


def test_a_placement_replaces_the_rack_rule() -> None:
    state = snapshot(brokers(4, "aabb"), [(1, 3)])
    proposal = propose(state, change(0, 1, 2), goals=placed(a=2))
    assert words(proposal, "rack spread") == []
    assert words(proposal, "explicit placement") == []


def test_observers_come_last_and_do_not_lead() -> None:
    state = snapshot(brokers(4, "aabb"), [(1, 3)])
    goals = placed({"b": 1}, a=1)
    assert words(propose(state, goals=goals), "explicit placement") == []
    first = words(propose(state, change(0, 3, 1), goals=goals), "explicit placement")
    assert first == [
        "orders-0 would have 0 replicas in rack a, its placement asks for 1",
        "orders-0 would have 0 observers in rack b, its placement asks for 1",
    ]
    led = propose(state, change(0, 1, 3, leader=3), goals=goals)
    assert words(led, "explicit placement") == ["orders-0 would be led by broker 3, an observer"]


def test_partitions_that_violate_their_placement_must_change() -> None:
    """One of two has to go from rack a to rack b; its copy is free of charge."""
    state = snapshot(brokers(4, "aabb"), [(1, 2), (1, 3)])
    proposal = propose(state, goals=placed(a=1, b=1))
    assert proposal.forced.rows.tolist() == [True, False]
    assert proposal.forced.replicas.tolist() == [1, 0]
    assert words(proposal, "explicit placement") == [
        "orders-0 would have 2 replicas in rack a, its placement asks for 1"
    ]


def test_an_observer_that_leads_hands_over_without_a_copy() -> None:
    state = snapshot(brokers(2, "ab"), [(1, 2)], leaders=[2])
    proposal = propose(state, goals=placed({"b": 1}, a=1))
    assert proposal.forced.rows.tolist() == [True]
    assert proposal.forced.replicas.tolist() == [0]
    assert words(proposal, "explicit placement") == [
        "orders-0 would be led by broker 2, an observer"
    ]


@pytest.mark.parametrize("state", [DRAINING, DEAD])
def test_an_unsatisfiable_placement_is_reported_with_names(state: BrokerState) -> None:
    cluster = snapshot(brokers(3, "aab", {3: state}), [(1, 3)])
    goals = placed(a=1, b=1)
    messages = words(propose(cluster, change(0, 1, 2), goals=goals), "explicit placement")
    assert messages[-1] == (
        "orders-0 would have 0 replicas in rack b, its placement asks for 1; rack b "
        "has no broker that is not draining"
    )


def test_a_placement_naming_an_unknown_rack_is_reported() -> None:
    state = snapshot(brokers(2, "ab"), [(1, 2)])
    messages = words(propose(state, goals=placed(a=1, east=1)), "explicit placement")
    assert messages == [
        "orders-0 would have 0 replicas in rack east, its placement asks for 1; no "
        "broker names the rack east"
    ]


def test_a_placement_with_another_replication_factor_is_reported() -> None:
    state = snapshot(brokers(2, "ab"), [(1, 2)])
    messages = words(propose(state, goals=placed(a=1)), "explicit placement")
    assert messages == ["orders-0 has 2 replicas; its placement asks for 1"]


# Log directories


def jbod(local_bytes: int, capacity: float | None, *, cordoned: bool = False) -> Snapshot:
    """/a of each broker holds its replica of the one partition; /b is empty."""
    dirs = (LogDir(path="/a"), LogDir(path="/b", capacity_bytes=capacity, cordoned=cordoned))
    members = [b.model_copy(update={"log_dirs": dirs}) for b in brokers(3)]
    state = wide(members, [(1, 2), (1, 2)], {}, dirs=[[0, 0], [1, 1]])
    state.partitions.local_bytes[:] = local_bytes
    return state


def test_a_log_directory_must_be_its_brokers() -> None:
    proposal = propose(jbod(10, None), change(0, 1, 3, dirs=("/a", "/c")))
    assert words(proposal, "log directories") == [
        "orders-0 would lie in /c of broker 3, which has no such log directory"
    ]


def test_a_cordoned_log_directory_takes_nothing_new() -> None:
    """Its present replicas may stay."""
    state = jbod(10, None, cordoned=True)
    messages = words(propose(state, change(0, 1, 2, dirs=("/b", "/a"))), "log directories")
    assert messages == ["orders-0 would lie in /b of broker 1, which is cordoned"]
    stays = propose(state, change(1, 2, 1, dirs=("/b", "/b")))
    assert words(stays, "log directories") == []


@pytest.mark.parametrize(("capacity", "fits"), [(24.0, True), (23.0, False)])
def test_a_log_directory_is_not_overfilled(capacity: float, fits: bool) -> None:
    """Two of 10 bytes in /b of broker 1; its limit is 0.85 of its capacity."""
    proposal = propose(jbod(10, capacity), change(0, 1, 2, dirs=("/b", "any")))
    messages = words(proposal, "log directories")
    assert messages == ([] if fits else ["/b of broker 1 would hold 20 B; its limit is 20 B"])


def test_an_overfilled_log_directory_may_get_emptier() -> None:
    proposal = propose(jbod(10, 1.0), change(1, 1, 2, dirs=("/a", "/b")))
    assert words(proposal, "log directories") == []


def test_either_all_replicas_have_log_directories_or_none() -> None:
    proposal = propose(jbod(10, None), change(0, 1, 2, dirs=("/b",)))
    assert words(proposal, "log directories") == [
        "orders-0 would have 1 log directories for 2 replicas"
    ]


def test_log_directories_of_a_broker_without_any_are_refused() -> None:
    state = snapshot(brokers(2), [(1,)])
    proposal = propose(state, change(0, 2, dirs=("/a",)))
    assert words(proposal, "log directories") != []

"""Each hard rule by itself: violations, their absence, and the messages."""

import dataclasses

import pytest

from model.evaluate import evaluate_proposal
from model.goals.goals import Goals, Stay
from model.ids import BrokerId, TopicName
from model.names import Names
from model.plan.proposal import Change, Proposal
from model.plan.replication_change import ReplicationChange
from model.rules import violations_of
from model.snapshot.snapshot import BrokerState, RecentMove, Snapshot, StorageKind
from tests.support.model.clusters import (
    NO_FLOOR,
    TAKEN_AT_MS,
    TOPIC,
    brokers,
    change,
    ids,
    propose,
    snapshot,
    words,
)

DRAINING, DEAD = BrokerState.DRAINING, BrokerState.DEAD
EXCLUDED = BrokerState.EXCLUDED


def goals_with(**others: object) -> Goals:
    return NO_FLOOR.model_copy(update=others)


def recent(partition: int, left: int, age_s: float) -> RecentMove:
    at_ms = TAKEN_AT_MS - int(1000 * age_s)
    return RecentMove(topic=TOPIC, partition=partition, left=ids(left), at_ms=at_ms)


def test_no_changes_break_no_rule() -> None:
    proposal = propose(snapshot(brokers(3, "abc"), [(1, 2), (1, 3)]))
    assert list(violations_of(proposal)) == []


def test_the_replication_factor_is_kept() -> None:
    state = snapshot(brokers(3), [(1, 2)])
    messages = words(propose(state, change(0, 1, 2, 3)), "replication factor")
    assert messages == ["orders-0 would have 3 replicas, it has 2"]
    assert words(propose(state, change(0, 3, 2)), "replication factor") == []


def asked(state: Snapshot, before: int, after: int, *changes: Change) -> Proposal:
    """A proposal whose plan changes the replication factor of the topic."""
    wanted = ReplicationChange(topic=TOPIC, before=before, after=after)
    return dataclasses.replace(propose(state, *changes), replication=(wanted,))


def test_the_replication_factor_changes_where_the_plan_says_so() -> None:
    state = snapshot(brokers(4), [(1, 2), (2, 3, 1)])
    wider = change(0, 1, 2, 3)
    assert words(asked(state, 2, 3, wider), "replication factor") == []
    assert words(asked(state, 2, 4, wider), "replication factor") == [
        "orders-0 would have 3 replicas, the plan asks for 4",
        "orders-1 would keep 3 replicas, the plan asks for 4",
    ]
    exchanged = words(asked(state, 2, 3, change(0, 1, 3, 4)), "replication factor")
    assert exchanged == ["orders-0 would exchange replicas while their number changes"]
    other = ReplicationChange(topic=TopicName("others"), before=2, after=3)
    found = dataclasses.replace(propose(state, wider), replication=(other,))
    assert words(found, "replication factor") == [
        "orders-0 would have 3 replicas, it has 2",
        "the topic others does not exist",
    ]


def test_new_replicas_spread_as_far_as_those_that_stay_permit() -> None:
    state = snapshot(brokers(6, "aabbcc"), [(1, 2)])
    assert words(asked(state, 2, 3, change(0, 1, 2, 3)), "rack spread") == []
    even = snapshot(brokers(6, "aaabbb"), [(1,)])
    assert words(asked(even, 1, 2, change(0, 1, 2)), "rack spread")
    assert words(asked(even, 1, 2, change(0, 1, 4)), "rack spread") == []


def test_removed_replicas_leave_as_many_racks_as_possible() -> None:
    state = snapshot(brokers(6, "aabbcc"), [(1, 2, 3)])
    assert words(asked(state, 3, 2, change(0, 1, 3)), "rack spread") == []
    assert words(asked(state, 3, 2, change(0, 1, 2)), "rack spread")
    together = snapshot(brokers(6, "aaabbb"), [(1, 2, 3)])
    assert words(asked(together, 3, 2, change(0, 1, 2)), "rack spread") == []


def test_replicas_asked_for_wait_for_no_cooldown_and_cost_nothing() -> None:
    bare = snapshot(brokers(3), [(1,)], storage=StorageKind.REPLICATED)
    header = bare.header.model_copy(update={"recent_moves": (recent(0, 2, 10.0),)})
    state = Snapshot(header, bare.partitions)
    found = asked(state, 1, 2, change(0, 1, 2))
    assert [v.rule for v in violations_of(found)] == []
    assert evaluate_proposal(found).prices == 0.0


def test_a_broker_holds_a_partition_once() -> None:
    state = snapshot(brokers(3), [(1, 2)])
    messages = words(propose(state, change(0, 3, 3)), "distinct replicas")
    assert messages == ["orders-0 would lie twice on a broker: (3, 3)"]


def test_the_leader_holds_a_replica() -> None:
    state = snapshot(brokers(3), [(1, 2)])
    messages = words(propose(state, change(0, 1, 2, leader=3)), "distinct replicas")
    assert messages == ["orders-0 would be led by broker 3, which holds no replica of it"]


@pytest.mark.parametrize("state", [DRAINING, DEAD, EXCLUDED])
def test_new_load_goes_to_alive_brokers_only(state: BrokerState) -> None:
    cluster = snapshot(brokers(3, states={3: state}), [(1, 2)])
    messages = words(propose(cluster, change(0, 1, 3)), "eligible brokers")
    assert messages == [f"orders-0 would go to broker 3, which is {state}"]


def test_an_unknown_broker_takes_nothing() -> None:
    proposal = propose(snapshot(brokers(2), [(1,)]), change(0, 9))
    assert words(proposal, "eligible brokers") == [
        "orders-0 would go to broker 9, which is unknown"
    ]


def test_an_excluded_broker_keeps_its_replicas_but_does_not_become_leader() -> None:
    state = snapshot(brokers(3, states={2: EXCLUDED}), [(1, 2)])
    assert words(propose(state, change(0, 3, 2)), "eligible brokers") == []
    assert words(propose(state, change(0, 2, 1)), "eligible brokers") != []


@pytest.mark.parametrize("state", [DRAINING, DEAD])
def test_a_leaving_broker_ends_empty(state: BrokerState) -> None:
    cluster = snapshot(brokers(2, states={1: state}), [(1,), (1,)])
    messages = words(propose(cluster, change(0, 2)), "drained brokers")
    assert messages == [f"broker 1 is {state} and would keep 1 replica"]
    emptied = propose(cluster, change(0, 2), change(1, 2))
    assert words(emptied, "drained brokers") == []


def test_excluded_partitions_stay_and_others_of_their_topic_may_move() -> None:
    stay = (Stay(topic=TOPIC, partitions=(0,)),)
    two = [(1, 2), (1, 2)]
    state = snapshot(brokers(3), two)
    for changed, reported in (
        (change(0, 1, 3), ["orders-0 stays: the goals let it stay"]),
        (change(0, 2, 1), ["orders-0 stays: the goals let it stay"]),
        (change(1, 1, 3), []),
    ):
        proposal = propose(state, changed, goals=goals_with(stay=stay))
        assert words(proposal, "movable partitions") == reported
    forced = snapshot(brokers(3, states={1: DRAINING}), two)
    proposal = propose(forced, change(0, 3, 2), goals=goals_with(stay=stay))
    assert words(proposal, "movable partitions") == []


def test_excluded_topics_stay() -> None:
    proposal = propose(
        snapshot(brokers(2), [(1,)]),
        change(0, 2),
        goals=goals_with(excluded_topics=Names(regex=("ord.*",))),
    )
    assert words(proposal, "movable partitions") == ["orders-0 stays: its topic is excluded"]


def test_the_order_of_replicas_may_change_where_nothing_may_move() -> None:
    goals = goals_with(stay=(Stay(topic=TOPIC, partitions=(0,)),))
    state = snapshot(brokers(3), [(1, 2)], leaders=[2])
    assert words(propose(state, change(0, 2, 1), goals=goals), "movable partitions") == []
    led = words(propose(state, change(0, 1, 2), goals=goals), "movable partitions")
    assert led == ["orders-0 stays: the goals let it stay"]


@pytest.mark.parametrize("state", [BrokerState.DEMOTED, BrokerState.MAINTENANCE])
def test_a_demoted_broker_leads_nothing_that_another_can_lead(state: BrokerState) -> None:
    seen = snapshot(brokers(3, states={1: state}), [(1, 2), (1,), (2, 1)])
    (still,) = words(propose(seen), "slow brokers")
    assert still == f"orders-0 would still be led by broker 1, which is {state.words}"
    assert words(propose(seen, change(0, 2, 1)), "slow brokers") == []
    (taken,) = words(propose(seen, change(2, 1, 2)), "eligible brokers")
    assert taken == f"orders-2 would go to broker 1, which is {state.words}"


@pytest.mark.parametrize("storage", list(StorageKind))
def test_internal_topics_move_on_shared_storage_only(storage: StorageKind) -> None:
    state = snapshot(brokers(2), [(1,)], storage=storage, internal=True)
    messages = words(propose(state, change(0, 2)), "movable partitions")
    assert bool(messages) == (storage is not StorageKind.SHARED)


def test_partitions_without_leader_stay() -> None:
    state = snapshot(brokers(2), [(1,)], leaders=[-1])
    messages = words(propose(state, change(0, 2)), "movable partitions")
    assert messages == ["orders-0 stays: it has no leader"]


def test_partitions_that_died_with_their_only_broker_may_stay_there() -> None:
    dead = {1: BrokerState.DEAD}
    for leader, reported in ((-1, []), (1, ["broker 1 is dead and would keep 1 replica"])):
        state = snapshot(brokers(2, states=dead), [(1,)], leaders=[leader])
        assert words(propose(state), "drained brokers") == reported


def test_partitions_with_unknown_load_stay() -> None:
    state = snapshot(brokers(2), [(1,)], [(1.0, float("nan"))])
    messages = words(propose(state, change(0, 2)), "movable partitions")
    assert messages == ["orders-0 stays: its net_out is not known yet"]


def test_replicas_that_must_leave_may_move_despite_an_excluded_topic() -> None:
    proposal = propose(
        snapshot(
            brokers(2, states={1: DRAINING}),
            [(1,)],
            [(float("nan"), 1.0)],
            internal=True,
            storage=StorageKind.TIERED,
        ),
        change(0, 2),
        goals=goals_with(excluded_topics=Names(exact=("orders",))),
    )
    assert words(proposal, "movable partitions") == []


@pytest.mark.parametrize(
    ("storage", "age_s", "in_cooldown"),
    [
        (StorageKind.SHARED, 599, True),
        (StorageKind.SHARED, 600, False),
        (StorageKind.TIERED, 599, True),
        (StorageKind.REPLICATED, 3599, True),
        (StorageKind.REPLICATED, 3600, False),
    ],
)
def test_a_moved_partition_is_in_cooldown(
    storage: StorageKind, age_s: float, in_cooldown: bool
) -> None:
    """Only the one that moved; ages from the snapshot's own time."""
    moves = [recent(0, 3, age_s)]
    state = snapshot(brokers(3), [(1,), (1,)], storage=storage, recent=moves)
    messages = words(propose(state, change(0, 2), change(1, 2)), "cooldown")
    assert len(messages) == in_cooldown
    assert all(f"orders-0 moved {age_s:.0f} s ago" in line for line in messages)


def test_replicas_that_must_leave_ignore_the_cooldown() -> None:
    state = snapshot(brokers(3, states={1: DRAINING}), [(1,)], recent=[recent(0, 3, 1)])
    assert words(propose(state, change(0, 2)), "cooldown") == []


@pytest.mark.parametrize(("age_s", "blocked"), [(3599, True), (3600, False)])
def test_no_replica_returns_within_the_window(age_s: float, blocked: bool) -> None:
    state = snapshot(brokers(3), [(1,)], recent=[recent(0, 3, age_s)])
    assert bool(words(propose(state, change(0, 3)), "no return")) == blocked
    assert words(propose(state, change(0, 2)), "no return") == []


def test_the_return_window_holds_for_forced_moves_too() -> None:
    state = snapshot(brokers(3, states={1: DRAINING}), [(1,)], recent=[recent(0, 3, 60)])
    messages = words(propose(state, change(0, 3)), "no return")
    assert messages == ["orders-0 left broker 3 60 s ago and may not return for 3600 s"]


def passed_on(partition: int, leader: int, age_s: float) -> RecentMove:
    """A leader change alone."""
    update = {"left": (), "leader_left": BrokerId(leader)}
    return recent(partition, 0, age_s).model_copy(update=update)


@pytest.mark.parametrize(("age_s", "blocked"), [(3599, True), (3600, False)])
def test_no_leader_returns_within_the_window(age_s: float, blocked: bool) -> None:
    """It may still get there as a follower, and others may lead."""
    state = snapshot(brokers(4), [(1, 2, 3)], recent=[passed_on(0, 2, age_s)])
    back = words(propose(state, change(0, 2, 1, 3)), "no return")
    assert bool(back) == blocked
    if blocked:
        assert back == [
            "orders-0 was led by broker 2 until 3599 s ago and may not be again for 3600 s"
        ]
    assert words(propose(state, change(0, 3, 1, 2)), "no return") == []
    assert words(propose(state, change(0, 4, 1, 2)), "no return") == []


def test_a_leader_that_came_back_by_itself_may_stay() -> None:
    state = snapshot(brokers(4), [(1, 2)], recent=[passed_on(0, 1, 60)])
    assert words(propose(state, change(0, 1, 3)), "no return") == []


def test_a_leader_that_must_leave_may_pass_back() -> None:
    state = snapshot(brokers(3, states={1: DRAINING}), [(1, 2)], recent=[passed_on(0, 2, 60)])
    assert words(propose(state, change(0, 2, 3)), "no return") == []


def test_replicas_are_in_as_many_racks_as_possible() -> None:
    state = snapshot(brokers(4, "aabb"), [(1, 3)])
    messages = words(propose(state, change(0, 1, 2)), "rack spread")
    assert messages == ["orders-0 would lie in 1 rack where 2 are possible"]
    assert words(propose(state, change(0, 2, 4)), "rack spread") == []


def test_more_replicas_than_racks_fill_each_rack() -> None:
    state = snapshot(brokers(5, "aaabb"), [(1, 2, 4)])
    assert words(propose(state, change(0, 1, 2, 3)), "rack spread") != []
    assert words(propose(state, change(0, 1, 3, 5)), "rack spread") == []


@pytest.mark.parametrize("racks", ["aab-", "----"])
def test_racks_bind_only_if_all_are_known(racks: str) -> None:
    state = snapshot(brokers(4, racks), [(1, 3)])
    assert words(propose(state, change(0, 1, 2)), "rack spread") == []


def test_a_rack_without_live_brokers_is_not_required() -> None:
    state = snapshot(brokers(4, "aabb", {3: DRAINING, 4: DEAD}), [(1, 3)])
    assert words(propose(state, change(0, 1, 2)), "rack spread") == []


def test_a_leader_change_need_not_repair_the_racks() -> None:
    state = snapshot(brokers(3, "aab"), [(1, 2)])
    assert words(propose(state, change(0, 2, 1)), "rack spread") == []


def test_a_limit_is_a_share_of_the_capacity() -> None:
    """Limit 0.85 x 10 MB/s: eight rows of 1 MB/s fit, nine do not."""
    million = [(1e6, 1e6)] * 9
    state = snapshot(brokers(2, capacity={2: 10e6}), [(1,)] * 9, million)
    fits = [change(i, 2) for i in range(8)]
    assert words(propose(state, *fits), "capacity") == []
    messages = words(propose(state, *fits, change(8, 2)), "capacity")
    assert messages == [
        "broker 2 would carry 9.00 MB/s of bytes in, 500 kB/s over its limit of 8.50 MB/s",
        "broker 2 would carry 9.00 MB/s of bytes out, 500 kB/s over its limit of 8.50 MB/s",
    ]


def test_a_broker_over_its_limit_may_not_get_worse() -> None:
    state = snapshot(brokers(2, capacity={2: 2.0}), [(1,), (2,), (2,), (2,)])
    assert words(propose(state, change(1, 1)), "capacity") == []
    assert words(propose(state, change(1, 1), change(0, 2)), "capacity") == []
    assert words(propose(state, change(0, 2)), "capacity") != []


def test_a_broker_holds_at_most_the_limit_of_replicas() -> None:
    state = snapshot(brokers(2), [(1,), (1,), (2,)])
    goals = goals_with(replicas_per_broker=1)
    messages = words(propose(state, change(0, 2), goals=goals), "replicas per broker")
    assert messages == ["broker 2 would hold 2 replicas; the limit is 1"]
    assert words(propose(state, goals=goals), "replicas per broker") == []


def test_a_proposal_counts_replicas_after_its_moves() -> None:
    proposal = propose(snapshot(brokers(3), [(1, 2), (1, 3)]), change(0, 3, 2))
    assert proposal.replicas_after == {BrokerId(1): 1, BrokerId(2): 1, BrokerId(3): 2}

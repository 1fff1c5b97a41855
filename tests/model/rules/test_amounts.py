"""Rules on amounts: budgets, capacities by resource and hour."""

import pytest

from model.goals.goals import Budgets, Goals
from model.snapshot.snapshot import BrokerState, Resource, StorageKind
from tests.support.model.clusters import NO_FLOOR, brokers, change, propose, snapshot, wide, words


def allowing(**limits: int) -> Goals:
    return NO_FLOOR.model_copy(update={"budgets": Budgets(**limits)})


STATE = snapshot(
    brokers(4), [(1, 2), (1, 3), (1, 4)], storage=StorageKind.TIERED, local_bytes=[10, 20, 0]
)
CHANGES = (change(0, 3, 2), change(1, 2, 4), change(2, 2, 4))


@pytest.mark.parametrize(
    ("budget", "spent", "message"),
    [
        ("replica_moves", 4, "4 replicas would move; the budget is 3"),
        ("bytes", 50, "50 B would be copied; the budget is 49 B"),
        ("leader_changes", 3, "3 leaders would change; the budget is 2"),
        ("replica_moves_per_topic", 4, "4 replicas of topic orders would move; the budget is 3"),
        ("replica_moves_in_per_broker", 2, "2 replicas would move to broker 2; the budget is 1"),
        ("replica_moves_out_per_broker", 3, "3 replicas would leave broker 1; the budget is 2"),
        ("partitions", 3, "3 partitions would change; the budget is 2"),
        ("partitions_per_topic", 3, "3 partitions of topic orders would change; the budget is 2"),
    ],
)
def test_a_plan_spends_no_more_than_its_budget(budget: str, spent: int, message: str) -> None:
    """Exactly enough is allowed; one less is not, and is reported with its names."""
    fits = propose(STATE, *CHANGES, goals=allowing(**{budget: spent}))
    assert words(fits, "budgets") == []
    tight = propose(STATE, *CHANGES, goals=allowing(**{budget: spent - 1}))
    assert words(tight, "budgets") == [message]


def test_a_copy_of_unknown_size_fits_no_budget_of_bytes() -> None:
    state = snapshot(brokers(2), [(1,)], storage=StorageKind.REPLICATED, local_bytes=[-1])
    result = propose(state, change(0, 2), goals=allowing(bytes=10**15))
    (messages,) = words(result, "budgets")
    assert messages.startswith("orders-0 would be copied, and its size is unknown")
    stays = propose(state, change(0, 1), goals=allowing(bytes=0))
    assert words(stays, "budgets") == []


def test_shared_storage_copies_nothing() -> None:
    state = snapshot(brokers(2), [(1,)], storage=StorageKind.SHARED)
    assert words(propose(state, change(0, 2), goals=allowing(bytes=0)), "budgets") == []


def test_forced_moves_count_too() -> None:
    state = snapshot(brokers(2, states={1: BrokerState.DRAINING}), [(1,)])
    messages = words(propose(state, change(0, 2), goals=allowing(replica_moves=0)), "budgets")
    assert messages == ["1 replicas would move; the budget is 0"]


def test_a_resource_has_its_own_limit() -> None:
    """Limit 0.5 x 10 for incoming, 0.85 x 10 for outgoing traffic."""
    state = snapshot(brokers(2, capacity={2: 10.0}), [(1,)] * 6)
    goals = NO_FLOOR.model_copy(update={"capacity_limits": {Resource.NET_IN: 0.5}})
    fits = [change(i, 2) for i in range(5)]
    assert words(propose(state, *fits, goals=goals), "capacity") == []
    messages = words(propose(state, *fits, change(5, 2), goals=goals), "capacity")
    assert messages == ["broker 2 would carry 6 B/s of bytes in, 1 B/s over its limit of 5 B/s"]


def test_a_limit_holds_at_every_hour() -> None:
    state = wide(
        brokers(2, capacity={2: 10.0}),
        [(1,)],
        {Resource.NET_IN: [1]},
        slots={"night": {Resource.NET_IN: [9]}},
    )
    messages = words(propose(state, change(0, 2)), "capacity")
    assert messages == [
        "broker 2 would carry 9 B/s of bytes in @night, 0 B/s over its limit of 8 B/s"
    ]


def test_a_capacity_of_an_unmeasured_resource_does_not_bind() -> None:
    state = wide(brokers(2, capacity={2: 10.0}), [(1,)], {Resource.DISK: [99]})
    assert words(propose(state, change(0, 2)), "capacity") == []

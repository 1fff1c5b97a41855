"""Exceeded limits and shared racks, before and after moves."""

import pytest

from model.evaluate import evaluate
from model.goals.goals import Goals, RackRule
from model.names import Names
from model.snapshot.snapshot import BrokerState, Snapshot
from tests.support.model.clusters import NO_FLOOR, TOPIC, brokers, move, snapshot

FOUR = brokers(4, "aabb")


def shared(state: Snapshot, goals: Goals = NO_FLOOR) -> list[tuple[int, str]]:
    evaluation = evaluate(state, goals, ()).rack_violations
    return [(v.partition, v.reason) for v in evaluation]


def test_replicas_in_one_rack_of_two_are_a_violation() -> None:
    assert shared(snapshot(FOUR, [(1, 2), (1, 3), (3, 4)])) == [(0, ""), (2, "")]


@pytest.mark.parametrize(
    ("racks", "place", "rule", "violated"),
    [
        ("aabb", (1, 2, 3), RackRule.SPREAD, False),
        ("aaab", (1, 2, 3), RackRule.SPREAD, True),
        ("aaaa", (1, 2, 3), RackRule.SPREAD, False),
        ("aab-", (1, 2), RackRule.SPREAD, False),
        ("aabb", (1, 2), RackRule.OFF, False),
        ("aaab", (1, 2, 3), RackRule.EVEN, True),
        ("aaab", (1, 2, 4), RackRule.EVEN, False),
    ],
)
def test_as_many_racks_are_required_as_are_usable(
    racks: str, place: tuple[int, ...], rule: RackRule, violated: bool
) -> None:
    goals = NO_FLOOR.model_copy(update={"rack_rule": rule})
    assert bool(shared(snapshot(brokers(4, racks), [place]), goals)) is violated


def test_a_rack_of_draining_brokers_is_not_usable() -> None:
    draining = brokers(4, "aabb", dict.fromkeys((3, 4), BrokerState.DRAINING))
    assert shared(snapshot(draining, [(1, 2)])) == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"excluded_topics": Names(exact=(TOPIC,))}, "its topic is excluded"),
        ({"repair_racks": False}, "the goals do not repair racks"),
    ],
)
def test_immovable_partitions_have_a_reason(changed: dict[str, object], reason: str) -> None:
    goals = NO_FLOOR.model_copy(update=changed)
    assert shared(snapshot(FOUR, [(1, 2)]), goals) == [(0, reason)]


def test_a_broker_over_its_limit_is_named_with_its_figures() -> None:
    """Limit and capacity in the units of the load, before and after the move."""
    state = snapshot(brokers(2, capacity={1: 10.0, 2: 20.0}), [(1,), (1,)], [(6.0, 1.0)] * 2)
    (over,) = evaluate(state, NO_FLOOR, [move(0, (1,), (2,))]).over_limit
    assert (over.broker, over.dimension) == (1, "net_in")
    assert (over.before, over.after, over.limit) == (12.0, 6.0, 8.5)
    assert over.capacity == 10.0
    assert not over.remains


def test_followers_count_towards_the_limits() -> None:
    """Broker 2 leads nothing; what it receives as a follower is over its limit."""
    state = snapshot(brokers(2, capacity={1: 90.0, 2: 5.0}), [(1, 2)], [(9.0, 0.0)])
    (over,) = evaluate(state, NO_FLOOR, ()).over_limit
    assert (over.broker, over.dimension, over.before) == (2, "net_in", 9.0)


def test_the_limit_on_replicas_has_no_capacity() -> None:
    goals = NO_FLOOR.model_copy(update={"replicas_per_broker": 1})
    (over,) = evaluate(snapshot(brokers(2), [(1,), (1,)]), goals, ()).over_limit
    assert (over.dimension, over.before, over.limit) == ("replicas", 2.0, 1.0)
    assert over.capacity is None


def test_a_draining_broker_is_emptied_anyway() -> None:
    members = brokers(2, states={1: BrokerState.DRAINING}, capacity={1: 1.0})
    assert evaluate(snapshot(members, [(1,)], [(9.0, 9.0)]), NO_FLOOR, ()).over_limit == ()

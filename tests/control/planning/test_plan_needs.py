"""Why a cluster needs a plan."""

import pytest

from control.planning.plan_needs import Reason, plan_needs
from control.settings.trigger_table import Trigger
from model.evaluate import evaluate
from model.goals.goals import Goals, Pin
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId
from model.names import Names
from model.snapshot.snapshot import Resource, Snapshot
from solver.solve import solve
from tests.support.control.loop_parts import (
    EASY,
    MB,
    WORK,
    cluster,
    constrained,
    one_of_twelve_dead,
)
from tests.support.model import clusters
from tests.support.model.failed_disks import with_failed_disks

ONE_RACK = clusters.snapshot(clusters.brokers(4, "aabb"), [(1, 2), (3, 4)])
FULL = clusters.snapshot(clusters.brokers(2, capacity={1: 1.0, 2: 9.0}), [(1,), (2,)])
TWO_RACKS = clusters.snapshot(clusters.brokers(4, "aabb"), [(1, 3), (2, 4)])
LAST = frozenset({BrokerId(11)})


def reasons(snapshot: Snapshot, given_up: frozenset[BrokerId], goals: Goals = EASY) -> list[Reason]:
    goals = with_topic_placements(goals, snapshot)
    evaluation = evaluate(snapshot, goals, ())
    result = plan_needs(snapshot, goals, evaluation, given_up=given_up)
    return [need.reason for need in result]


@pytest.mark.parametrize(
    ("snapshot", "given_up", "expected"),
    [
        (cluster([1, 2, 3], [MB] * 3), LAST, []),
        (cluster([2] * 8, [MB] * 8), LAST, [Reason.EMPTY_BROKER, Reason.OUT_OF_TOLERANCE]),
        (cluster([1, 2, 2, 2, 3], [MB] * 5), LAST, [Reason.OUT_OF_TOLERANCE]),
        (cluster([1, 2, 2, 1, 3], [0.0] * 5), LAST, []),
        (one_of_twelve_dead(), LAST, [Reason.DEAD_BROKER]),
        (one_of_twelve_dead(), frozenset(), []),
        (ONE_RACK, LAST, [Reason.RACK_VIOLATION]),
        (FULL, LAST, [Reason.OVER_LIMIT]),
        (constrained(TWO_RACKS, a=1, b=1), LAST, []),
        (constrained(TWO_RACKS, a=2), LAST, [Reason.MISPLACED]),
    ],
)
def test_each_reason_is_named(
    snapshot: Snapshot, given_up: frozenset[BrokerId], expected: list[Reason]
) -> None:
    assert reasons(snapshot, given_up) == expected


def test_failed_directories_are_named_where_their_replicas_can_be_copied() -> None:
    seen = with_failed_disks(3, [(1, 2), (3, 2), (2,)], {(0, 2), (2, 2)})
    need = plan_needs(seen, EASY, evaluate(seen, EASY, ()), given_up=LAST)[0]
    assert (need.reason, need.trigger) == (Reason.DEAD_LOG_DIR, Trigger.DEAD_LOG_DIR)
    assert need.message.startswith("log directory /b of broker 2 has failed with 2 replicas")
    assert need.repairs
    gone = with_failed_disks(3, [(2,)], {(0, 2)})
    assert Reason.DEAD_LOG_DIR not in reasons(gone, LAST)


def test_brokers_that_hold_almost_nothing_are_named() -> None:
    def message(*homes: int) -> str:
        uneven = cluster(homes, [MB] * len(homes))
        needs = plan_needs(uneven, EASY, evaluate(uneven, EASY, ()), given_up=LAST)
        return needs[0].message

    assert message(*[2] * 8) == "brokers 1, 3 hold almost nothing"
    assert message(*[1] * 30, *[2] * 30, 3) == "broker 3 holds almost nothing"
    assert message(*[1] * 30, *[2] * 30, 3, 3) == "the cluster is out of tolerance"


def test_limits_that_the_forecast_exceeds_are_handled_beforehand() -> None:
    """Broker 1 has room now, and will lead 12 of the 10 bytes/s that it may take in at night."""
    seen = clusters.wide(
        clusters.brokers(2, capacity={1: 10.0, 2: 10.0}),
        [(1,), (1,), (2,), (2,)],
        {Resource.NET_IN: [2.0, 2.0, 2.0, 2.0]},
        slots={"night": {Resource.NET_IN: [6.0, 6.0, 1.0, 1.0]}},
    )
    need = plan_needs(seen, EASY, evaluate(seen, EASY, ()), given_up=LAST)[0]
    assert (need.reason, need.trigger) == (Reason.OVER_LIMIT, Trigger.OVER_CAPACITY)
    assert need.message.startswith("in the forecast, broker 1 is over its limit of bytes in @night")
    plan = solve(seen, EASY, WORK).best
    assert plan is not None
    after = evaluate(seen, EASY, plan.moves)
    assert not any(over.remains for over in after.over_limit)


def test_an_idle_empty_broker_needs_no_plan() -> None:
    assert reasons(cluster([1, 2], [0.0] * 2), LAST) == []


def test_urgent_needs_come_first() -> None:
    one_rack = clusters.snapshot(clusters.brokers(4, "aabb", capacity={1: 1.0}), [(1, 2), (3, 4)])
    assert reasons(one_rack, LAST)[:2] == [Reason.OVER_LIMIT, Reason.RACK_VIOLATION]


def test_rack_violations_that_no_plan_may_repair_need_no_plan() -> None:
    goals = EASY.model_copy(update={"repair_racks": False})
    evaluation = evaluate(ONE_RACK, goals, ())
    assert plan_needs(ONE_RACK, goals, evaluation, given_up=LAST) == ()


def test_violated_pins_need_a_plan() -> None:
    pin = Pin(topics=Names(exact=("orders",)), partitions=(0,), brokers=(BrokerId(1),))
    level = cluster([1, 2, 3], [MB] * 3)
    goals = EASY.model_copy(update={"pins": (pin,)})
    assert reasons(level, LAST, goals) == []
    other = pin.model_copy(update={"partitions": (1,)})
    goals = EASY.model_copy(update={"pins": (other,)})
    assert reasons(level, LAST, goals) == [Reason.MISPLACED]


def test_missing_leaders_need_a_plan() -> None:
    wanted = Goals.model_validate({"min_leaders": [{"topics": {"prefix": [""]}}]}, strict=False)
    led = cluster([1, 2, 3], [MB] * 3)
    assert reasons(led, frozenset(), wanted) == []
    unled = cluster([1, 2, 2], [MB] * 3)
    evaluation = evaluate(unled, wanted, ())
    needs = plan_needs(unled, wanted, evaluation, given_up=frozenset())
    assert needs[0].reason is Reason.LEADERS_MISSING
    assert needs[0].message == (
        "minimum leaders are missing: broker 3 leads 0 of 1 partitions of orders"
    )
    assert needs[0].repairs

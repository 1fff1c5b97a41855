"""Stop rules evaluated against the state of a cluster when the run began."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from executor.client.responses import PartitionView
from executor.health.health_rules import ClusterHealth, health_rules
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.stop_rules import StopRule, StopRules
from tests.support.executor.plan_builders import ids

PAYMENTS = TopicName("payments")
RULES = StopRules()


def view(
    number: int,
    in_sync: Sequence[int],
    *,
    leader: int = 1,
    topic: str = "payments",
    topic_id: str = "first",
) -> PartitionView:
    return PartitionView(
        id=PartitionId(TopicName(topic), number),
        topic_id=topic_id,
        replicas=ids([1, 2, 3]),
        in_sync=frozenset(ids(in_sync)),
        offline=frozenset(),
        leader=BrokerId(leader),
    )


def health(*views: PartitionView, **more: object) -> ClusterHealth:
    known = {
        "at_s": 0.0,
        "alive": frozenset(ids([1, 2, 3])),
        "views": {v.id: v for v in views},
        "min_in_sync": {PAYMENTS: 2},
    }
    return ClusterHealth(**(known | more))  # type: ignore[arg-type]


WHOLE, LACKING, OFFLINE = view(0, [1, 2, 3]), view(1, [1, 2]), view(2, [], leader=-1)
WELL = health(WHOLE, LACKING, OFFLINE)
MOVING = view(9, [1, 2, 3])


def broken(now: ClusterHealth, begun: ClusterHealth = WELL) -> dict[StopRule, str]:
    guards = health_rules(begun, {MOVING.id}, RULES)
    return {rule: reason for rule, guard in guards.items() if (reason := guard(now))}


def test_problems_from_before_the_run_break_no_rule() -> None:
    assert broken(WELL) == {}


@pytest.mark.parametrize(
    ("now", "rule", "message"),
    [
        (
            health(WHOLE, alive=frozenset(ids([2, 3]))),
            StopRule.BROKER_LOST,
            "broker 1 died or was fenced",
        ),
        (
            health(replace(WHOLE, leader=NO_BROKER)),
            StopRule.OFFLINE,
            "payments-0, which the plan leaves alone, went offline",
        ),
        (
            health(view(0, [1, 2])),
            StopRule.UNDER_REPLICATED,
            "payments-0, which the plan leaves alone, lost replicas in sync",
        ),
        (
            health(view(1, [1]), min_in_sync={PAYMENTS: 1}),
            StopRule.ISR_SHRINK,
            "payments-1, which the plan leaves alone, lost still more replicas in sync",
        ),
        (
            health(WHOLE, free_bytes={BrokerId(2): -1, BrokerId(3): 5}),
            StopRule.DISK,
            "the disk of broker 2 is down to its reserve",
        ),
    ],
)
def test_each_deterioration_is_named(now: ClusterHealth, rule: StopRule, message: str) -> None:
    assert broken(now) == {rule: message}


def test_several_partitions_are_named_by_the_first_and_their_count() -> None:
    now = health(view(0, [1, 2]), view(3, [1, 2]))
    begun = health(WHOLE, view(3, [1, 2, 3]))
    assert broken(now, begun)[StopRule.UNDER_REPLICATED].startswith("payments-0 and 1 more")


def test_a_partition_below_min_isr_is_named() -> None:
    assert broken(health(view(1, [1])))[StopRule.UNDER_MIN_ISR] == (
        "payments-1 has fewer than 2 replicas in sync, its minimum"
    )


def test_only_min_isr_is_watched_for_the_plans_own_partitions() -> None:
    begun = health(MOVING)
    assert broken(health(view(9, [1, 2])), begun) == {}
    assert set(broken(health(view(9, [1])), begun)) == {StopRule.UNDER_MIN_ISR}


def test_created_deleted_or_recreated_topics_break_no_rule() -> None:
    made = view(0, [], leader=-1, topic="new")
    recreated = view(0, [], leader=-1, topic_id="second")
    assert broken(health(made, recreated)) == {}


@pytest.mark.parametrize(
    ("elections", "message"),
    [
        ([7, 7, 8, 8], None),
        ([7, 8, 9], "the controller changed 2 times within a minute"),
        ([7, 9], "the controller changed 2 times within a minute"),
        ([7, 8, 8, 8, 8, 8, 8, 8, 9], None),
        ([None, None], None),
    ],
)
def test_two_new_controllers_within_a_minute_break_a_rule(
    elections: list[int | None], message: str | None
) -> None:
    guard = health_rules(WELL, (), RULES)[StopRule.CONTROLLER_CHANGES]
    polls = [health(at_s=10.0 * i, elections=e) for i, e in enumerate(elections)]
    assert [guard(look) for look in polls][-1] == message


@pytest.mark.parametrize(
    ("begun_s", "answers_s", "is_slow"),
    [
        (0.01, [9.0, 9.0], False),
        (0.01, [0.01, 9.0, 0.01], False),
        (0.01, [0.01, 9.0, 9.0], True),
        (0.01, [0.9, 0.9, 0.9], False),
        (0.5, [2.4, 2.4, 2.4], False),
        (0.5, [2.5, 2.5, 2.5], True),
        (0.01, [9.0, 9.0, 9.0, 0.01, 0.01], False),
    ],
)
def test_slow_means_the_median_of_three_above_start_and_floor(
    begun_s: float, answers_s: list[float], is_slow: bool
) -> None:
    guard = health_rules(health(answer_s=begun_s), (), RULES)[StopRule.SLOW_REQUESTS]
    reasons = [guard(health(answer_s=answer_s)) for answer_s in answers_s]
    assert (reasons[-1] is not None) == is_slow


def test_slow_answers_are_reported_with_both_figures() -> None:
    guard = health_rules(health(answer_s=0.1), (), RULES)[StopRule.SLOW_REQUESTS]
    reasons = [guard(health(answer_s=2.0)) for _ in range(3)]
    assert reasons[-1] == "brokers take 2.00 s to answer, compared with 0.10 s when the run began"

"""Why a cluster needs a plan."""

import pytest

from control.needs import Reason, plan_needs
from model.evaluate import evaluate
from model.ids import BrokerId
from model.snapshot import Snapshot
from tests.control.parts import EASY, MB, cluster, one_of_twelve_dead
from tests.model import build as tests_model

ONE_RACK = tests_model.snapshot(tests_model.brokers(4, "aabb"), [(1, 2), (3, 4)])
FULL = tests_model.snapshot(
    tests_model.brokers(2, capacity={1: 1.0, 2: 9.0}), [(1,), (2,)]
)
LAST = frozenset({BrokerId(11)})


def reasons(snapshot: Snapshot, given_up: frozenset[BrokerId]) -> list[Reason]:
    evaluation = evaluate(snapshot, EASY, ())
    found = plan_needs(snapshot, EASY, evaluation, given_up=given_up)
    return [need.reason for need in found]


@pytest.mark.parametrize(
    ("snapshot", "given_up", "expected"),
    [
        (cluster([1, 2, 3], [MB] * 3), LAST, []),
        (cluster([2] * 8, [MB] * 8), LAST, [Reason.OUT_OF_TOLERANCE]),
        (one_of_twelve_dead(), LAST, [Reason.DEAD_BROKER]),
        (one_of_twelve_dead(), frozenset(), []),
        (ONE_RACK, LAST, [Reason.RACK_VIOLATION]),
        (FULL, LAST, [Reason.OVER_LIMIT]),
    ],
)
def test_each_reason_is_named(
    snapshot: Snapshot, given_up: frozenset[BrokerId], expected: list[Reason]
) -> None:
    assert reasons(snapshot, given_up) == expected


def test_rack_violations_that_no_plan_may_repair_need_none() -> None:
    goals = EASY.model_copy(update={"repair_racks": False})
    evaluation = evaluate(ONE_RACK, goals, ())
    assert plan_needs(ONE_RACK, goals, evaluation, given_up=LAST) == ()

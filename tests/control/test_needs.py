"""Why a cluster needs a plan."""

import pytest

from control.needs import Reason, plan_needs
from model.evaluate import evaluate
from model.ids import BrokerId
from model.snapshot import Snapshot
from tests.control.parts import EASY, MB, cluster, one_of_twelve_dead

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
    ],
)
def test_each_reason_is_named(
    snapshot: Snapshot, given_up: frozenset[BrokerId], expected: list[Reason]
) -> None:
    assert reasons(snapshot, given_up) == expected

"""Which changes of a cluster call for another answer of the planner."""

from collections.abc import Callable

import pytest

from control.inputs import Inputs
from control.needs import Need, Reason
from model.evaluate import evaluate
from model.ids import BrokerId
from model.snapshot import BrokerState, RecentMove, Snapshot
from tests.control.parts import EASY, MB, ORDERS, START_MS, cluster, constrained

HOMES = [2] * 4 + [1, 3]
UNEVEN = Need(reason=Reason.OUT_OF_TOLERANCE, message="out of tolerance")
DEAD = Need(reason=Reason.DEAD_BROKER, message="broker 3 is dead")
BEFORE = cluster(HOMES, [MB] * 6)


def inputs(snapshot: Snapshot, *needs: Need) -> Inputs:
    evaluation = evaluate(snapshot, EASY, ())
    return Inputs.of(snapshot, EASY, evaluation, needs or (UNEVEN,))


def with_header(**changes: object) -> Snapshot:
    header = BEFORE.header.model_copy(update=changes)
    return Snapshot(header, BEFORE.partitions)


def cordoned() -> Snapshot:
    state = {"state": BrokerState.CORDONED}
    brokers = tuple(
        b.model_copy(update=state) if b.id == 3 else b for b in BEFORE.header.brokers
    )
    return with_header(brokers=brokers)


def placed() -> Snapshot:
    return constrained(BEFORE, a=1)


def moved(age_s: int) -> Snapshot:
    at_ms = START_MS - 1000 * age_s
    move = RecentMove(topic=ORDERS, partition=0, left=(BrokerId(1),), at_ms=at_ms)
    return with_header(recent_moves=(move,))


@pytest.mark.parametrize(
    "now",
    [
        lambda: cluster([1, *HOMES[1:]], [MB] * 6),
        lambda: cluster(HOMES, [*[MB] * 4, 3 * MB, MB]),
        lambda: cluster(HOMES, [1.5 * MB] * 6),
        cordoned,
        placed,
        lambda: moved(60),
    ],
    ids=["placement", "one load", "all loads", "cordoned", "placed", "cooldown"],
)
def test_what_matters_to_the_planner_differs(now: Callable[[], Snapshot]) -> None:
    assert inputs(now()).differs(inputs(BEFORE), EASY)


def test_noise_and_time_do_not() -> None:
    loads = [MB * (1 + 0.01 * (-1) ** i) for i in range(6)]
    later = cluster(HOMES, loads, taken_at_ms=START_MS + 86_400_000)
    assert not inputs(later).differs(inputs(BEFORE), EASY)


def test_another_reason_and_the_end_of_a_cooldown_do() -> None:
    assert inputs(BEFORE, DEAD, UNEVEN).differs(inputs(BEFORE), EASY)
    assert inputs(moved(601)).differs(inputs(moved(599)), EASY)
    assert not inputs(moved(3601)).differs(inputs(BEFORE), EASY)

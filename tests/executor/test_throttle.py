"""What a throttle sets, and what it leaves as it was."""

from typing import cast

import pytest

from executor.admin import Admin
from executor.throttle import FOLLOWERS, LEADERS, RATES, Throttle, Throttled
from model.errors import ClusterUnreachable, ExecutionStopped
from model.ids import BrokerId, TopicName
from model.snapshot import StorageKind
from tests.executor.fake import FakeConfigs, FakeTime
from tests.executor.plans import ids, move

ORDERS = TopicName("orders")
MOVES = [move(0, (1, 2), (3, 2)), move(1, (2, 1), (2, 3))]
ONE, TWO, THREE = ids([1, 2, 3])


@pytest.fixture
def configs() -> FakeConfigs:
    return FakeConfigs()


@pytest.fixture
def throttle(configs: FakeConfigs) -> Throttle:
    return Throttle(cast("Admin", configs), FakeTime().timing)


def test_leaders_are_limited_on_old_replicas_and_followers_on_new_ones(
    configs: FakeConfigs, throttle: Throttle
) -> None:
    wanted = throttle.plan(MOVES, 1000)
    assert (configs.brokers, configs.topics) == ({}, {})
    throttle.set(wanted)
    assert configs.brokers == {b: dict.fromkeys(RATES, "1000") for b in (1, 2, 3)}
    assert configs.topics == {
        ORDERS: {LEADERS: "0:1,0:2,1:2,1:1", FOLLOWERS: "0:3,1:3"}
    }
    throttle.release(MOVES[:1], wanted)
    assert configs.topics == {ORDERS: {LEADERS: "1:2,1:1", FOLLOWERS: "1:3"}}
    assert throttle.lift(wanted) == throttle.lift(wanted) == []
    assert (configs.brokers, configs.topics) == ({}, {})


def test_what_others_have_set_stays(configs: FakeConfigs, throttle: Throttle) -> None:
    configs.brokers[TWO] = {RATES[0]: "77"}
    configs.topics[ORDERS] = {LEADERS: "0:1,9:9", FOLLOWERS: "*"}
    wanted = throttle.plan(MOVES, 1000)
    throttle.set(wanted)
    assert configs.topics[ORDERS] == {LEADERS: "0:1,9:9,0:2,1:2,1:1", FOLLOWERS: "*"}
    configs.brokers[THREE][RATES[1]] = "55"
    throttle.release(MOVES, wanted)
    throttle.lift(Throttled.read(wanted.document()))
    assert configs.brokers == {TWO: {RATES[0]: "77"}, THREE: {RATES[1]: "55"}}
    assert configs.topics == {ORDERS: {LEADERS: "0:1,9:9", FOLLOWERS: "*"}}


def test_what_copies_nothing_is_not_throttled(throttle: Throttle) -> None:
    shared = move(0, (1,), (2,), storage=StorageKind.SHARED)
    reordered = move(1, (1, 2), (2, 1))
    wanted = throttle.plan([shared, reordered], 1000)
    assert (wanted.rates, wanted.lists) == ({}, {})


def test_a_broker_that_does_not_answer_is_named(
    configs: FakeConfigs, throttle: Throttle, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = throttle.plan(MOVES, 1000)
    throttle.set(wanted)
    change = configs.alter_broker_configs

    def but_two(broker: BrokerId, values: dict[str, str | None]) -> None:
        if broker == TWO:
            raise ClusterUnreachable("no answer")
        change(broker, values)

    monkeypatch.setattr(configs, "alter_broker_configs", but_two)
    assert throttle.lift(wanted) == ["broker 2 did not answer and keeps its throttle"]
    assert set(configs.brokers) == {TWO}


def test_a_rate_that_is_not_taken_stops_the_run(
    configs: FakeConfigs, throttle: Throttle, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = throttle.plan(MOVES, 1000)
    monkeypatch.setattr(configs, "alter_broker_configs", lambda *_: None)
    with pytest.raises(ExecutionStopped, match="broker 1 does not take the throttle"):
        throttle.set(wanted)

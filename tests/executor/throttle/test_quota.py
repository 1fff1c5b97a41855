"""The settings that a throttle changes and those that it keeps."""

from typing import cast

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.throttle.quota import (
    FOLLOWER_RATE,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    RATES,
    ClusterThrottle,
    ThrottleSettings,
)
from model.errors import ClusterUnreachable, ExecutionStopped
from model.ids import BrokerId, TopicName
from tests.support.executor.fake_platform import FakeConfigs, FakeTime
from tests.support.executor.plan_builders import ids, move

ORDERS = TopicName("orders")
MOVES = [move(0, (1, 2), (3, 2)), move(1, (2, 1), (2, 3))]
ONE, TWO, THREE = ids([1, 2, 3])
SAME = {broker: dict.fromkeys(RATES, 1000) for broker in (ONE, TWO, THREE)}


@pytest.fixture
def configs() -> FakeConfigs:
    return FakeConfigs()


@pytest.fixture
def throttle(configs: FakeConfigs) -> ClusterThrottle:
    return ClusterThrottle(cast("ClusterAdmin", configs), FakeTime().timing)


def test_leaders_are_limited_on_old_replicas_and_followers_on_new_ones(
    configs: FakeConfigs, throttle: ClusterThrottle
) -> None:
    throttle_settings = throttle.plan(MOVES, SAME)
    assert (configs.brokers, configs.topics) == ({}, {})
    assert throttle.set_rates(throttle_settings, SAME) == []
    assert configs.brokers == {b: dict.fromkeys(RATES, "1000") for b in (1, 2, 3)}
    throttle.limit(MOVES[1:], throttle_settings)
    assert configs.topics == {ORDERS: {LEADERS: "1:2,1:1", FOLLOWERS: "1:3"}}
    throttle.limit(MOVES[:1], throttle_settings)
    throttle.release(MOVES[1], throttle_settings)
    assert configs.topics == {ORDERS: {LEADERS: "0:1,0:2", FOLLOWERS: "0:3"}}
    assert throttle.lift(throttle_settings) == throttle.lift(throttle_settings) == ([], [])
    assert (configs.brokers, configs.topics) == ({}, {})


def test_settings_of_others_stay(configs: FakeConfigs, throttle: ClusterThrottle) -> None:
    configs.brokers[TWO] = {LEADER_RATE: "77"}
    configs.topics[ORDERS] = {LEADERS: "0:1,9:9", FOLLOWERS: "*"}
    throttle_settings = throttle.plan(MOVES, SAME)
    throttle.set_rates(throttle_settings, SAME)
    throttle.limit(MOVES, throttle_settings)
    assert configs.topics[ORDERS] == {LEADERS: "0:1,9:9,0:2,1:2,1:1", FOLLOWERS: "*"}
    configs.brokers[THREE][FOLLOWER_RATE] = "55"
    for one in MOVES:
        throttle.release(one, throttle_settings)
    throttle.lift(ThrottleSettings.read(throttle_settings.document()))
    assert configs.brokers == {TWO: {LEADER_RATE: "77"}, THREE: {FOLLOWER_RATE: "55"}}
    assert configs.topics == {ORDERS: {LEADERS: "0:1,9:9", FOLLOWERS: "*"}}


def test_a_rate_set_on_one_broker_is_not_ours_on_another(
    configs: FakeConfigs, throttle: ClusterThrottle
) -> None:
    rates = {ONE: {LEADER_RATE: 10, FOLLOWER_RATE: 20}, TWO: {LEADER_RATE: 30}}
    throttle_settings = throttle.plan(MOVES, rates)
    throttle.set_rates(throttle_settings, rates)
    configs.brokers[TWO][LEADER_RATE] = "10"
    throttle.lift(ThrottleSettings.read(throttle_settings.document()))
    assert configs.brokers == {TWO: {LEADER_RATE: "10"}}


def test_a_rate_is_ours_until_a_newer_one_of_ours_shows(
    configs: FakeConfigs, throttle: ClusterThrottle
) -> None:
    first = {ONE: {LEADER_RATE: 10}}
    throttle_settings = throttle.plan(MOVES, first)
    throttle.set_rates(throttle_settings, first)
    second = {ONE: {LEADER_RATE: 20}}
    throttle_settings = throttle_settings.with_rates(second)
    assert [throttle_settings.is_ours(ONE, LEADER_RATE, v) for v in ("10", "20")] == [True, True]
    throttle.set_rates(throttle_settings, second)
    assert [throttle_settings.is_ours(ONE, LEADER_RATE, v) for v in ("10", "20")] == [False, True]
    assert throttle.changeable(throttle_settings, {ONE: {LEADER_RATE: 30}})
    configs.brokers[ONE][LEADER_RATE] = "77"
    assert throttle.changeable(throttle_settings, {ONE: {LEADER_RATE: 30}}) == {}


def test_a_throttle_with_one_rate_for_all_brokers_is_removed(
    configs: FakeConfigs, throttle: ClusterThrottle
) -> None:
    """The record of a throttle as it was written then."""
    written = {
        "bytes_per_s": 2000,
        "earlier": [1000],
        "rates": {"1": dict.fromkeys(RATES), "2": {LEADER_RATE: "77", FOLLOWER_RATE: None}},
        "lists": {"orders": {LEADERS: ["0:1"], FOLLOWERS: ["0:3"]}},
    }
    configs.brokers = {
        ONE: {LEADER_RATE: "1000", FOLLOWER_RATE: "2000"},
        TWO: {LEADER_RATE: "2000", FOLLOWER_RATE: "55"},
    }
    configs.topics[ORDERS] = {LEADERS: "0:1,9:9", FOLLOWERS: "0:3"}
    left, theirs = throttle.lift(ThrottleSettings.read(written))
    message = f"someone else has changed {FOLLOWER_RATE} of broker 2 to 55, which stays"
    assert (left, theirs) == ([], [message])
    assert configs.brokers == {TWO: {LEADER_RATE: "77", FOLLOWER_RATE: "55"}}
    assert configs.topics == {ORDERS: {LEADERS: "9:9"}}


def test_settings_from_before_two_runs_are_restored(
    configs: FakeConfigs, throttle: ClusterThrottle
) -> None:
    """Unless someone has changed it between the two runs."""
    configs.brokers[ONE] = {LEADER_RATE: "77"}
    first = throttle.plan(MOVES, SAME)
    throttle.set_rates(first, SAME)
    configs.brokers[TWO][LEADER_RATE] = "55"
    twice = {broker: dict.fromkeys(RATES, 2000) for broker in SAME}
    second = throttle.plan(MOVES[1:], twice, first)
    throttle.set_rates(second, twice)
    throttle.lift(second)
    assert configs.brokers == {ONE: {LEADER_RATE: "77"}, TWO: {LEADER_RATE: "55"}}


def fail(
    configs: FakeConfigs, monkeypatch: pytest.MonkeyPatch, failing: BrokerId, error: Exception
) -> None:
    """One broker takes no settings."""
    change = configs.alter_broker_configs

    def but_one(broker: BrokerId, values: dict[str, str | None]) -> None:
        if broker == failing:
            raise error
        change(broker, values)

    monkeypatch.setattr(configs, "alter_broker_configs", but_one)


def test_a_broker_that_does_not_answer_is_named(
    configs: FakeConfigs, throttle: ClusterThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle_settings = throttle.plan(MOVES, SAME)
    throttle.set_rates(throttle_settings, SAME)
    fail(configs, monkeypatch, TWO, ClusterUnreachable("no answer"))
    left = ["broker 2 did not answer and keeps its throttle"]
    assert throttle.lift(throttle_settings) == (left, [])
    assert set(configs.brokers) == {TWO}


def test_a_silent_broker_does_not_keep_others_from_being_set(
    configs: FakeConfigs, throttle: ClusterThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle_settings = throttle.plan(MOVES, SAME)
    fail(configs, monkeypatch, TWO, ClusterUnreachable("no answer"))
    (message,) = throttle.set_rates(throttle_settings, SAME)
    assert message == "broker 2 did not accept the throttle: no answer"
    assert set(configs.brokers) == {ONE, THREE}


def test_a_rate_that_is_not_accepted_is_named(
    configs: FakeConfigs, throttle: ClusterThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle_settings = throttle.plan(MOVES, SAME)
    monkeypatch.setattr(configs, "alter_broker_configs", lambda *_: None)
    messages = throttle.set_rates(throttle_settings, SAME)
    assert messages[0] == "broker 1 does not accept the throttle of 1.00 kB/s"
    assert len(messages) == 3


def test_a_rate_that_a_broker_does_not_show_yet_is_removed(
    configs: FakeConfigs, throttle: ClusterThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker lags behind the controller, and shows the values from before the run."""
    configs.brokers[TWO] = {LEADER_RATE: "77"}
    shown = {b: dict(of) for b, of in configs.brokers.items()}
    throttle_settings = throttle.plan(MOVES, SAME)
    throttle.set_rates(throttle_settings, SAME)
    monkeypatch.setattr(configs, "own_broker_configs", lambda broker, _: shown.get(broker, {}))
    assert throttle.lift(throttle_settings) == ([], [])
    assert configs.brokers == {TWO: {LEADER_RATE: "77"}}


def test_a_broker_that_refuses_does_not_keep_others_from_being_restored(
    configs: FakeConfigs, throttle: ClusterThrottle, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle_settings = throttle.plan(MOVES, SAME)
    throttle.set_rates(throttle_settings, SAME)
    fail(configs, monkeypatch, ONE, ExecutionStopped("a policy refuses it"))
    message = "broker 1 keeps its throttle: a policy refuses it"
    assert throttle.lift(throttle_settings) == ([message], [])
    assert set(configs.brokers) == {ONE}

"""Brokers that hang, fail and return during samples."""

import logging
from concurrent.futures import Future
from functools import partial

import pytest
from kafka.errors import KafkaConnectionError, UnknownBrokerIdError

from collector.brokers.fan_out import AT_ONCE, BrokerFanOut
from model.errors import AccessRefused

SOON_S = 0.05


class Cluster:
    """Brokers that answer with their own id at once, unless they hang."""

    def __init__(self, *hanging: int) -> None:
        self.hanging = hanging
        self.failing: dict[int, BaseException] = {}
        self.asked: list[int] = []
        self.waiting: dict[int, Future[int]] = {}
        self.now_s = 100.0
        self.asking: BrokerFanOut[int] = BrokerFanOut(lambda: self.now_s, answer_s=SOON_S)

    def ask(self, *brokers: int) -> list[int]:
        def question(broker: int) -> Future[int]:
            self.asked.append(broker)
            future: Future[int] = Future()
            if broker in self.failing:
                future.set_exception(self.failing[broker])
            elif broker in self.hanging:
                self.waiting[broker] = future
            else:
                future.set_result(broker)
            return future

        result = self.asking.ask({b: partial(question, b) for b in brokers})
        return sorted(result)


def test_answers_of_all_brokers_are_returned() -> None:
    assert Cluster().ask(1, 2, 3) == [1, 2, 3]


def test_more_brokers_than_the_concurrency_limit_all_answer() -> None:
    every = range(3 * AT_ONCE + 1)
    assert Cluster().ask(*every) == list(every)


def test_a_hanging_broker_is_named_with_the_time_and_the_others_answer() -> None:
    cluster = Cluster(2)
    assert cluster.ask(1, 2, 3) == [1, 3]
    (silence,) = cluster.asking.silent.values()
    assert (silence.broker, silence.since_ms) == (2, 100_000)
    assert silence.reason == "no answer within 0.05 s"


def test_a_silent_broker_does_not_count_towards_the_concurrency_limit() -> None:
    hanging = range(AT_ONCE)
    cluster = Cluster(*hanging)
    cluster.ask(*hanging)
    assert cluster.ask(*hanging, 50, 51) == [50, 51]


def test_a_silent_broker_is_not_queried_again_before_it_answers() -> None:
    cluster = Cluster(2)
    for _ in range(3):
        cluster.ask(1, 2)
    assert cluster.asked.count(2) == 1


def test_a_late_answer_is_returned_with_the_next_one() -> None:
    cluster = Cluster(2)
    cluster.ask(1, 2)
    cluster.waiting[2].set_result(2)
    assert cluster.ask(1, 2) == [1, 2]
    assert cluster.asking.silent == {}


def test_silence_is_counted_from_the_first_question_without_an_answer() -> None:
    cluster = Cluster()
    cluster.failing[2] = KafkaConnectionError("refused")
    for _ in range(3):
        cluster.ask(1, 2)
        cluster.now_s += 1.0
    assert cluster.asking.silent[2].since_ms == 100_000
    assert "refused" in cluster.asking.silent[2].reason


def test_a_broker_no_longer_queried_is_not_silent() -> None:
    cluster = Cluster(2)
    cluster.ask(1, 2)
    cluster.ask(1)
    assert cluster.asking.silent == {}


def test_silence_and_its_end_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "plimsoll.collector")
    cluster = Cluster(2)
    cluster.ask(1, 2)
    cluster.ask(1, 2)
    cluster.waiting[2].set_result(2)
    cluster.ask(1, 2)
    assert caplog.messages == [
        "broker 2 does not answer the probe: no answer within 0.05 s",
        "broker 2 answers the probe again",
    ]


@pytest.mark.parametrize(
    ("error", "lost"), [(UnknownBrokerIdError(2), True), (KafkaConnectionError(), False)]
)
def test_a_broker_unknown_to_the_client_needs_another_client(error: Exception, lost: bool) -> None:
    cluster = Cluster()
    cluster.failing[2] = error
    cluster.ask(1, 2)
    assert cluster.asking.lost is lost


def test_a_refused_login_does_not_count_as_silence() -> None:
    cluster = Cluster()
    cluster.failing[2] = AccessRefused("not with that password")
    with pytest.raises(AccessRefused, match="password"):
        cluster.ask(1, 2)

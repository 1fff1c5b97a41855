"""Queries that any broker can answer, with some brokers silent."""

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import ClusterAuthorizationFailedError, KafkaTimeoutError, NodeNotReadyError

from collector.brokers import failover
from collector.brokers.failover import STAYS_S, AnyBroker
from collector.brokers.fan_out import ANSWER_S

LIMIT_S = 10.0


class Cluster:
    """Three brokers that answer with their own id, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing: dict[int, Exception] = {}
        self.asked: list[tuple[int, float]] = []
        self.now_s = 0.0
        self._anyone = AnyBroker(LIMIT_S, lambda: self.now_s)
        brokers = [SimpleNamespace(node_id=b) for b in (1, 2, 3)]
        known = SimpleNamespace(brokers=lambda: brokers)
        self._admin: Any = SimpleNamespace(_manager=SimpleNamespace(cluster=known))
        monkeypatch.setattr(failover, "send_request", self._send)

    def ask(self) -> int:
        answer: int = self._anyone.ask(self._admin, "request")
        return answer

    def _send(self, _admin: Any, _request: Any, broker: int, timeout_s: float) -> int:
        self.asked.append((broker, timeout_s))
        if broker in self.failing:
            raise self.failing[broker]
        return broker


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_one_broker_is_queried_for_a_while_and_then_the_next(cluster: Cluster) -> None:
    first = [cluster.ask() for _ in range(3)]
    cluster.now_s += STAYS_S
    later = cluster.ask()
    assert len(set(first)) == 1
    assert later != first[0]


def test_a_silent_broker_is_skipped_and_then_queried_last(cluster: Cluster) -> None:
    first = cluster.ask()
    cluster.failing[first] = KafkaTimeoutError()
    assert cluster.ask() != first
    asked = len(cluster.asked)
    for _ in range(3):
        cluster.now_s += STAYS_S
        cluster.ask()
    assert first not in [broker for broker, _ in cluster.asked[asked:]]


def test_each_broker_gets_the_timeout_of_a_sample(cluster: Cluster) -> None:
    cluster.failing = dict.fromkeys((1, 2, 3), KafkaTimeoutError())
    with pytest.raises(KafkaTimeoutError):
        cluster.ask()
    assert [timeout_s for _, timeout_s in cluster.asked] == [*[ANSWER_S] * 3, LIMIT_S]


def test_a_refusal_counts_as_an_answer(cluster: Cluster) -> None:
    refusal = ClusterAuthorizationFailedError()
    cluster.failing = dict.fromkeys((1, 2, 3), refusal)
    with pytest.raises(ClusterAuthorizationFailedError):
        cluster.ask()
    assert len(cluster.asked) == 1


def test_a_broker_that_came_back_is_asked_again(cluster: Cluster) -> None:
    cluster.failing = dict.fromkeys((1, 2, 3), NodeNotReadyError())
    with pytest.raises(NodeNotReadyError):
        cluster.ask()
    cluster.failing = {}
    assert cluster.ask() in (1, 2, 3)

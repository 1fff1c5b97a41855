"""Detection of competing rebalancers, and the messages about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import ClusterView, PartitionResponse
from executor.health import competing_rebalancers
from executor.platforms.stock_kafka import ReplicatedKafka
from model.errors import ClusterUnreachable, GuardrailRefused, RightsMissing
from model.ids import BrokerId, PartitionId, TopicName
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move

BALANCER, MODE = "confluent.balancer.enable", "partition_autobalancing_mode"
FIRST, SECOND = move(0), move(1)


@dataclass
class FakeShown:
    """A cluster's visible settings and topics, and its answers to reassignments."""

    topics_there: tuple[str, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[PartitionId, PartitionResponse] = field(default_factory=dict)
    forbidden: str = ""

    def topics(self) -> dict[TopicName, int]:
        return {TopicName(name): 1 for name in ("orders", *self.topics_there)}

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        assert broker == 1
        return {key: value for key, value in self.configs.items() if key in keys}

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId]], *, resizes: bool = False
    ) -> dict[PartitionId, PartitionResponse]:
        assert not resizes
        if self.forbidden:
            raise RightsMissing(self.forbidden)
        return {pid: self.answers[pid] for pid in targets}


def check(shown: FakeShown, cluster_id: str = CLUSTER_ID) -> tuple[str, ...]:
    cluster = ClusterView(cluster_id=cluster_id, alive=frozenset(ids([1, 2, 3])))
    return competing_rebalancers.check(cast("ClusterAdmin", shown), cluster)


def start(shown: FakeShown) -> dict[PartitionId, PartitionResponse]:
    platform = ReplicatedKafka(cast("ClusterAdmin", shown))
    return dict(platform.start([FIRST, SECOND]))


@pytest.mark.parametrize(
    "shown",
    [
        FakeShown(),
        FakeShown(configs={BALANCER: "false"}),
        FakeShown(("_confluent_balancer_api_state",), {BALANCER: "false"}),
        FakeShown(configs={MODE: "off"}),
        FakeShown(("__amazon_msk_canary", "__consumer_offsets")),
    ],
)
def test_no_warning_without_a_competing_rebalancer(shown: FakeShown) -> None:
    assert check(shown) == ()


def test_a_cluster_without_a_live_broker_is_named() -> None:
    fenced = ClusterView(cluster_id=CLUSTER_ID, alive=frozenset())
    with pytest.raises(ClusterUnreachable, match="All brokers of the cluster are fenced"):
        competing_rebalancers.check(cast("ClusterAdmin", FakeShown()), fenced)


def test_confluents_balancer_is_refused_while_it_is_on() -> None:
    shown = FakeShown(("_confluent_balancer_api_state",), {BALANCER: "true"})
    with pytest.raises(GuardrailRefused, match=r"is on \(confluent.* Set it to fal"):
        check(shown)


def test_a_warning_is_given_where_confluents_balancer_is_not_visible() -> None:
    (message,) = check(FakeShown(("_confluent_balancer_api_state",)))
    assert "The topic _confluent_balancer_api_state belongs to Confluent's" in message
    assert "Make sure that confluent.balancer.enable is false" in message


@pytest.mark.parametrize("mode", ["continuous", "node_add"])
def test_redpandas_balancer_is_refused_while_it_is_on(mode: str) -> None:
    with pytest.raises(GuardrailRefused, match=rf"mode={mode}\).* Set it to off"):
        check(FakeShown(configs={MODE: mode}))


def test_an_undisclosed_redpanda_balancer_is_refused_with_an_alternative() -> None:
    with pytest.raises(
        GuardrailRefused, match=r"redpanda\.1c792c9e is .* plan --reassignment-json"
    ):
        check(FakeShown(), "redpanda.1c792c9e")


@pytest.mark.parametrize(
    "topic",
    [
        "__CruiseControlMetrics",
        "__KafkaCruiseControlModelTrainingSamples",
        "strimzi.cruisecontrol.metrics",
    ],
)
def test_a_warning_is_given_about_cruise_control(topic: str) -> None:
    (message,) = check(FakeShown((topic,)))
    assert f"The topic {topic} belongs to Cruise Control. Let it start no" in message


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("orders-eu", "policy forbids it"),
        (
            "__amazon_msk_canary",
            "policy forbids it; Amazon MSK's Express brokers refuse reassignments while "
            "intelligent rebalancing is ACTIVE: pause it (UpdateRebalancing), then plan again",
        ),
    ],
)
def test_a_refusal_by_msk_comes_with_a_remedy(topic: str, message: str) -> None:
    refused = PartitionResponse.refused("policy forbids it")
    shown = FakeShown((topic,), answers={m.id: refused for m in (FIRST, SECOND)})
    assert [answer.reason for answer in start(shown).values()] == [message] * 2


def test_a_partial_refusal_by_msk_has_another_reason() -> None:
    answers = {
        FIRST.id: PartitionResponse.refused("no such broker"),
        SECOND.id: PartitionResponse.accepted(),
    }
    assert start(FakeShown(("__amazon_msk_canary",), answers=answers)) == answers


def test_a_refusal_by_msk_may_come_from_its_balancer() -> None:
    there = ("__amazon_msk_canary",)
    with pytest.raises(RightsMissing, match=r"^no right\. Amazon MSK's Express .*again\.$"):
        start(FakeShown(there, forbidden="no right."))
    with pytest.raises(RightsMissing, match=r"^no right\.$"):
        start(FakeShown(forbidden="no right."))

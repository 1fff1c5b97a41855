"""Connection errors as plimsoll's messages, and the check before a change is sent."""

import signal
import threading
import uuid
from collections.abc import Callable

import pytest

from executor.client.changing_calls import CHANGING_CALLS
from executor.client.kafka_admin import (
    KafkaAdmin,
    latest_effect_s,
    longest_request_s,
    slowest_change_s,
)
from lab.local_cluster.local_cluster import LocalCluster
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import ClusterUnreachable, ConfigError, WriterBarred
from model.ids import BrokerId, PartitionId, TopicName
from tests.support.cli_on_cluster import placement

KEY = "leader.replication.throttled.replicas"
ONE = BrokerId(1)


def test_an_unreachable_address_is_named() -> None:
    (port,) = free_ports(1)
    with (
        KafkaAdmin(f"{HOST}:{port}", 1.0) as admin,
        pytest.raises(ClusterUnreachable, match=f"{port}: Connection refused"),
    ):
        admin.cluster()


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":9092", "a:1,b:x"])
def test_an_invalid_address_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="is not host:port"):
        KafkaAdmin(text, 1.0)


@pytest.mark.parametrize("timeout_s", [0.1, 1.0, 6.0, 10.0, 60.0])
def test_a_holder_waits_for_a_forwarded_request_whatever_the_time_out(timeout_s: float) -> None:
    latest_s = latest_effect_s(timeout_s)
    assert latest_s >= slowest_change_s(timeout_s)
    # `retryTimeoutMs` of the broker, which gets it when the client gives it up at the latest.
    assert latest_s >= longest_request_s(timeout_s) + 60


def changes(admin: KafkaAdmin, topic: TopicName) -> dict[str, Callable[[], object]]:
    """A call of each kind that changes the cluster, by its name."""
    pid = PartitionId(topic, 0)
    return {
        "reassign": lambda: admin.reassign({pid: [BrokerId(3)]}),
        "elect_preferred": lambda: admin.elect_preferred([pid]),
        "alter_log_dirs": lambda: admin.alter_log_dirs(ONE, {pid: "/nowhere"}),
        "alter_broker_configs": lambda: admin.alter_broker_configs(
            ONE, {"leader.replication.throttled.rate": "1000000"}
        ),
        "alter_topic_configs": lambda: admin.alter_topic_configs(topic, {"segment.bytes": "1MB"}),
        "append_topic_configs": lambda: admin.append_topic_configs(topic, {KEY: ["0:1"]}),
        "subtract_topic_configs": lambda: admin.subtract_topic_configs(topic, {KEY: ["0:1"]}),
    }


@pytest.mark.kafka
def test_nothing_that_changes_a_cluster_is_sent_past_the_check(local_cluster: LocalCluster) -> None:
    topic = TopicName(f"checked-{uuid.uuid4().hex[:6]}")
    local_cluster.create_topic(topic, [[1]])
    asked: list[str] = []

    def refuse() -> None:
        asked.append(threading.current_thread().name)
        raise WriterBarred("the lease is lost")

    with KafkaAdmin(local_cluster.bootstrap, 10.0, before_change=refuse) as admin:
        admin.partitions([PartitionId(topic, 0)])
        admin.reassignments()
        admin.own_topic_configs([topic], [KEY])
        assert asked == []
        calls = changes(admin, topic)
        assert {*calls} == {*CHANGING_CALLS}
        for count, call in enumerate(calls.values(), 1):
            with pytest.raises(WriterBarred, match="the lease is lost"):
                call()
            # In the driver's thread: connections are open, and brokers found.
            assert len(asked) == count
            assert asked[-1].startswith("kafka-io")
        assert placement(local_cluster.bootstrap, topic) == {0: [1]}
        assert admin.own_topic_configs([topic], [KEY, "segment.bytes"]) == {topic: {}}


@pytest.mark.kafka
def test_a_request_whose_call_was_interrupted_before_is_not_sent(
    local_cluster: LocalCluster,
) -> None:
    """Its caller has ended by then, and may have given the lease up."""
    topic = TopicName(f"interrupted-{uuid.uuid4().hex[:6]}")
    local_cluster.create_topic(topic, [[1]])
    ended, begins = threading.Event(), []

    def interrupt() -> None:
        begins.append("the check")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        ended.wait()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGUSR1, stop)
    try:
        with KafkaAdmin(local_cluster.bootstrap, 10.0, before_change=interrupt) as admin:
            with pytest.raises(KeyboardInterrupt):
                admin.reassign({PartitionId(topic, 0): [BrokerId(3)]})
            ended.set()
        # The driver's thread has ended, too.
        assert begins == ["the check"]
        assert placement(local_cluster.bootstrap, topic) == {0: [1]}
    finally:
        ended.set()
        signal.signal(signal.SIGUSR1, usual)

"""Leases in a topic of a real Kafka, whose transactions fence all writers but the last."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException

from clients.connection import Connection
from clients.driver_configs import lease_producer
from clients.driver_errors import is_fenced
from clients.lease_topic import LeaseTopic
from executor.journal.lease import Lease
from lab.local_cluster.local_cluster import LocalCluster
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import ArchiveUnreachable, ConfigError, WriterBarred
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.fake_platform import FakeTime

KEY = "one/leader.json"
MOST = 1 << 16
TIMEOUT_S = 60.0
COMPACT = {"cleanup.policy": "compact", "min.insync.replicas": "2"}


@pytest.fixture
def topic(local_cluster: LocalCluster) -> str:
    name = f"leases-{uuid.uuid4().hex[:8]}"
    local_cluster.create_topic(name, [[1, 2, 3]], COMPACT)
    return name


def store(cluster: LocalCluster, topic: str, timeout_s: float = TIMEOUT_S) -> LeaseTopic:
    """That of one process."""
    return LeaseTopic(Connection(cluster.bootstrap), topic, timeout_s)


@pytest.mark.kafka
def test_a_lease_is_created_once_and_replaced_in_the_version_that_was_read(
    local_cluster: LocalCluster, topic: str
) -> None:
    ours, theirs = store(local_cluster, topic), store(local_cluster, topic)
    assert ours.get(KEY, MOST) is None
    assert ours.put_over(KEY, b"0", "5") is None
    first = ours.put_new(KEY, b"1")
    assert first
    assert theirs.put_new(KEY, b"2") is None
    # The attempt has fenced us; the lease is still ours.
    second = ours.put_over(KEY, b"3", first)
    assert second
    assert theirs.put_over(KEY, b"4", first) is None
    third = theirs.put_over(KEY, b"5", second)
    assert third
    assert ours.put_over(KEY, b"6", second) is None
    for each in (ours, theirs, store(local_cluster, topic)):
        found = each.get(KEY, MOST)
        assert found is not None
        assert (found.body, found.etag) == (b"5", third)
        assert each.get("another/leader.json", MOST) is None
    assert ours.keeps_conditions(KEY, b"7")
    # An other lease in the same topic.
    assert ours.put_new("another/leader.json", b"8")
    again = theirs.get(KEY, MOST)
    assert again is not None
    assert again.body == b"5"
    with pytest.raises(ConfigError, match="larger than 0 bytes"):
        theirs.get(KEY, 0)


@pytest.mark.kafka
def test_of_writers_that_replace_one_version_a_single_one_succeeds(
    local_cluster: LocalCluster, topic: str
) -> None:
    stores = [store(local_cluster, topic) for _ in range(3)]
    etag = ""
    with ThreadPoolExecutor(len(stores)) as pool:
        for turn in range(4):
            together = threading.Barrier(len(stores))

            def write(n: int, turn: int, etag: str, together: threading.Barrier) -> str | None:
                body = f"{turn}-{n}".encode()
                together.wait()
                try:
                    if etag:
                        return stores[n].put_over(KEY, body, etag)
                    return stores[n].put_new(KEY, body)
                except ArchiveUnreachable as exc:
                    assert "Other writers keep changing" in str(exc)  # noqa: PT017
                    return None

            calls = [pool.submit(write, n, turn, etag, together) for n in range(len(stores))]
            written = [found for call in calls if (found := call.result())]
            now = store(local_cluster, topic).get(KEY, MOST)
            # Writers that fence each other in turn may all give up.
            assert len(written) <= 1
            if written:
                assert now is not None
                assert now.etag == written[0]
                etag = written[0]
    assert etag


@pytest.mark.kafka
def test_a_frozen_writer_is_fenced_by_its_epoch(local_cluster: LocalCluster, topic: str) -> None:
    connection = Connection(local_cluster.bootstrap)
    frozen = lease_producer(connection, f"{topic}-{KEY}", TIMEOUT_S)
    frozen.init_transactions(TIMEOUT_S)
    frozen.begin_transaction()
    frozen.produce(topic, b"frozen", KEY, partition=0)
    frozen.flush(TIMEOUT_S)
    # Its record is written, and not committed: others neither wait for it nor read it.
    other = store(local_cluster, topic)
    assert other.get(KEY, MOST) is None
    written = other.put_new(KEY, b"other")
    assert written
    with pytest.raises(KafkaException) as caught:
        frozen.commit_transaction(TIMEOUT_S)
    assert is_fenced(caught.value.args[0])
    found = store(local_cluster, topic).get(KEY, MOST)
    assert found is not None
    assert (found.body, found.etag) == (b"other", written)


@pytest.mark.kafka
def test_a_frozen_holder_finds_its_lease_lost(local_cluster: LocalCluster, topic: str) -> None:
    time = FakeTime()
    frozen, other, third = (
        Lease(store(local_cluster, topic), time.timing, call_s=5.0, spare_s=15.0, holder=name)
        for name in ("frozen", "other", "third")
    )
    assert frozen.attempt(KEY) is None
    for _ in range(3):
        time.now_s += 15.0
        assert other.attempt(KEY) is not None
        frozen.renew()

    def sees_the_last() -> bool:
        seen = other.attempt(KEY)
        assert seen is not None
        return seen.renewals == 3

    # A transaction may become visible a moment after its commit has been answered.
    wait_until(sees_the_last)
    time.now_s += 20.5
    assert other.attempt(KEY) is None
    with pytest.raises(WriterBarred, match="other has taken it"):
        frozen.renew()
    frozen.release()
    other.renew()
    other.release()
    assert third.attempt(KEY) is None


@pytest.fixture
def plain(local_cluster: LocalCluster) -> str:
    name = f"plain-{uuid.uuid4().hex[:8]}"
    local_cluster.create_topic(name, [[1]], {"cleanup.policy": "delete"})
    return name


@pytest.mark.kafka
def test_a_topic_that_is_missing_or_loses_records_is_refused(
    local_cluster: LocalCluster, plain: str
) -> None:
    with pytest.raises(ConfigError, match=r"has cleanup\.policy=delete, so Kafka would delete"):
        store(local_cluster, plain).get(KEY, MOST)
    missing = f"missing-{uuid.uuid4().hex[:8]}"
    late = store(local_cluster, missing)
    for _ in range(2):
        with pytest.raises(ConfigError, match=rf"kafka-topics\.sh --create --topic {missing}"):
            late.put_new(KEY, b"1")
    # It was not created by being asked for; once someone does, it is used.
    local_cluster.create_topic(missing, [[1, 2, 3]], COMPACT)
    assert late.put_new(KEY, b"1")


def test_without_brokers_it_says_so() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ArchiveUnreachable, match=f"Cannot read {KEY} in topic t at {HOST}:{port}"):
        LeaseTopic(Connection(f"{HOST}:{port}"), "t", timeout_s=0.5).get(KEY, MOST)

"""The local cluster: start, changes, and an end without leftovers."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from clients.jvm.jars import default_cache_dir
from clients.jvm.java import Java
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import ClusterUnreachable, ExecutionStopped, PortTaken
from model.ids import BrokerId

pytestmark = pytest.mark.kafka
DEADLINE_S = 300.0
TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": "1048576",
    "local.retention.bytes": "1048576",
    "file.delete.delay.ms": "200",
}


def eventually(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + DEADLINE_S
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder of this test, empty."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[LocalCluster]:
    """A cluster whose brokers may be killed."""
    with LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as cluster:
        yield cluster


def broker_ids(cluster: LocalCluster) -> set[int]:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    return set(client.list_topics(timeout=60).brokers)


def test_three_brokers_in_three_racks_and_an_s3(local_cluster: LocalCluster) -> None:
    racks = [broker.rack for broker in local_cluster.kafka.brokers.values()]
    client = AdminClient({"bootstrap.servers": local_cluster.bootstrap})
    assert racks == ["a", "b", "c"]
    assert str(client.list_topics(timeout=60).cluster_id) == local_cluster.cluster_id
    assert broker_ids(local_cluster) == {1, 2, 3}
    assert set(local_cluster.pids) >= {"broker-1", "broker-2", "broker-3", "s3"}


def test_a_topic_gets_the_requested_placement(local_cluster: LocalCluster) -> None:
    local_cluster.create_topic("placed", [[3, 1], [2, 3]])
    client = AdminClient({"bootstrap.servers": local_cluster.bootstrap})
    partitions = client.list_topics("placed", timeout=60).topics["placed"].partitions
    assert {number: part.replicas for number, part in partitions.items()} == {0: [3, 1], 1: [2, 3]}


@pytest.fixture
def patient_cluster() -> Iterator[LocalCluster]:
    """A cluster that does not fence a broker stopped during a test."""
    patient = LocalPlan(
        tier=False, properties={"broker.session.timeout.ms": str(int(20_000 * DEADLINE_S))}
    )
    with LocalCluster(default_cache_dir(), patient) as cluster:
        yield cluster


def test_a_new_topic_is_waited_for_on_every_broker(patient_cluster: LocalCluster) -> None:
    # A new client queries the broker that it was given, and none that is stopped.
    serving = patient_cluster.bootstrap.split(",")[0]
    # The other brokers are controllers, one of them the active one.
    added = patient_cluster.kafka.add_broker("a")
    stopped = patient_cluster.pids[f"broker-{added}"]
    making = Thread(target=patient_cluster.create_topic, args=("slow", [[1], [2]]))

    def created() -> bool:
        client = AdminClient({"bootstrap.servers": serving, "log_level": 0})
        return "slow" in client.list_topics(timeout=10).topics

    os.kill(stopped, signal.SIGSTOP)
    try:
        making.start()
        assert eventually(created)
        assert making.is_alive()
    finally:
        os.kill(stopped, signal.SIGCONT)
    making.join()


def test_an_impossible_topic_is_rejected_with_kafkas_message(local_cluster: LocalCluster) -> None:
    with pytest.raises(ClusterUnreachable, match="refused topic astray"):
        local_cluster.create_topic("astray", [[99]])


def test_segments_of_a_tiered_topic_are_seen_through_s3(local_cluster: LocalCluster) -> None:
    """Three segments of 1 MB: all but the active one go to the tier, bytes and all."""
    local_cluster.create_topic("tiered", [[1]], TIERED)
    producer = Producer({"bootstrap.servers": local_cluster.bootstrap})
    for _ in range(4_000):
        producer.produce("tiered", bytes(1000), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
    s3 = local_cluster.s3

    def segments() -> list[str]:
        result = s3.client().list_objects_v2(Bucket=s3.bucket, Prefix="tiered-0-")
        keys = [entry["Key"] for entry in result.get("Contents", [])]
        return [key for key in keys if key.endswith(".log")]

    assert eventually(lambda: len(segments()) >= 3)
    body = s3.client().get_object(Bucket=s3.bucket, Key=segments()[0])["Body"].read()
    on_disk = local_cluster.folder / "tier" / s3.bucket / segments()[0]
    assert body == on_disk.read_bytes()


def test_no_record_is_lost_when_a_leader_is_killed(own_cluster: LocalCluster) -> None:
    """Three replicas; broker 1 leads a partition, dies and comes back."""
    own_cluster.create_topic("survivor", [[1, 2, 3], [2, 3, 1]])
    order = LoadOrder(topic="survivor", bytes_per_s=5e5, weights=(1.0, 1.0))
    load = Load(own_cluster.processes, own_cluster.bootstrap, order)
    load.start()
    before = sum(load.status().acknowledged)
    own_cluster.kafka.kill_broker(BrokerId(1))
    assert "broker-1" not in own_cluster.pids
    assert eventually(lambda: load.status().acknowledged[0] > before + 500)
    own_cluster.kafka.restart_broker(BrokerId(1))
    report = load.finish()
    assert report.lost_records == report.duplicated_records == 0
    assert report.failed_records == 0
    assert report.read_records == report.acknowledged_records > 1000


def test_an_added_broker_serves(own_cluster: LocalCluster) -> None:
    number = own_cluster.kafka.add_broker("b")
    assert number == 4
    assert number in broker_ids(own_cluster)
    own_cluster.create_topic("on-the-new-one", [[number]])


def test_closing_leaves_no_process_and_no_folder(scratch: Path) -> None:
    """Including the processes of the load generator."""
    cluster = LocalCluster(default_cache_dir(), LocalPlan(brokers=1))
    steps: list[str] = []
    cluster.start(steps.append)
    cluster.create_topic("short", [[1]])
    order = LoadOrder(topic="short", bytes_per_s=1e4, weights=(1.0,))
    Load(cluster.processes, cluster.bootstrap, order).start()
    pids = cluster.pids
    assert set(pids) == {"broker-1", "s3", "load-producer", "load-consumer"}
    cluster.close()
    cluster.close()
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
    assert list(scratch.iterdir()) == []
    assert steps[-1] == "S3 listens"


def test_a_stop_ends_a_start_in_another_thread(scratch: Path) -> None:
    cluster = LocalCluster(default_cache_dir(), LocalPlan(brokers=1, tier=False))
    caught: list[BaseException] = []

    def start() -> None:
        try:
            cluster.start()
        except ExecutionStopped as exc:
            caught.append(exc)

    thread = Thread(target=start)
    thread.start()
    assert eventually(lambda: any(scratch.glob("plimsoll-*/broker-1")))
    cluster.close()
    thread.join(DEADLINE_S)
    assert len(caught) == 1
    assert list(scratch.iterdir()) == []


def test_a_broker_that_dies_at_its_start_is_reported_with_its_log(scratch: Path) -> None:
    """The logs are kept, the rest is removed."""
    broken = scratch / "java"
    broken.write_text("#!/bin/sh\necho no heap today\nexit 3\n")
    broken.chmod(0o755)
    java = Java(home=scratch, executable=broken, version=21, bundled=False)
    plan = LocalPlan(brokers=1, tier=False, java=java)
    with pytest.raises(ClusterUnreachable, match=r"code 3[^$]*no heap today") as caught:
        LocalCluster(default_cache_dir(), plan).start()
    broken.unlink()
    (remaining,) = scratch.iterdir()
    assert str(remaining) in str(caught.value)
    assert (remaining / "broker-1.log").read_text() == "no heap today\n"


def test_a_port_in_use_is_reported_before_anything_starts(scratch: Path) -> None:
    cluster = LocalCluster(default_cache_dir(), LocalPlan(brokers=1, tier=False))
    with cluster:
        port = int(cluster.bootstrap.removeprefix(f"{HOST}:"))
        plan = LocalPlan(brokers=2, ports=(free_ports(1)[0], port), tier=False)
        with pytest.raises(PortTaken, match=f"Port {port} for a local broker"):
            LocalCluster(default_cache_dir(), plan).start()
    assert list(scratch.iterdir()) == []

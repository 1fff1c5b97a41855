"""From brokers to a snapshot: real brokers, the probe, Spark."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from clients.admin_connection import AdminConnection
from clients.connection import Connection
from clients.jvm.jars import default_cache_dir
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.metadata import ClusterReader
from collector.probe import Probe
from collector.samples_topic import PARTITIONS, RETENTION_MS, SamplesTopic
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import PartitionId, TopicName
from model.snapshot.snapshot import Snapshot, StorageKind
from tests.support.collector.sample_rows import sample, table
from tests.support.collector.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka
RATES = (800_000, 600_000, 400_000, 200_000)


@dataclass(frozen=True)
class Watched:
    """A loaded topic."""

    cluster: LocalCluster
    topic: str

    def places(self) -> list[PartitionId]:
        return [PartitionId(TopicName(self.topic), i) for i in range(len(RATES))]


@pytest.fixture(scope="module")
def watched(local_cluster: LocalCluster) -> Iterator[Watched]:
    topic = "collector-tiered"
    local_cluster.create_topic(
        topic,
        [[1], [2], [3], [1]],
        {
            "remote.storage.enable": "true",
            "segment.bytes": "1048576",
            "local.retention.bytes": "2097152",
            "local.retention.ms": "-2",
            "file.delete.delay.ms": "200",
        },
    )
    load = Load(
        local_cluster.processes,
        local_cluster.bootstrap,
        LoadOrder(topic=topic, bytes_per_s=sum(RATES), weights=RATES),
        name=topic,
    )
    load.start()
    yield Watched(local_cluster, topic)
    load.kill()


def settings(folder: Path, samples_topic: str | None = None) -> CollectorSettings:
    return CollectorSettings(
        state_dir=folder, cache_dir=default_cache_dir(), samples_topic=samples_topic
    )


def topics(cluster: LocalCluster) -> set[str]:
    with ClusterReader(Connection(cluster.bootstrap)) as reader:
        return {str(t.name) for t in reader.read().topics}


def whole_window(watcher: Collector) -> Snapshot:
    """A snapshot whose window began after the first one was taken."""
    begun_ms = watcher.wait(PATIENCE_S).header.taken_at_ms
    window_ms = 15_000

    def there() -> bool:
        result = watcher.snapshot()
        assert watcher.failure is None
        return result is not None and result.header.taken_at_ms >= begun_ms + window_ms

    eventually(there, "no whole window")
    result = watcher.snapshot()
    assert result is not None
    return result


def check_loads(result: Snapshot, watched: Watched) -> None:
    """The partitions' shares closely, their sum roughly.

    A producer that was held up sends what it owes in one go, to all partitions alike,
    so that a busy machine changes the sum within one window, but not the shares.
    """
    rows = [result.row_of[place] for place in watched.places()]
    net_in, net_out, disk = result.partitions.loads[rows].T
    shares = np.array(RATES) / sum(RATES)
    for rates, tolerance in ((net_in, 0.1), (net_out, 0.2)):
        np.testing.assert_allclose(rates / rates.sum(), shares, rtol=tolerance)
        assert rates.sum() == pytest.approx(sum(RATES), rel=0.3)
    assert ((disk > 0) & (disk < 16 * 2**20)).all()
    assert (result.partitions.size_bytes[rows] >= disk).all()


@pytest.mark.spark
def test_loads_match_what_was_produced_and_nothing_is_written(
    watched: Watched, tmp_path: Path
) -> None:
    before = topics(watched.cluster)
    with Collector(Connection(watched.cluster.bootstrap), settings(tmp_path)) as watcher:
        result = whole_window(watcher)
        pid = watcher.spark_pid
    check_loads(result, watched)
    source = result.header.sources[0]
    assert source.measured_share > 0.5
    assert abs(result.header.taken_at_ms / 1000 - time.time()) < PATIENCE_S
    assert topics(watched.cluster) == before
    assert pid is not None
    assert not psutil.pid_exists(pid)


@pytest.mark.spark
def test_samples_may_go_through_a_topic(watched: Watched, tmp_path: Path) -> None:
    name = "__plimsoll_samples"
    connection = Connection(watched.cluster.bootstrap)
    with Collector(connection, settings(tmp_path, name)) as watcher:
        result = whole_window(watcher)
    check_loads(result, watched)
    (own,) = [t for t in result.header.topics if t.name == name]
    assert own.internal


def test_the_samples_topic_is_created_once_as_documented(local_cluster: LocalCluster) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType

    connection = Connection(local_cluster.bootstrap)
    name = "__collector_test_samples"
    for _ in range(2):
        sink = SamplesTopic(connection, name, brokers=3)
        sink.write(table([sample(1), sample(2)]))
        sink.close()
    with ClusterReader(connection) as reader:
        state = reader.read()
    (position,) = [i for i, t in enumerate(state.topics) if t.name == name]
    rows = (state.topic == position).nonzero()[0]
    assert len(rows) == PARTITIONS
    assert (state.replica_start[rows + 1] - state.replica_start[rows] == 3).all()
    client = AdminConnection(connection)
    with client.calling("describe configs", "DESCRIBE_CONFIGS") as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        configs = admin.describe_configs([resource])["topic"][name]
    client.close()
    assert configs["retention.ms"]["value"] == str(RETENTION_MS)


def test_metadata_contain_racks_storage_and_leaders(watched: Watched) -> None:
    with ClusterReader(Connection(watched.cluster.bootstrap)) as reader:
        state = reader.read()
    assert [b.rack for b in state.brokers][:3] == ["a", "b", "c"]
    (position,) = [i for i, t in enumerate(state.topics) if t.name == watched.topic]
    assert state.topics[position].storage is StorageKind.TIERED
    assert not state.topics[position].internal
    assert state.leader[state.topic == position].tolist() == [1, 2, 3, 1]
    assert state.may_describe


def test_an_unchanged_placement_is_not_rebuilt(watched: Watched) -> None:
    with ClusterReader(Connection(watched.cluster.bootstrap)) as reader:
        before = reader.read()
        eventually(lambda: reader.read().leader is reader.read().leader, "made anew")
        watched.cluster.create_topic("another", [[1], [2]])
        after = reader.read()
    assert after.taken_at_ms > before.taken_at_ms
    assert {t.name for t in after.topics} - {t.name for t in before.topics} == {"another"}


def test_a_probe_sees_every_partition_with_size_offsets_and_readers(watched: Watched) -> None:
    connection = Connection(watched.cluster.bootstrap)
    with ClusterReader(connection) as reader, Probe(connection) as probe:
        eventually(lambda: probe.sample(reader.read())["groups"].to_numpy().any(), "")
        state = reader.read()
        result = probe.sample(state)
    assert result.num_rows == len(state)
    mine = [r for r in result.to_pylist() if r["topic"] == watched.topic]
    assert [r["broker"] for r in mine] == [1, 2, 3, 1]
    for row in mine:
        assert row["groups"] == 1
        assert 0 <= row["earliest"] <= row["earliest_local"] <= row["latest"]
        assert 0 < row["group_offsets"] <= row["latest"] + 5000
        assert row["local_bytes"] > 0
        assert row["total_bytes"] == -1

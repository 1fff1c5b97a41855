import time

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from clients.connection import Connection
from collector.broker_log_dirs import with_capacities
from collector.metadata import ClusterReader
from collector.probe import Probe
from collector.spark.vectors import Window, load_vectors
from model.snapshot.snapshot import StorageKind
from tests.support.automq import AutoMQCluster
from tests.support.collector.sample_rows import RECORD_BYTES

pytestmark = pytest.mark.automq
RECORDS = 500


def test_a_real_automq_is_recognised_and_measured(automq_cluster: AutoMQCluster) -> None:
    automq_cluster.create_topic("collector-shared", [[0], [1]])
    connection = Connection(automq_cluster.bootstrap)
    tables = []
    producer = Producer({"bootstrap.servers": automq_cluster.bootstrap, "log_level": 0})
    with ClusterReader(connection) as reader, Probe(connection) as probe:
        state = reader.read()
        for _ in range(5):
            tables.append(probe.sample(state))
            for _ in range(RECORDS):
                producer.produce("collector-shared", b"x" * RECORD_BYTES, partition=0)
            producer.flush(10)
            time.sleep(1.1)
        tables.append(probe.sample(state))
    assert {t.storage for t in state.topics} == {StorageKind.SHARED}
    result = load_vectors(pa.concat_tables(tables), Window(window_ms=60_000))
    mine = [r for r in result.to_pylist() if r["topic"] == "collector-shared"]
    # The first sample may have come before the partition was open.
    written = (mine[0]["samples"] - 1) * RECORDS * RECORD_BYTES
    rate = 1000 * written / mine[0]["span_ms"]
    assert mine[0]["net_in"] == pytest.approx(rate, rel=0.05)
    assert mine[1]["net_in"] == 0


def test_local_disks_of_a_real_automq_do_not_count_as_capacity(
    automq_cluster: AutoMQCluster,
) -> None:
    automq_cluster.create_topic("collector-shared", [[0], [1]])
    connection = Connection(automq_cluster.bootstrap)
    with ClusterReader(connection) as reader, Probe(connection) as probe:
        probe.sample(reader.read())
        state, known = reader.read(), probe.directories
    assert all(d.total_bytes for d in known.values())
    assert sorted(known) == [b.id for b in state.brokers]
    assert not any(b.capacity for b in with_capacities(state, known, None).brokers)

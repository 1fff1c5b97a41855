"""Load on the local cluster: its rates, and an exact comparison of records."""

import pytest
from confluent_kafka import Producer

from lab.load.load_generator import Load, LoadOrder, LoadReport
from lab.load.load_records import NUMBER_BYTES
from lab.local_cluster.local_cluster import LocalCluster
from model.errors import ClusterUnreachable
from tests.support.cli_on_cluster import wait_until

pytestmark = pytest.mark.kafka


def run_load(cluster: LocalCluster, topic: str) -> LoadReport:
    """The record counts of a load that has written hundreds of records."""
    order = LoadOrder(topic=topic, bytes_per_s=1e6, weights=(3.0, 1.0))
    load = Load(cluster.processes, cluster.bootstrap, order, name=topic)
    load.start()
    wait_until(lambda: min(load.status().acknowledged) > 200)
    return load.finish()


def test_acknowledged_records_are_read_and_shares_preserved(local_cluster: LocalCluster) -> None:
    local_cluster.create_topic("shares", [[1], [2]])
    report = run_load(local_cluster, "shares")
    assert report.acknowledged_records == report.read_records > 0
    assert report.lost_records == report.duplicated_records == 0
    assert report.acknowledged_bytes == 1000 * report.acknowledged_records
    assert sum(report.acknowledged) == report.acknowledged_records
    # Whole records per tick: the two counts differ from 3 to 1 by a record or two.
    assert report.acknowledged[0] == pytest.approx(3 * report.acknowledged[1], abs=5)


def test_records_of_transactions_are_read_once_committed(local_cluster: LocalCluster) -> None:
    local_cluster.create_topic("committed", [[1], [2]])
    order = LoadOrder(topic="committed", bytes_per_s=4e5, weights=(3.0, 1.0), transactional=True)
    load = Load(local_cluster.processes, local_cluster.bootstrap, order, name="committed")
    load.start()
    # The first transaction is aborted.
    wait_until(lambda: min(load.status().acknowledged) > 0)
    report = load.finish()
    assert report.acknowledged_records == report.read_records > 0
    assert report.failed_records > 0 == report.failed_but_read_records
    assert report.lost_records == report.duplicated_records == 0


def test_a_second_load_counts_only_its_own_records(local_cluster: LocalCluster) -> None:
    local_cluster.create_topic("again", [[1], [2]])
    run_load(local_cluster, "again")
    second = run_load(local_cluster, "again")
    assert second.read_records == second.acknowledged_records
    assert second.lost_records == second.duplicated_records == 0


def test_a_shift_changes_the_shares_of_topics(local_cluster: LocalCluster) -> None:
    """From all on one partition to all on the other; the first one is idle then."""
    local_cluster.create_topic("shifted", [[1], [2]])
    order = LoadOrder(topic="shifted", bytes_per_s=5e5, weights=(1.0, 0.0))
    load = Load(local_cluster.processes, local_cluster.bootstrap, order, name="shift")
    load.start()
    wait_until(lambda: load.status().acknowledged[0] > 0)
    load.shift([0.0, 1.0], bytes_per_s=1e6)
    with pytest.raises(ValueError, match="2 weights"):
        load.shift([1.0])
    wait_until(lambda: first_is_idle(load))
    rested = load.status().acknowledged[0]
    report = load.finish()
    assert report.acknowledged[0] == rested > 0


def first_is_idle(load: Load) -> bool:
    """Whether partition 0 gets nothing while partition 1 gets 500 records."""
    before = load.status().acknowledged
    wait_until(lambda: load.status().acknowledged[1] > before[1] + 500)
    return load.status().acknowledged[0] == before[0]


def test_a_record_written_twice_by_someone_else_is_counted(local_cluster: LocalCluster) -> None:
    """Hence a count of zero duplicates is meaningful."""
    local_cluster.create_topic("doubled", [[1], [2]])
    order = LoadOrder(topic="doubled", bytes_per_s=1e5, weights=(1.0, 1.0))
    load = Load(local_cluster.processes, local_cluster.bootstrap, order, name="double")
    load.start()
    wait_until(lambda: min(load.status().acknowledged) > 0)
    other = Producer({"bootstrap.servers": local_cluster.bootstrap})
    other.produce("doubled", bytes(NUMBER_BYTES), partition=0)
    assert other.flush(30) == 0
    report = load.finish()
    assert report.duplicated_records == 1
    assert report.read_records == report.acknowledged_records + 1


def test_a_killed_producer_is_reported(local_cluster: LocalCluster) -> None:
    local_cluster.create_topic("cut", [[1]])
    order = LoadOrder(topic="cut", bytes_per_s=1e5, weights=(1.0,))
    load = Load(local_cluster.processes, local_cluster.bootstrap, order, name="cut")
    load.start()
    load.kill()
    with pytest.raises(ClusterUnreachable, match="cut-producer ended"):
        load.finish()

"""A metric topic on real brokers, written as Cruise Control's reporter writes it."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from clients.admin_connection import AdminConnection
from clients.connection import Connection
from clients.jvm.jars import default_cache_dir
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.reports.metric_topics import metric_topics
from collector.reports.report_columns import CRUISE_CONTROL
from collector.reports.reporters import ReporterState
from collector.spark.vectors import ORIGINS
from lab.local_cluster.local_cluster import LocalCluster
from tests.support.collector import reporter_records
from tests.support.collector.topic_traffic import Traffic
from tests.support.collector.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
METRICS = "reports-test.metrics"
LOADED = "reports.loaded"
BROKERS = (1, 2, 3)
PRODUCED, FETCHED = 40.0, 60.0


class Reporter:
    """Writes reports of three brokers' reporters on each call."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def write(self, *more: bytes) -> None:
        now_ms = int(1000 * time.time())
        figures = ((reporter_records.PRODUCED, PRODUCED), (reporter_records.FETCHED, FETCHED))
        for broker in BROKERS:
            for metric, value in figures:
                record = reporter_records.cruise(metric, now_ms, broker, value)
                self._producer.produce(METRICS, record, str(broker))
        for record in more:
            self._producer.produce(METRICS, record, "1")
        self._producer.flush(10)


def state_of(watcher: Collector) -> ReporterState:
    states = watcher.reporters.states()
    (result,) = [s for s in states if s.source == CRUISE_CONTROL]
    return result


def requests_by_broker(watcher: Collector) -> dict[int, float]:
    """Reports of Cruise Control's reporter as assigned to partitions."""
    result: Counter[int] = Counter()
    for row in watcher.vectors.to_pylist():
        if ORIGINS[row["requests_by"]] == CRUISE_CONTROL and row["requests_by"] >= 0:
            result[row["broker"]] += row["requests"]
    return dict(result)


def eventually(watcher: Collector, done: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    """Wait for a condition while loads continue."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert watcher.failure is None
        assert time.monotonic() < end, watcher.reporters.states()
        meanwhile()
        time.sleep(0.5)


def wait_for_loads(watcher: Collector) -> None:
    """Wait until loads measured from now on are available."""
    now_ms = int(1000 * time.time())
    eventually(watcher, lambda: watcher.wait(PATIENCE_S).header.taken_at_ms > now_ms, lambda: None)


def delete(cluster: LocalCluster, topic: str) -> None:
    client = AdminConnection(Connection(cluster.bootstrap))
    with client.calling("delete a topic", "DELETE") as admin:
        admin.delete_topics([topic])
    client.close()


def test_a_metric_topic_may_appear_vanish_and_be_recreated_while_loads_continue(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    local_cluster.create_topic(LOADED, [[1], [2], [3]])
    reporter = Reporter(local_cluster.bootstrap)
    settings = CollectorSettings(
        state_dir=tmp_path, cache_dir=default_cache_dir(), metric_topics=metric_topics(METRICS)
    )
    connection = Connection(local_cluster.bootstrap)
    traffic = Traffic(local_cluster.bootstrap, LOADED, {0: 100, 1: 200, 2: 300})
    with traffic, Collector(connection, settings) as watcher:
        watcher.wait(PATIENCE_S)
        assert state_of(watcher).why == f"the cluster has no topic {METRICS}"
        assert requests_by_broker(watcher) == {}

        local_cluster.create_topic(METRICS, [[1], [2], [3], [1]])
        origins = dict.fromkeys(BROKERS, PRODUCED + FETCHED)
        eventually(
            watcher, lambda: requests_by_broker(watcher) == pytest.approx(origins), reporter.write
        )
        assert state_of(watcher).why == ""

        delete(local_cluster, METRICS)
        eventually(watcher, lambda: not state_of(watcher).found, lambda: None)
        wait_for_loads(watcher)

        before = state_of(watcher).records
        local_cluster.create_topic(METRICS, [[2]])
        newer = reporter_records.cruise(
            reporter_records.CPU, int(1000 * time.time()), 1, 0.5, version=1
        )
        eventually(
            watcher,
            lambda: state_of(watcher).records > before + 2,
            lambda: reporter.write(newer, b"?"),
        )
        state = state_of(watcher)
        wait_for_loads(watcher)
    assert set(state.left_out) == {"version", "short"}
    assert state.readable
    delete(local_cluster, METRICS)

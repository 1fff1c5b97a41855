"""A history that begins with Cruise Control's sample store, on real brokers."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from clients.connection import Connection
from clients.jvm.jars import default_cache_dir
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.history.history_settings import HistorySettings
from collector.history.hours import HOUR_MS, hourly
from collector.history.retention import LATE_S
from collector.history.sample_store import decode
from collector.history.slots import DAY
from lab.local_cluster.local_cluster import LocalCluster
from tests.support.cli_on_cluster import wait_until
from tests.support.collector.history_store import compacted, in_order
from tests.support.collector.sample_store_records import new, old
from tests.support.collector.seasonal_loads import same
from tests.support.collector.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
STORE = "samples.of-cruise-control"
DAYS = 3
STEP_MS = HOUR_MS // 4


def samples_until(today_ms: int) -> list[bytes]:
    """Three days and a part of today; the first day as an older version wrote it."""
    begin_ms = today_ms - DAYS * DAY * HOUR_MS
    result = []
    for step in range((DAYS * DAY + 1) * 4):
        time_ms, load = begin_ms + step * STEP_MS, 100.0 + step % (4 * DAY)
        figures = (1.0, 7.0, load, 2 * load)
        if step < 4 * DAY:
            result.append(old(time_ms, "orders.v1", 0, *figures))
        else:
            result.append(new(time_ms, "orders.v1", 0, *figures, 3.0, 4.0, 5.0, 6.0, 0.0))
    return result


def test_a_history_without_days_begins_with_the_samples_of_cruise_control(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    # A day is over some minutes after midnight.
    now = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=LATE_S)
    midnight = now.replace(hour=0, minute=0, second=0)
    records = samples_until(int(midnight.timestamp()) * 1000)
    local_cluster.create_topic(STORE, [[1], [2]], {"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": local_cluster.bootstrap})
    for record in [*records, b"?"]:
        producer.produce(STORE, record)
    producer.flush(30)

    settings = CollectorSettings(
        state_dir=tmp_path,
        cache_dir=default_cache_dir(),
        history=HistorySettings(sample_store=STORE),
    )
    with Collector(Connection(local_cluster.bootstrap), settings) as watcher:
        snapshot = watcher.wait(PATIENCE_S)
        home = tmp_path / "clusters" / snapshot.header.cluster_id
        weeks = home / "hours" / "weeks"
        wait_until((weeks / "_SUCCESS").exists)
    loads, _ = decode(pa.array(records[: DAYS * DAY * 4]))
    assert same(compacted(home), in_order(hourly(loads)))
    assert len(list((home / "hours").glob("date=*"))) == DAYS
    assert pq.read_table(weeks)["topic"].to_pylist() == ["orders.v1"]

"""Reports of a real AutoMQ, compared with traffic of known rates."""

import time
from pathlib import Path

import numpy as np
import pytest

from clients.connection import Connection
from clients.jvm.jars import default_cache_dir
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.reports.report_columns import AUTOMQ
from collector.spark.vectors import ORIGINS
from model.ids import PartitionId, TopicName
from model.snapshot.snapshot import Resource, Snapshot
from tests.support.automq import NODES, AutoMQCluster
from tests.support.collector.topic_traffic import RECORD, Traffic
from tests.support.collector.waiting import PATIENCE_S

pytestmark = [pytest.mark.automq, pytest.mark.spark]
TOPIC = "reports.shared"
RATES = {0: 100, 1: 200, 2: 400}
"""Records per second; consumers commit nothing, so only AutoMQ knows of them."""


def loads(result: Snapshot, resource: Resource) -> np.ndarray[tuple[int], np.dtype]:
    rows = [result.row_of[PartitionId(TopicName(TOPIC), p)] for p in RATES]
    column = result.header.resources.index(resource)
    return result.partitions.loads[rows, column]


def sources_of_bytes_out(watcher: Collector) -> set[str]:
    rows = [r for r in watcher.vectors.to_pylist() if r["topic"] == TOPIC]
    return {ORIGINS[r["out_by"]] for r in rows}


def test_bytes_out_without_group_commits_are_those_that_automq_reports(
    automq_cluster: AutoMQCluster, tmp_path: Path
) -> None:
    automq_cluster.create_topic(TOPIC, [[0], [1], [2]])
    settings = CollectorSettings(state_dir=tmp_path, cache_dir=default_cache_dir())
    connection = Connection(automq_cluster.bootstrap)
    true = np.array(list(RATES.values())) * len(RECORD)
    with (
        Traffic(automq_cluster.bootstrap, TOPIC, RATES),
        Collector(connection, settings) as watcher,
    ):
        result = watcher.wait(PATIENCE_S)
        end = time.monotonic() + PATIENCE_S
        while not all(
            np.allclose(loads(result, r), true, rtol=0.1)
            for r in (Resource.NET_IN, Resource.NET_OUT)
        ):
            assert time.monotonic() < end, (
                loads(result, Resource.NET_IN),
                loads(result, Resource.NET_OUT),
                watcher.reporters.states(),
            )
            time.sleep(1)
            result = watcher.wait(PATIENCE_S)
        (state,) = [s for s in watcher.reporters.states() if s.source == AUTOMQ]
        known = sources_of_bytes_out(watcher)
    assert known == {AUTOMQ}
    assert (state.why, state.silent, state.left_out) == ("", (), {})
    assert state.records >= NODES

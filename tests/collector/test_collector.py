import socket
import time
from pathlib import Path

import pytest

from clients.connection import Connection
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from model.errors import ClusterUnreachable
from tests.support.collector.sample_rows import cluster, topic


def collector(folder: Path, bootstrap: str = "127.0.0.1:1") -> Collector:
    settings = CollectorSettings(state_dir=folder, cache_dir=folder)
    return Collector(Connection(bootstrap), settings)


def test_a_cluster_without_users_partitions_has_a_snapshot_at_once(tmp_path: Path) -> None:
    watcher = collector(tmp_path)
    watcher._see(cluster(topic("__own", [[1]])))
    result = watcher.snapshot()
    assert result is not None
    assert len(result.header.brokers) == 3
    watcher.close()


def test_brokers_are_present_before_any_load(tmp_path: Path) -> None:
    watcher = collector(tmp_path)
    assert watcher.brokers() == ()
    watcher._see(cluster(topic("orders", [[1]])))
    assert [b.id for b in watcher.brokers()] == [1, 2, 3]
    assert watcher.snapshot() is None
    watcher.close()


def test_an_unreachable_cluster_ends_the_watch_with_its_address(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with collector(tmp_path, address) as watcher:
        with pytest.raises(ClusterUnreachable, match=address):
            watcher.wait(300)
        assert isinstance(watcher.failure, ClusterUnreachable)


def test_waiting_ends_with_an_explanation(tmp_path: Path) -> None:
    watcher = collector(tmp_path)
    with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:1 was measured within 0 s"):
        watcher.wait(0)


def test_closing_at_any_moment_leaves_no_thread(tmp_path: Path) -> None:
    for delay_s in (0.0, 0.02, 0.1):
        watcher = collector(tmp_path)
        watcher.start()
        time.sleep(delay_s)
        watcher.close()
        assert not any(thread.is_alive() for thread in watcher._threads)
        assert watcher.spark_pid is None

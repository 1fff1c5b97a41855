import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyarrow.compute as pc
import pytest

from clients.connection import Connection
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.samples import SAMPLES
from collector.spark.vectors import concatenate, load_vectors
from model.errors import ClusterUnreachable
from tests.support.collector.sample_rows import START_MS, cluster, figures, sample, table, topic

if TYPE_CHECKING:
    from collector.spark.stream import LoadStream


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


def test_samples_from_the_future_are_the_explanation(tmp_path: Path) -> None:
    watcher = collector(tmp_path)
    assert watcher.ahead_s() == 0
    watcher._stream = cast("LoadStream", SimpleNamespace(ahead_s=75.0, stop=lambda: None))
    with pytest.raises(
        ClusterUnreachable, match=r"are 75\.0 s ahead of this .* compare the clocks"
    ):
        watcher.wait(0)
    watcher.close()


def test_a_clock_set_back_does_not_stop_the_first_loads(tmp_path: Path) -> None:
    settings = CollectorSettings(state_dir=tmp_path, cache_dir=tmp_path)
    now_s = [0.0]
    watcher = Collector(Connection("127.0.0.1:1"), settings, clock=lambda: now_s[0])
    watcher._see(cluster(topic("orders", [[1]])))
    for second in (*range(100, 106), *range(6)):
        now_s[0] = START_MS / 1000 + second
        watcher._measure_early(table([sample(second)]))
    assert watcher.vectors["time_ms"].to_pylist() == [START_MS + 5000]
    watcher.close()


def test_closing_at_any_moment_leaves_no_thread(tmp_path: Path) -> None:
    for delay_s in (0.0, 0.02, 0.1):
        watcher = collector(tmp_path)
        watcher.start()
        time.sleep(delay_s)
        watcher.close()
        assert not any(thread.is_alive() for thread in watcher._threads)
        assert watcher.spark_pid is None


def test_loads_that_an_earlier_process_left_to_read_replace_no_newer_ones(tmp_path: Path) -> None:
    """Not even where the job gives it after a whole window of samples."""
    settings = CollectorSettings(state_dir=tmp_path, cache_dir=tmp_path, window_s=5.0)
    now_s = [START_MS / 1000]
    watcher = Collector(Connection("127.0.0.1:1"), settings, clock=lambda: now_s[0])
    watcher._see(cluster(topic("orders", [[1]])))
    watcher._sampled = True
    samples = [table([sample(second)]) for second in range(6)]
    for second, taken in enumerate(samples):
        now_s[0] = START_MS / 1000 + second
        watcher._measure_early(taken)
    newest = watcher.snapshot()
    assert newest is not None
    expected = load_vectors(concatenate(samples, SAMPLES), watcher.window)
    at = expected.schema.get_field_index("time_ms")
    left = expected.set_column(at, "time_ms", pc.subtract(expected["time_ms"], 240_000))
    watcher._take(samples[0], left)
    with pytest.raises(ClusterUnreachable):
        watcher.wait(0)
    assert watcher.snapshot() is newest
    watcher._take(samples[-1], expected)
    assert watcher.wait(0).header.taken_at_ms == newest.header.taken_at_ms
    watcher.close()


def test_loads_of_a_whole_window_are_enough_where_spark_is_not_asked_for(tmp_path: Path) -> None:
    settings = CollectorSettings(state_dir=tmp_path, cache_dir=tmp_path, window_s=5.0, early=True)
    now_s = [START_MS / 1000]
    watcher = Collector(Connection("127.0.0.1:1"), settings, clock=lambda: now_s[0])
    spark = threading.Thread(target=watcher._run_spark)
    spark.start()
    watcher._see(cluster(topic("orders", [[1]])))
    watcher._sampled = True
    for second in range(6):
        now_s[0] = START_MS / 1000 + second
        watcher._measure_early(table([sample(second)]))
        if second < 4:
            with pytest.raises(ClusterUnreachable):
                watcher.wait(0)
    assert watcher.wait(0) is watcher.snapshot()
    assert spark.is_alive()
    watcher.close()
    spark.join(60)
    assert not spark.is_alive()
    assert watcher.spark_pid is None


def test_the_first_loads_do_not_wait_for_spark(tmp_path: Path) -> None:
    """They are those that the streaming job computes; only commands wait for the job itself."""
    settings = CollectorSettings(state_dir=tmp_path, cache_dir=tmp_path)
    now_s = [START_MS / 1000]
    watcher = Collector(Connection("127.0.0.1:1"), settings, clock=lambda: now_s[0])
    watcher._see(cluster(topic("orders", [[1]])))
    samples = [table([sample(second)]) for second in range(6)]
    for second, taken in enumerate(samples):
        now_s[0] = START_MS / 1000 + second
        assert (watcher.snapshot() is None) is (second <= 4)
        watcher._measure_early(taken)
    expected = load_vectors(concatenate(samples, SAMPLES), watcher.window)
    assert figures(watcher.vectors) == figures(expected)
    watcher._sampled = True
    with pytest.raises(ClusterUnreachable):
        watcher.wait(0)
    newest = watcher.snapshot()
    # The job is late: newer loads stay.
    at = expected.schema.get_field_index("time_ms")
    older = expected.set_column(at, "time_ms", pc.subtract(expected["time_ms"], 3000))
    watcher._take(samples[2], older)
    assert watcher.wait(0) is newest
    watcher._take(samples[-1], expected)
    assert watcher.wait(0) is watcher.snapshot()
    newest = watcher.snapshot()
    watcher._measure_early(samples[-1])
    assert watcher.snapshot() is newest
    watcher.close()

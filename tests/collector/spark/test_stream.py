"""The streaming job in a real Spark, over a spool of synthetic samples."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.history.vector_files import VectorFiles
from collector.spark import stream as stream_module
from collector.spark.session import OPENED
from collector.spark.stream import LoadStream, TopicSource
from collector.spark.vectors import load_vectors
from collector.spool import RECORDS, Spool
from model.errors import ConfigError, PlimsollError
from tests.support.collector.history_store import check_compaction
from tests.support.collector.sample_rows import START_MS, WINDOW, figures, rows, sample, table
from tests.support.collector.spool_streams import spool_stream
from tests.support.collector.waiting import PATIENCE_S, eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@contextmanager
def running(
    session: "SparkSession", folder: Path, take: Callable[[pa.Table, pa.Table], None]
) -> Iterator[LoadStream]:
    stream = spool_stream(session, folder, take)
    thread = threading.Thread(target=stream.run)
    thread.start()
    try:
        yield stream
    finally:
        stream.stop()
        thread.join()


class Taken:
    """Published vectors; waits until one of a time appears."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self._came = threading.Condition()

    def __call__(self, _samples: pa.Table, vectors: pa.Table) -> None:
        with self._came:
            self.tables.append(vectors)
            self._came.notify_all()

    def until(self, second: int) -> pa.Table:
        """The vectors whose newest sample is of that second."""
        newest_ms = START_MS + 1000 * second

        def there() -> bool:
            times = self.tables[-1]["time_ms"].to_pylist() if self.tables else []
            return newest_ms in times

        with self._came:
            assert self._came.wait_for(there, PATIENCE_S)
            return self.tables[-1]


def test_the_job_gives_the_same_result_as_numpy(session: "SparkSession", tmp_path: Path) -> None:
    spool, taken = Spool(tmp_path / "spool"), Taken()
    with running(session, tmp_path, taken):
        for first in range(0, 24, 3):
            spool.write(rows(first, first + 3))
        result = taken.until(23)
    assert figures(result) == figures(load_vectors(rows(0, 24), WINDOW))
    assert result.num_rows == 4


def test_a_restart_continues_without_reading_twice(session: "SparkSession", tmp_path: Path) -> None:
    spool, before, after = Spool(tmp_path / "spool"), Taken(), Taken()
    spool.write(rows(0, 6))
    with running(session, tmp_path, before):
        before.until(5)
        eventually((tmp_path / "checkpoint" / "commits" / "0").exists)
    spool.write(rows(6, 12))
    with running(session, tmp_path, after):
        result = after.until(11)
    assert figures(result) == figures(load_vectors(rows(0, 12), WINDOW))
    assert len(after.tables) == 1
    remaining = VectorFiles(tmp_path / "history", every_ms=1).read(0, START_MS + 60_000)
    assert remaining["time_ms"].to_pylist() == [START_MS + 5000] * 4 + [START_MS + 11_000] * 4


def test_a_repeated_batch_counts_once(session: "SparkSession", tmp_path: Path) -> None:
    spool, taken = Spool(tmp_path / "spool"), Taken()
    spool.write(rows(0, 6))
    with running(session, tmp_path, taken):
        taken.until(5)
    for commit in (tmp_path / "checkpoint" / "commits").iterdir():
        commit.unlink()
    with running(session, tmp_path, taken):
        spool.write(rows(6, 12))
        result = taken.until(11)
    assert figures(result) == figures(load_vectors(rows(0, 12), WINDOW))
    remaining = VectorFiles(tmp_path / "history", every_ms=1).read(0, START_MS + 60_000)
    assert remaining.num_rows == 8


def test_records_that_are_not_samples_are_omitted_and_named(
    session: "SparkSession", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    taken = Taken()
    folder = tmp_path / "spool"
    folder.mkdir()
    stamp = pa.array([0, 0], RECORDS[1].type)
    bad = pa.table([pa.array([b"\x01\x02", b"\x07" * 90]), stamp], schema=RECORDS)
    pq.write_table(bad, folder / f"{int(1000 * time.time())}-9.parquet")
    Spool(folder).write(rows(0, 6))
    with caplog.at_level(logging.WARNING), running(session, tmp_path, taken):
        result = taken.until(5)
    assert figures(result) == figures(load_vectors(rows(0, 6), WINDOW))
    assert "2 of 26 records are not samples" in caplog.text
    assert re.search("'short': 1.*'version': 1", caplog.text)


def test_a_job_that_keeps_failing_reports_it(
    session: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "_RETRY_S", 0)
    tries: list[int] = []

    def fail(_samples: pa.Table, vectors: pa.Table) -> None:
        tries.append(vectors.num_rows)
        raise OSError("the disk is full")

    Spool(tmp_path / "spool").write(rows(0, 6))
    stream = spool_stream(session, tmp_path, fail)
    with pytest.raises(PlimsollError, match="streaming job ended"):
        stream.run()
    assert len(tries) == 3


def test_a_spark_without_the_connector_names_the_remedy(
    session: "SparkSession", tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    stream = spool_stream(session, tmp_path, source=TopicSource(options, "samples"))
    with pytest.raises(ConfigError, match="no connector to Kafka"):
        stream.run()


def test_opened_packages_match_those_that_spark_lists(session: "SparkSession") -> None:
    jvm: Any = session.sparkContext._jvm
    options = jvm.org.apache.spark.launcher.JavaModuleOptions
    listed = re.findall(r"java.base/([\w.]+)=", options.defaultModuleOptions())
    assert sorted(listed) == sorted(OPENED)


def test_files_without_samples_are_skipped(session: "SparkSession", tmp_path: Path) -> None:
    """Of an older schema, of another type, or no Parquet at all."""
    spool, taken = Spool(tmp_path / "spool"), Taken()
    others = {"records": [b"\x01"], "value": [7.0]}
    with running(session, tmp_path, taken):
        for name, values in others.items():
            part = tmp_path / f"{name}.parquet"
            pq.write_table(pa.table({name: values}), part)
            part.rename(spool.folder / f"{int(1000 * time.time())}-{name}.parquet")
        (spool.folder / f"{int(1000 * time.time())}-cut.parquet").write_bytes(b"PAR1")
        for first in range(0, 12, 3):
            spool.write(rows(first, first + 3))
        result = taken.until(11)
    assert figures(result) == figures(load_vectors(rows(0, 12), WINDOW))


def test_samples_of_a_clock_that_is_ahead_are_reported_and_hide_no_others(
    session: "SparkSession", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool, taken = Spool(tmp_path / "spool"), Taken()
    ahead = table([sample(time.time() - START_MS / 1000 + 3000, topic="ahead")])
    with running(session, tmp_path, taken) as stream:
        spool.write(ahead)
        eventually(lambda: stream.ahead_s > 0)
        assert 1000 < stream.ahead_s <= 3000
        for first in range(0, 12, 3):
            spool.write(rows(first, first + 3))
        result = taken.until(11)
    assert stream.ahead_s == 0
    assert "ahead" not in result["topic"].to_pylist()
    assert "1 of" in caplog.text
    assert "set the clocks of all hosts" in caplog.text


def test_days_compacted_by_spark_match_those_of_the_kernels(
    session: "SparkSession", tmp_path: Path
) -> None:
    check_compaction(session, tmp_path)

"""A recorded state replayed through a real Spark gives the recorded vectors."""

import itertools
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.assemble import assemble, newest_vectors
from collector.recorded_state import Recorder, canonical, read_recording
from collector.samples import SAMPLES
from collector.spark.arrow_transfer import to_bytes
from collector.spark.vectors import OLDEST, VECTORS, Window, load_vectors
from collector.spool import Spool
from collector.state_replay import Replayed, replay_in
from model.errors import ConfigError
from model.snapshot.file import read_snapshot, write_snapshot
from model.snapshot.pseudonyms import Pseudonyms
from tests.support import cli_offline
from tests.support.collector.sample_rows import START_MS, cluster, sample, table, topic
from tests.support.collector.spool_streams import spool_stream
from tests.support.collector.waiting import PATIENCE_S
from tests.support.paths import FIXTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WINDOW = Window(window_ms=8_000, fan_out=1.5)
NAMES = Pseudonyms(b"a key of 16 bytes or more")
TOPICS = ("orders", "audit", "grades.v1", "__consumer_offsets")
CUTS = (0, 1, 2, 5, 6, 11, 12, 20, 21)
"""Seconds at which batches end; the last one is in the middle of a window."""


def observed(first: int, end: int) -> pa.Table:
    """Irregular times, rates, sizes and commits, and consumers that are not visible."""
    dice = np.random.default_rng(first)
    return table(
        sample(
            second + jitter,
            topic=name,
            partition=number,
            groups=(number % 3) - 1,
            latest=int((second + jitter) * 1000 / (3 + number)),
            local_bytes=int((second + jitter) * 77_777 / (1 + number)),
            group_offsets=int(second * 313.7 * (1 + number)) if number % 3 else -1,
        )
        for second in range(first, end)
        for name in TOPICS
        for number in range(7)
        for jitter in [float(dice.uniform(0, 0.4))]
    )


@dataclass
class Live:
    """A job that was recorded twice, once with pseudonyms."""

    folder: Path
    vectors: list[pa.Table] = field(default_factory=list)
    """Vectors as the running job published them."""


@pytest.fixture(scope="module")
def live(session: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Live:
    """Write to the spool in steps, each a batch."""
    result = Live(tmp_path_factory.mktemp("live"))
    came = threading.Semaphore(0)
    plain = Recorder(result.folder / "plain")
    hidden = Recorder(result.folder / "hidden", NAMES)

    def take(samples: pa.Table, vectors: pa.Table) -> None:
        result.vectors.append(vectors)
        plain.add(samples, vectors)
        hidden.add(samples, vectors)
        came.release()

    spool = Spool(result.folder / "spool")
    stream = spool_stream(session, result.folder, take, window=WINDOW)
    thread = threading.Thread(target=stream.run)
    thread.start()
    try:
        for first, end in itertools.pairwise(CUTS):
            spool.write(observed(first, end))
            assert came.acquire(timeout=PATIENCE_S)
    finally:
        stream.stop()
        thread.join()
    newest = VECTORS.empty_table()
    for vectors in result.vectors:
        newest = newest_vectors(newest, vectors)
    state = cluster(*(topic(name, [[1], [2], [3]] * 2 + [[1]]) for name in TOPICS))
    snapshot = assemble(state, newest, window_s=8.0)
    with plain, hidden:
        plain.finish(snapshot, WINDOW)
        hidden.finish(snapshot, WINDOW)
    return result


def recorded(state: Path) -> list[bytes]:
    recording = read_recording(state)
    return [to_bytes(recording.vectors(batch)) for batch in recording.batches]


def snapshot_bytes(state: Path, folder: Path) -> bytes:
    """Vectors of a recorded state, as they are written today."""
    write_snapshot(folder / "recorded.json", read_snapshot(state / "snapshot.json"))
    return (folder / "recorded.json").read_bytes()


def check(state: Path, result: Replayed, folder: Path) -> None:
    """All batches, and the snapshot, byte for byte."""
    assert result.as_recorded == result.batches == len(read_recording(state).batches)
    write_snapshot(folder / "again.json", result.snapshot)
    assert (folder / "again.json").read_bytes() == snapshot_bytes(state, folder)


def test_a_replay_gives_the_vectors_of_the_live_job_byte_by_byte(
    session: "SparkSession", live: Live, tmp_path: Path
) -> None:
    state = live.folder / "plain"
    assert recorded(state) == [to_bytes(canonical(v)) for v in live.vectors]
    check(state, replay_in(session, read_recording(state), tmp_path), tmp_path)


def test_the_command_replays_a_recorded_real_cluster(tmp_path: Path) -> None:
    """Run in a separate process, since each can have only one Spark."""
    state = FIXTURES / "recorded"
    run = cli_offline.plimsoll(tmp_path, "replay", str(state), "--out", "again.json")
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert "replayed; the loads equal the recorded ones, byte for byte" in run.stderr
    assert (tmp_path / "again.json").read_bytes() == snapshot_bytes(state, tmp_path)
    assert {p.name for p in (tmp_path / "state").iterdir()} == {"spark.log"}


def test_a_synthetic_cluster_is_replayed_as_a_real_one_is(
    session: "SparkSession", tmp_path: Path
) -> None:
    state = FIXTURES / "synthetic"
    check(state, replay_in(session, read_recording(state), tmp_path), tmp_path)


def test_the_vectors_match_numpy_on_all_samples_so_far(live: Live) -> None:
    for vectors, end in zip(live.vectors, CUTS[1:], strict=True):
        so_far = pa.concat_tables(
            [observed(first, until) for first, until in itertools.pairwise(CUTS) if until <= end]
        )
        assert to_bytes(canonical(vectors)) == to_bytes(load_vectors(so_far, WINDOW))
    assert [v.num_rows for v in live.vectors[-2:]] == [28, 28]


def test_pseudonyms_do_not_change_figures(
    session: "SparkSession", live: Live, tmp_path: Path
) -> None:
    state = live.folder / "hidden"
    renamed = [
        vectors.set_column(
            0,
            VECTORS.field("topic"),
            pa.array(map(NAMES.topic, vectors["topic"].to_pylist()), pa.string()),
        )
        for vectors in live.vectors
    ]
    assert recorded(state) == [to_bytes(canonical(v)) for v in renamed]
    check(state, replay_in(session, read_recording(state), tmp_path), tmp_path)


def harmed(live: Live, folder: Path, column: str, value: object) -> Path:
    """The plain state with one value of its last batch changed.

    Its vectors have only the columns that all recordings have.
    """
    state = folder / "harmed"
    state.mkdir()
    for path in (live.folder / "plain").iterdir():
        (state / path.name).write_bytes(path.read_bytes())
    result = pq.ParquetFile(state / "samples.parquet").read()
    values = result[column].to_pylist()
    values[-1] = value
    at = result.column_names.index(column)
    column_type = result.schema.field(column).type
    changed = result.set_column(at, column, pa.array(values, column_type))
    pq.write_table(changed, state / "samples.parquet")
    vectors = pq.ParquetFile(state / "vectors.parquet").read()
    pq.write_table(vectors.select([*OLDEST, "batch"]), state / "vectors.parquet")
    return state


def test_a_replay_explains_an_unusable_later_batch(
    session: "SparkSession", live: Live, tmp_path: Path
) -> None:
    state = harmed(live, tmp_path, "latest", -7)
    message = re.escape("samples.parquet contains an invalid sample in batch 7")
    with pytest.raises(ConfigError, match=message):
        replay_in(session, read_recording(state), tmp_path)


def test_changed_samples_give_other_vectors_than_recorded(
    session: "SparkSession", live: Live, tmp_path: Path
) -> None:
    state = harmed(live, tmp_path, "latest", 10**6)
    result = replay_in(session, read_recording(state), tmp_path)
    assert result.as_recorded == len(CUTS) - 2


def test_a_recorded_file_of_one_group_of_rows_is_read_too(live: Live, tmp_path: Path) -> None:
    """The file as other tools may rewrite it."""
    state = harmed(live, tmp_path, "flags", 0)
    assert pq.ParquetFile(state / "samples.parquet").num_row_groups == 1
    recording = read_recording(state)
    assert recording.samples(7).equals(observed(20, 21))
    assert recording.samples(0).schema == SAMPLES
    assert recording.state.begun_ms >= START_MS

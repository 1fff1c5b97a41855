"""The collector's files: spool, history, and their folder."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clients.jvm.java import find_java
from collector.history.vector_files import KEPT_DAYS, VectorFiles
from collector.samples import decode
from collector.spark.batching import EAGER_SAMPLES, SETTLED_SAMPLES, SampleBatch
from collector.spark.deployment import LOCAL
from collector.spark.session import Spark
from collector.spark.vectors import OLDEST, PROBE, VECTORS
from collector.spool import KEPT_S, Spool
from collector.state_dir import CHECKPOINT_AGE_S, claim, discard_old, scratch
from model.errors import ClusterUnreachable, ConfigError
from tests.support.collector.sample_rows import START_MS, figures, load_table, sample, table, vector

DAY_MS = 86_400_000


def vectors(time_ms: int) -> pa.Table:
    return load_table([vector(time_ms=time_ms)])


def test_the_spool_keeps_records_that_can_be_decoded(tmp_path: Path) -> None:
    rows = table([sample(1), sample(2)])
    Spool(tmp_path / "spool").write(rows)
    (path,) = (tmp_path / "spool").iterdir()
    result = pq.ParquetFile(path).read()
    assert result.column_names == ["value", "timestamp"]
    assert decode(result["value"]).table.equals(rows)


def test_the_spool_drops_old_records(tmp_path: Path) -> None:
    now_s = 1e9
    spool = Spool(tmp_path, lambda: now_s)
    spool.write(table([sample(1)]))
    now_s += KEPT_S + 1
    spool.write(table([sample(2)]))
    assert len(list(tmp_path.iterdir())) == 2
    spool.prune()
    assert len(list(tmp_path.iterdir())) == 1


def test_leftovers_of_interrupted_writes_are_removed_in_time(tmp_path: Path) -> None:
    now_s = 1e9
    spool = Spool(tmp_path, lambda: now_s)
    for name in (".1000000000000-7.parquet.part", ".1000000000000-7.parquet", "notes.parquet"):
        (tmp_path / name).touch()
    spool.prune()
    assert len(list(tmp_path.iterdir())) == 3
    now_s += KEPT_S + 1
    spool.prune()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.parquet"]


def test_a_write_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_the_disk(_table: pa.Table, path: Path) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    spool = Spool(tmp_path)
    monkeypatch.setattr(pq, "write_table", fill_the_disk)
    with pytest.raises(ConfigError, match="No space left on device"):
        spool.write(table([sample(1)]))
    assert not list(tmp_path.iterdir())


def test_a_spool_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file"):
        Spool(tmp_path / "file" / "spool")


def test_samples_are_written_one_by_one_at_first_and_together_later() -> None:
    written: list[int] = []

    class Counting:
        def write(self, samples: pa.Table) -> None:
            written.append(samples.num_rows)

        def close(self) -> None:
            """Nothing to close."""

    batch = SampleBatch(Counting())
    for second in range(EAGER_SAMPLES + 2 * SETTLED_SAMPLES + 1):
        batch.add(table([sample(second)]))
    assert written == [1] * EAGER_SAMPLES + [SETTLED_SAMPLES] * 2


def test_after_a_change_of_load_each_sample_is_written_at_once(tmp_path: Path) -> None:
    hurried = False
    batch = SampleBatch(Spool(tmp_path), lambda: hurried)
    settled = EAGER_SAMPLES + SETTLED_SAMPLES
    written = [batch.add(table([sample(second)])) for second in range(settled + 1)]
    assert written[EAGER_SAMPLES:] == [0, 0, SETTLED_SAMPLES, 0]
    hurried = True
    # The one that waited goes along.
    assert [batch.add(table([sample(settled + more)])) for more in (1, 2)] == [2, 1]


def test_after_a_failed_write_samples_are_written_one_by_one_until_one_succeeds() -> None:
    class Failing:
        works = True

        def write(self, samples: pa.Table) -> None:
            if not self.works:
                raise ClusterUnreachable("no answer")

        def close(self) -> None:
            """Nothing to close."""

    sink = Failing()
    batch = SampleBatch(sink)
    rows = iter(range(1000))
    while batch.add(table([sample(next(rows))])):
        pass
    assert next(rows) == EAGER_SAMPLES + 1
    sink.works = False
    batch.add(table([sample(next(rows))]))
    # Each shows that nothing arrives: none is held back, which would look like success.
    for _ in range(2 * EAGER_SAMPLES):
        with pytest.raises(ClusterUnreachable):
            batch.add(table([sample(next(rows))]))
    sink.works = True
    assert batch.add(table([sample(next(rows))])) == 1


def test_history_is_read_back_oldest_first(tmp_path: Path) -> None:
    history = VectorFiles(tmp_path, every_ms=15_000)
    times = [START_MS, START_MS + DAY_MS, START_MS + 2 * DAY_MS]
    for batch, time_ms in enumerate(times):
        history.append(vectors(time_ms), "q", batch)
    result = VectorFiles(tmp_path, every_ms=15_000).read(times[0], times[1])
    assert result["time_ms"].to_pylist() == times[:2]
    assert result.schema == VECTORS
    assert {p.name for p in tmp_path.iterdir()} == {
        "date=2023-11-14",
        "date=2023-11-15",
        "date=2023-11-16",
    }


def test_history_from_before_there_were_reporters_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "date=2023-11-14"
    folder.mkdir()
    pq.write_table(vectors(START_MS).select(OLDEST), folder / "q-1.parquet")
    (result,) = figures(VectorFiles(tmp_path, every_ms=1).read(START_MS, START_MS))
    assert result == {
        **figures(vectors(START_MS))[0],
        **dict.fromkeys(("records_in", "cpu", "requests")),
        **dict.fromkeys(("in_by", "out_by", "total_by"), PROBE),
    }


def test_an_unrelated_history_file_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "date=2023-11-14"
    folder.mkdir()
    pq.write_table(vectors(START_MS).drop(["net_in"]), folder / "q-1.parquet")
    assert VectorFiles(tmp_path, every_ms=1).read(START_MS, START_MS).num_rows == 0


def test_a_batch_that_is_repeated_after_a_restart_counts_once(tmp_path: Path) -> None:
    for _ in range(2):
        VectorFiles(tmp_path, every_ms=15_000).append(vectors(START_MS), "q", 4)
    result = VectorFiles(tmp_path, every_ms=1).read(START_MS, START_MS + 1)
    assert result.num_rows == 1


def test_history_keeps_one_batch_per_window(tmp_path: Path) -> None:
    history = VectorFiles(tmp_path, every_ms=15_000)
    for batch in range(31):
        history.append(vectors(START_MS + 1000 * batch), "q", batch)
    assert history.read(START_MS, START_MS + DAY_MS).num_rows == 3


def test_old_days_are_removed(tmp_path: Path) -> None:
    history = VectorFiles(tmp_path, every_ms=1)
    for day in range(KEPT_DAYS + 3):
        history.append(vectors(START_MS + day * DAY_MS), "q", day)
    assert len(list(tmp_path.iterdir())) == KEPT_DAYS + 1


def test_a_damaged_history_file_is_ignored(tmp_path: Path) -> None:
    history = VectorFiles(tmp_path, every_ms=1)
    history.append(vectors(START_MS), "q", 0)
    (tmp_path / "date=2023-11-14" / "q-1.parquet").write_bytes(b"PAR1 torn")
    assert history.read(START_MS, START_MS).num_rows == 1


def test_a_second_watcher_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    first = claim(tmp_path, "c/1")
    second = claim(tmp_path, "c/1")
    assert first.path.parent == tmp_path / "clusters"
    assert second.path.parent == first.path
    second.release()
    assert not second.path.exists()
    first.release()
    third = claim(tmp_path, "c/1")
    assert third.path == first.path
    third.release()


def test_an_unusable_state_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="PLIMSOLL_STATE_DIR"):
        claim(tmp_path / "file", "c1")
    with pytest.raises(ConfigError, match=r"file cannot be used .*PLIMSOLL_STATE_DIR"):
        Spark(find_java(), master=LOCAL, log_file=tmp_path / "file" / "spark.log")


def test_a_private_folder_is_removed_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path / "state", "replay-") as folder:
        (folder / "file").touch()
    assert list((tmp_path / "state").iterdir()) == []
    (tmp_path / "file").touch()
    with (
        pytest.raises(ConfigError, match=r"file cannot be used .*PLIMSOLL_STATE_DIR"),
        scratch(tmp_path / "file", "replay-"),
    ):
        pass


def test_a_collector_with_a_private_folder_leaves_the_shared_one_to_others(tmp_path: Path) -> None:
    apart = claim(tmp_path, "c1", apart=True)
    other = claim(tmp_path, "c1")
    assert (apart.kept, other.kept) == (False, True)
    apart.release()
    assert not apart.path.exists()
    other.release()


def test_a_checkpoint_is_replaced_after_a_day(tmp_path: Path) -> None:
    begun = tmp_path / "spool" / "metadata"
    begun.parent.mkdir()
    begun.touch()
    os.utime(begun, (1e9, 1e9))
    discard_old(begun.parent, 1e9 + CHECKPOINT_AGE_S - 1)
    assert begun.exists()
    discard_old(begun.parent, 1e9 + CHECKPOINT_AGE_S + 1)
    assert not begun.parent.exists()


@pytest.mark.parametrize("cluster_id", ["..", "../../escape", "."])
def test_no_cluster_id_escapes_the_state_folder(tmp_path: Path, cluster_id: str) -> None:
    folder = claim(tmp_path / "a" / "state", cluster_id)
    assert folder.path.parent == tmp_path / "a" / "state" / "clusters"
    folder.release()

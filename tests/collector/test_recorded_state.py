"""Recorded states in files: writing, reading, and rejection."""

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.assemble import assemble
from collector.parquet import MOST_ROWS
from collector.recorded_state import Recorder, canonical, read_recording
from collector.spark.arrow_transfer import to_bytes
from collector.spark.vectors import OLDEST, Window, load_vectors
from model import __version__
from model.errors import ConfigError
from model.snapshot.file import read_snapshot
from model.snapshot.pseudonyms import Pseudonyms
from model.snapshot.snapshot import LogDir, Snapshot
from tests.support.collector.sample_rows import START_MS, cluster, figures, sample, table, topic

WINDOW = Window(window_ms=15_000)
SECRET = "orders.acme-berlin"


def snapshot(vectors: pa.Table) -> Snapshot:
    state = cluster(topic(SECRET, [[1, 2]]), topic("__consumer_offsets", [[3]]))
    return assemble(state, vectors, window_s=15.0)


def samples(first: int, end: int) -> pa.Table:
    return table(
        sample(second, topic=name)
        for second in range(first, end)
        for name in (SECRET, "__consumer_offsets")
    )


def record(out: Path, names: Pseudonyms | None = None) -> Path:
    """A state of two batches, of 3 s and of 6 s."""
    with Recorder(out, names) as recorder:
        recorder.add(samples(0, 3), load_vectors(samples(0, 3), WINDOW))
        vectors = load_vectors(samples(0, 9), WINDOW)
        recorder.add(samples(3, 9), vectors)
        recorder.finish(snapshot(vectors), WINDOW)
    return out


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return record(tmp_path / "state")


def all_bytes(folder: Path) -> bytes:
    """Every byte of the folder, and the content of its compressed columns."""
    raw = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    columns = [pq.ParquetFile(p).read() for p in sorted(folder.glob("*.parquet"))]
    text = repr([t.to_pylist() for t in columns] + [t.schema.metadata for t in columns])
    return raw + text.encode() + folder.name.encode()


def test_a_recorded_state_reads_back(state: Path) -> None:
    recording = read_recording(state)
    assert recording.batches == (0, 1)
    assert recording.samples(0).equals(samples(0, 3))
    assert recording.samples(1).equals(samples(3, 9))
    assert recording.vectors(0).num_rows == 0
    vectors = canonical(load_vectors(samples(0, 9), WINDOW))
    assert to_bytes(recording.vectors(1)) == to_bytes(vectors)
    assert (recording.state.begun_ms, recording.state.ended_ms) == (START_MS, START_MS + 8000)
    assert (recording.state.window_ms, recording.state.fan_out) == (15_000, 1.0)
    assert recording.state.plimsoll == __version__
    assert recording.snapshot.ids == snapshot(vectors).ids


def test_a_recording_from_before_there_were_reporters_is_read(state: Path) -> None:
    path = state / "vectors.parquet"
    old = pq.ParquetFile(path).read().select([*OLDEST, "batch"])
    pq.write_table(old, path)
    recording = read_recording(state).vectors(1)
    vectors = canonical(load_vectors(samples(0, 9), WINDOW))
    assert to_bytes(recording) == to_bytes(vectors.select(OLDEST))


def test_only_the_folder_remains(state: Path) -> None:
    assert [p.name for p in state.parent.iterdir()] == ["state"]
    names = {"state.json", "snapshot.json", "samples.parquet", "vectors.parquet"}
    assert {p.name for p in state.iterdir()} == names


def test_an_unfinished_recording_leaves_nothing(tmp_path: Path) -> None:
    with Recorder(tmp_path / "state") as recorder:
        recorder.add(samples(0, 3), load_vectors(samples(0, 3), WINDOW))
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_batch_that_comes_too_late_is_not_written(tmp_path: Path) -> None:
    vectors = load_vectors(samples(0, 9), WINDOW)
    with Recorder(tmp_path / "state") as recorder:
        recorder.add(samples(0, 9), vectors)
        recorder.finish(snapshot(vectors), WINDOW)
        recorder.add(samples(9, 12), vectors)
    assert read_recording(tmp_path / "state").batches == (0,)


def test_no_original_name_remains(tmp_path: Path) -> None:
    folder = record(tmp_path / "state", Pseudonyms(b"k" * 16))
    plain = record(tmp_path / "plain")
    result = all_bytes(folder)
    for name in (SECRET, "acme", '"c1"', f"id-{SECRET}", "r1", str(tmp_path)):
        assert name.encode() not in result
    assert SECRET.encode() in all_bytes(plain)
    recording = read_recording(folder)
    assert recording.state.anonymised
    (name,) = {str(t.name) for t in recording.snapshot.header.topics} - {"__consumer_offsets"}
    assert set(recording.samples(1)["topic"].to_pylist()) == {"__consumer_offsets", name}


def test_pseudonyms_are_the_same_for_the_same_key(tmp_path: Path) -> None:
    def made(out: str, key: bytes) -> bytes:
        folder = record(tmp_path / out, Pseudonyms(key))
        return (folder / "snapshot.json").read_bytes()

    assert made("a", b"k" * 16) == made("b", b"k" * 16)
    assert made("c", b"other" * 4) != made("d", b"k" * 16)


def test_only_names_change_in_a_recorded_state(tmp_path: Path) -> None:
    names = Pseudonyms(b"k" * 16)
    plain = read_recording(record(tmp_path / "plain"))
    hidden = read_recording(record(tmp_path / "hidden", names))
    renamed = [row | {"topic": names.topic(row["topic"])} for row in figures(plain.vectors(1))]
    result = figures(hidden.vectors(1))
    assert sorted(result, key=repr) == sorted(renamed, key=repr)


def test_an_existing_folder_is_kept(state: Path) -> None:
    before = all_bytes(state)
    with pytest.raises(ConfigError, match="exists; name another folder, or remove"):
        Recorder(state)
    assert all_bytes(state) == before
    assert [p.name for p in state.parent.iterdir()] == ["state"]


def test_a_recording_in_progress_is_not_overwritten(tmp_path: Path) -> None:
    with (
        Recorder(tmp_path / "state"),
        pytest.raises(ConfigError, match=r"state\.partial exists: a state is being"),
    ):
        Recorder(tmp_path / "state")


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot make the folder .*missing"):
        Recorder(tmp_path / "missing" / "state")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit the size of files, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_failing_disk_is_reported_at_the_end(tmp_path: Path) -> None:
    vectors = load_vectors(samples(0, 9), WINDOW)
    with Recorder(tmp_path / "state") as recorder, files_of_at_most(1000):
        recorder.add(samples(0, 900), vectors)
        with pytest.raises(ConfigError, match=r"cannot write .*state: .*too large"):
            recorder.finish(snapshot(vectors), WINDOW)
    assert list(tmp_path.iterdir()) == []


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def scramble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(len(data[4:400]))
    path.write_bytes(data)


def without(name: str) -> Callable[[Path], None]:
    def drop(path: Path) -> None:
        pq.write_table(pq.ParquetFile(path).read().drop_columns(name), path)

    return drop


def emptied(path: Path) -> None:
    pq.write_table(pq.ParquetFile(path).read().slice(0, 0), path)


def as_text(path: Path) -> None:
    result = pq.ParquetFile(path).read()
    at = result.column_names.index("latest")
    message = pa.array(["many"] * len(result))
    pq.write_table(result.set_column(at, "latest", message), path)


def bloated(path: Path) -> None:
    """A few bytes that decompress to very many rows of one batch."""
    schema, rows = pq.read_schema(path), 1 << 20
    nulls = {field.name: pa.nulls(rows, field.type) for field in schema}
    zeros = {"batch": pa.array(np.zeros(rows, np.int32))}
    part = pa.table(nulls | zeros, schema=schema)
    with pq.ParquetWriter(path, schema) as out:
        for _ in range(MOST_ROWS // rows + 1):
            out.write_table(part)


def with_long_name(path: Path) -> None:
    table = pq.read_table(path)
    names = pa.array(["t" * 70_000] * len(table), pa.string())
    pq.write_table(table.set_column(0, "topic", names), path)


def with_fields(**fields: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


@pytest.mark.parametrize(
    ("name", "harm", "message"),
    [
        ("samples.parquet", Path.unlink, r"samples.parquet is missing; copy the whole"),
        ("samples.parquet", truncate, r"samples.parquet is not a Parquet file .* is truncated"),
        ("samples.parquet", scramble, r"samples.parquet is not a Parquet file"),
        ("samples.parquet", without("groups"), r"samples.parquet lacks .* groups: ano"),
        ("samples.parquet", without("batch"), r"samples.parquet lacks .* batch: anoth"),
        ("samples.parquet", emptied, r"samples.parquet holds no samples; record"),
        ("samples.parquet", as_text, r"samples.parquet is not a Parquet file of a rec"),
        ("samples.parquet", bloated, r"samples.parquet holds 17,825,792 rows, mo"),
        ("samples.parquet", with_long_name, r"batch 0 the name of a topic with more"),
        ("vectors.parquet", bloated, r"vectors.parquet holds 17,825,792 rows, more"),
        ("vectors.parquet", Path.unlink, r"vectors.parquet is missing"),
        ("vectors.parquet", truncate, r"vectors.parquet is not a Parquet file"),
        ("vectors.parquet", without("net_in"), r"vectors.parquet lacks .* net_in"),
        ("snapshot.json", truncate, r"snapshot.json is not a plimsoll.snapshot file"),
        ("snapshot.json", Path.unlink, r"cannot read .*snapshot.json: No such file"),
        ("state.json", Path.unlink, r"cannot read .*state.json: No such file"),
        ("state.json", truncate, r"state.json is not a plimsoll.state file"),
        ("state.json", with_fields(kind="plimsoll.plan"), r"not a plimsoll.state file \(its"),
        ("state.json", with_fields(schema_version="2.0"), r"has schema version 2.0; .* newer"),
        ("state.json", with_fields(schema_version="old"), r"the schema version 'old', not a"),
        ("state.json", with_fields(window_ms=0), r"window_ms: Input should be greater than 0"),
        ("state.json", with_fields(cluster_id="c2"), r"mixes two states: .*c1, .* of c2"),
    ],
)
def test_an_unusable_state_is_rejected_by_name(
    state: Path, name: str, harm: Callable[[Path], None], message: str
) -> None:
    harm(state / name)
    with pytest.raises(ConfigError, match=message):
        read_recording(state).samples(0)


@pytest.mark.parametrize(("column", "value"), [("latest", -7), ("topic", None), ("flags", 4711)])
def test_impossible_samples_are_rejected_with_their_batch(
    state: Path, column: str, value: object
) -> None:
    path = state / "samples.parquet"
    result = pq.ParquetFile(path).read()
    values = [*result[column].to_pylist()[:-1], value]
    field = result.schema.field(column)
    at = result.column_names.index(column)
    pq.write_table(result.set_column(at, field, pa.array(values, field.type)), path)
    recording = read_recording(state)
    assert recording.samples(0).num_rows == 6
    with pytest.raises(ConfigError, match="an invalid sample in batch 1: a figure is"):
        recording.samples(1)


def test_a_newer_minor_schema_is_read(state: Path) -> None:
    with_fields(schema_version="1.9", colour="blue")(state / "state.json")
    path = state / "samples.parquet"
    result = pq.ParquetFile(path).read()
    pq.write_table(result.append_column("colour", pa.nulls(len(result))), path)
    assert read_recording(state).samples(1).equals(samples(3, 9))


def test_a_path_that_is_not_a_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        with pytest.raises(ConfigError, match=f"{name} is not a recorded state; name a"):
            read_recording(tmp_path / name)


def test_directories_keep_their_replicas_under_pseudonyms(tmp_path: Path) -> None:
    """Rows keyed by their values, since pseudonyms change their order."""
    result = snapshot(load_vectors(samples(0, 9), WINDOW))
    dirs = tuple(LogDir(path=f"/data/{i}", capacity_bytes=1.0 + i) for i in range(5))
    brokers = tuple(b.model_copy(update={"log_dirs": dirs}) for b in result.header.brokers)
    homes = np.array([4, 1, -1])
    plain = Snapshot(
        result.header.model_copy(update={"brokers": brokers}),
        type(result.partitions)(
            **{
                name: getattr(result.partitions, name)
                for name in result.partitions.__slots__
                if name != "replica_dir"
            },
            replica_dir=homes,
        ),
    )
    names = Pseudonyms(b"k" * 16)
    hidden = names.snapshot(plain)
    paths = [d.path for d in hidden.header.brokers[0].log_dirs]
    assert paths == sorted(paths)

    def dir_capacities(state: Snapshot, name: str) -> list[float | None]:
        (row,) = [i for i, pid in enumerate(state.ids) if pid.topic == name]
        by_path = {d.path: d for b in state.header.brokers for d in b.log_dirs}
        places = state.log_dirs(row).values()
        return [by_path[p].capacity_bytes if p else None for p in places]

    for name in (SECRET, "__consumer_offsets"):
        assert dir_capacities(hidden, names.topic(name)) == dir_capacities(plain, name)


def test_a_recorded_snapshot_is_an_ordinary_one(state: Path) -> None:
    assert read_snapshot(state / "snapshot.json").header.cluster_id == "c1"

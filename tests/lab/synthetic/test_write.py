"""Synthetic states in files: reproducible bytes, a consistent history, and a plan."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from collector.recorded_state import canonical, read_recording
from collector.spark.arrow_transfer import to_bytes
from collector.spark.vectors import VECTORS, load_vectors
from lab.synthetic.load_curves import DAY_MS, HOUR_MS
from lab.synthetic.observe import END_MS, WINDOW, Order, SyntheticCluster
from lab.synthetic.write import write_synthetic
from model.errors import ConfigError
from model.snapshot.snapshot import Resource, StorageKind
from tests.support.lab.synthetic_orders import order


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def written(folder: Path, spec: Order) -> Path:
    write_synthetic(folder, spec)
    return folder


def test_equal_seeds_give_equal_bytes_and_other_seeds_different_ones(tmp_path: Path) -> None:
    first = contents(written(tmp_path / "first", order()))
    assert contents(written(tmp_path / "again", order())) == first
    other = contents(written(tmp_path / "other", order(seed=2)))
    assert other.keys() == first.keys()
    assert [name for name in first if first[name] == other[name]] == []


def test_the_history_has_every_partition_at_every_step_by_day(tmp_path: Path) -> None:
    state = written(tmp_path / "state", order(days=2))
    days = sorted(p.name for p in (state / "history").iterdir())
    assert days == ["date=2023-11-12", "date=2023-11-13", "date=2023-11-14"]
    result = pa.concat_tables(
        pa.parquet.ParquetFile(path).read()
        for path in sorted((state / "history").rglob("*.parquet"))
    )
    assert {*result.schema.names} <= {*VECTORS.names}
    made = SyntheticCluster(order())
    steps = [END_MS - HOUR_MS * i for i in reversed(range(48))]
    assert result.equals(pa.concat_tables([made.vectors(t) for t in steps]))


def test_the_loads_match_those_computed_from_the_samples(tmp_path: Path) -> None:
    """As in a recorded state, and as at the end of the history."""
    state = read_recording(written(tmp_path / "state", order()))
    samples = pa.concat_tables([state.samples(b) for b in state.batches])
    vectors = state.vectors(state.batches[-1])
    assert to_bytes(vectors) == to_bytes(canonical(load_vectors(samples, WINDOW)))
    end = SyntheticCluster(order()).vectors(END_MS)
    for name in ("net_in", "net_out", "disk", "total_bytes"):
        np.testing.assert_allclose(
            vectors[name].to_numpy(), end[name].to_numpy(), rtol=0.01, atol=500
        )
    assert state.snapshot.header.taken_at_ms == END_MS
    assert state.snapshot.header.sources[0].measured_share == 1.0


@pytest.mark.parametrize("storage", list(StorageKind))
def test_disk_loads_follow_the_storage_kind(tmp_path: Path, storage: StorageKind) -> None:
    spec = order(storage=storage, days=0)
    result = write_synthetic(tmp_path / "state", spec)
    disk = result.partitions.loads[:, result.header.resources.index(Resource.DISK)]
    assert (disk == 0).all() == (storage is StorageKind.SHARED)
    assert (disk <= result.partitions.size_bytes).all()
    assert not (tmp_path / "state" / "history").exists()


def test_an_existing_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ConfigError, match="taken exists; name another folder"):
        write_synthetic(tmp_path / "taken", order())
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    assert not list((tmp_path / "taken").iterdir())


def test_history_steps_may_be_from_a_minute_to_a_day() -> None:
    shape, rhythm = order().shape, order().rhythm
    for step_ms in (59_999, DAY_MS + 1):
        with pytest.raises(ConfigError, match="not a valid step; give 1m to 24h"):
            Order(
                shape=shape, storage=StorageKind.REPLICATED, rhythm=rhythm, seed=1, step_ms=step_ms
            )

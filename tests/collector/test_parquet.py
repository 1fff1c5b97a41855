"""Small files that decompress to very many rows."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector import parquet
from collector.history.vector_files import read_vectors
from collector.history.weekly_forecast import read_weekly_forecast
from collector.parquet import OutOfBounds, count_by, read_whole

KEY = pa.field("key", pa.int32())


def file_of(path: Path, groups: list[list[int]]) -> Path:
    with pq.ParquetWriter(path, pa.schema([KEY])) as out:
        for numbers in groups:
            out.write_table(pa.table([pa.array(numbers, KEY.type)], names=["key"]))
    return path


def bloated(path: Path) -> Path:
    rows = 1 << 20
    zeros = pa.table([pa.array(np.zeros(rows, np.int32))], schema=pa.schema([KEY]))
    with pq.ParquetWriter(path, zeros.schema) as out:
        for _ in range(parquet.MOST_ROWS // rows + 1):
            out.write_table(zeros)
    assert path.stat().st_size < 100_000
    return path


def test_rows_are_counted_over_all_groups(tmp_path: Path) -> None:
    path = file_of(tmp_path / "f.parquet", [[1, 1, 2], [2, 3], []])
    assert count_by(path, KEY) == Counter({1: 2, 2: 2, 3: 1})
    assert read_whole(path)["key"].to_pylist() == [1, 1, 2, 2, 3]


def test_more_rows_than_the_limit_are_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = bloated(tmp_path / "f.parquet")
    for read in (read_whole, lambda path: count_by(path, KEY)):
        with pytest.raises(OutOfBounds, match=r"f\.parquet holds 17,825,792 rows"):
            read(path)
    caplog.clear()
    assert read_vectors(path) is None
    assert read_weekly_forecast(path) is None
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 2
    assert all("holds 17,825,792 rows" in message for message in warned)


def test_more_row_groups_than_the_limit_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MOST_KEYS", 100)
    path = file_of(tmp_path / "f.parquet", [[*range(60)], [*range(60, 101)]])
    with pytest.raises(OutOfBounds, match=r"f\.parquet holds more than 100 batches"):
        count_by(path, KEY)


def test_a_row_group_too_large_to_decompress_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path / "f.parquet", [[*range(1000)]])
    monkeypatch.setattr(parquet, "MOST_GROUP_BYTES", 1000)
    with pytest.raises(OutOfBounds, match="has a row group of more than"):
        read_whole(path)

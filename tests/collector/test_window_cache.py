"""Samples of the latest window, across batches and restarts."""

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collector.spark.vectors import load_vectors
from collector.window_cache import WindowCache
from tests.support.collector.sample_rows import START_MS, WINDOW, figures, rows

NOW_MS = START_MS + 60_000


def recent(folder: Path) -> WindowCache:
    return WindowCache(folder, WINDOW.window_ms)


def loads(samples: pa.Table) -> list[dict[str, Any]]:
    return figures(load_vectors(samples, WINDOW))


def test_a_restart_keeps_earlier_samples(tmp_path: Path) -> None:
    recent(tmp_path).add(0, rows(0, 6), NOW_MS)
    result = recent(tmp_path).add(1, rows(6, 12), NOW_MS)
    assert figures(load_vectors(result, WINDOW)) == figures(load_vectors(rows(0, 12), WINDOW))


def test_a_repeated_batch_counts_once(tmp_path: Path) -> None:
    before = recent(tmp_path)
    before.add(0, rows(0, 6), NOW_MS)
    before.add(1, rows(6, 9), NOW_MS)
    result = recent(tmp_path).add(1, rows(6, 9), NOW_MS)
    assert figures(load_vectors(result, WINDOW)) == figures(load_vectors(rows(0, 9), WINDOW))
    assert len(list(tmp_path.iterdir())) == 2


def test_samples_outside_the_window_are_dropped(tmp_path: Path) -> None:
    remaining = recent(tmp_path)
    for batch in range(10):
        result = remaining.add(batch, rows(6 * batch, 6 * batch + 6), NOW_MS)
    assert result.sort_by("time_ms").equals(rows(44, 60).sort_by("time_ms"))
    assert {p.name.partition("-")[0] for p in tmp_path.iterdir()} == {"7", "8", "9"}


def test_a_damaged_file_is_named_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recent(tmp_path).add(0, rows(0, 6), NOW_MS)
    (damaged,) = tmp_path.iterdir()
    damaged.write_bytes(b"PAR1")
    with caplog.at_level(logging.WARNING):
        result = recent(tmp_path).add(1, rows(6, 12), NOW_MS)
    assert result.num_rows == rows(6, 12).num_rows
    assert f"{damaged} is passed over" in caplog.text


def test_an_unwritable_folder_is_named_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "file"
    folder.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        result = recent(folder).add(0, rows(0, 6), NOW_MS)
    assert result.num_rows == rows(0, 6).num_rows
    assert f"samples cannot be kept in {folder}" in caplog.text


def test_samples_from_before_the_clock_was_set_back_are_dropped(tmp_path: Path) -> None:
    remaining = recent(tmp_path)
    remaining.add(0, rows(3600, 3606), START_MS + 3_606_000)
    result = remaining.add(1, rows(6, 12), START_MS + 12_000)
    assert result.sort_by("time_ms").equals(rows(6, 12).sort_by("time_ms"))

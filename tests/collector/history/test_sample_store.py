"""Decoding of Cruise Control's sample store."""

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.history.hours import NEEDED
from collector.history.sample_store import decode
from tests.support.collector.sample_store_records import new, old

TIME_MS = 1_700_000_000_000
NINE = (12.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)


def rows(*records: bytes | None) -> tuple[list[dict[str, Any]], dict[str, int]]:
    result, skipped = decode(pa.array(records, pa.binary()))
    assert result.schema == NEEDED
    return result.to_pylist(), skipped


def test_figures_are_in_bytes_and_unreported_ones_absent() -> None:
    result, skipped = rows(
        new(TIME_MS, "größe.v1", 7, *NINE), old(TIME_MS + 1, "orders", 0, 1, 2, 3, 4)
    )
    assert skipped == {}
    ((older, newer), nothing) = (result, math.isnan)
    assert (older["topic"], older["partition"]) == ("orders", 0)
    assert (newer["topic"], newer["partition"]) == ("größe.v1", 7)
    assert (older["time_ms"], newer["time_ms"]) == (TIME_MS + 1, TIME_MS)
    for row in (older, newer):
        assert (row["net_in"], row["net_out"]) == (3 * 1024, 4 * 1024)
        assert row["disk"] == 2 * 1024**2
        assert nothing(row["cpu"])
        assert nothing(row["total_bytes"])
    assert (newer["requests"], newer["records_in"]) == (11, 7)
    assert nothing(older["requests"])
    assert nothing(older["records_in"])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "short"),
        (b"", "short"),
        (new(TIME_MS, "t", 0, *NINE)[:80], "short"),
        (b"\x02" + new(TIME_MS, "t", 0, *NINE)[1:], "version"),
        (new(TIME_MS, "t", 0, *NINE[:-1], math.nan), "value"),
        (old(TIME_MS, "t", 0, 1, 2, -3, 4), "value"),
        (old(TIME_MS, "t", -1, 1, 2, 3, 4), "value"),
        (old(TIME_MS, "", 0, 1, 2, 3, 4), "topic"),
        (old(TIME_MS, "t", 0, 1, 2, 3, 4) + b"\xff", "topic"),
    ],
)
def test_invalid_records_are_counted_and_omitted(record: bytes | None, reason: str) -> None:
    good = new(TIME_MS, "t", 0, *NINE)
    result, skipped = rows(good, record, good)
    assert (len(result), skipped) == (2, {reason: 1})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=120) | st.sampled_from([b"\x00", b"\x01"]), max_size=5))
def test_any_bytes_are_either_rows_or_counted(records: list[bytes]) -> None:
    full = [record + struct.pack(">11d", *range(11)) for record in records]
    result, skipped = rows(*full, *records)
    assert len(result) + sum(skipped.values()) == 2 * len(records)

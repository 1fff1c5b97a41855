"""Records of AutoMQ's and Cruise Control's reporters, compared with a plain reader."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.reports import automq_metrics, cruise_control_metrics
from collector.reports.report_columns import REPORTS
from tests.support.collector import metrics_oracle
from tests.support.collector.report_rows import automq
from tests.support.collector.sample_rows import figures
from tests.support.paths import FIXTURES

FIXTURE = FIXTURES / "automq-metrics.bin"
AUTOMQ_PARTITION = bytes.fromhex(
    "00000000018bcfe56800000000010000000000000001740000000300000003004130000000000000"
    "014140000000000000020000000000000000"
)
AUTOMQ_BROKER = bytes.fromhex(
    "01000000018bcfe568000000000100000002723100000004064000000000000000033ff000000000"
    "0000040000000000000000050000000000000000"
)
CRUISE_BROKER = bytes.fromhex("0000050000018bcfe56800000000033fdc000000000000")
CRUISE_TOPIC = bytes.fromhex(
    "0100020000018bcfe5680000000003000000096f72646572732e76314130000000000000"
)
CRUISE_PARTITION = bytes.fromhex(
    "0200040000018bcfe5680000000003000000096f72646572732e76310000000741d65a0bc0000000"
)


@dataclass(frozen=True)
class Layout:
    """One reporter's records."""

    decode: Callable[[pa.Array], Any]
    read: Callable[[bytes], dict[str, Any] | None]
    golden: tuple[bytes, ...]

    def check(self, records: list[bytes]) -> None:
        """The decoder agrees with the reader of single records."""
        result = self.decode(pa.array(records, pa.binary()))
        rows, skipped = metrics_oracle.expected(self.read, records)
        assert metrics_oracle.rows_of(result.table) == rows
        assert result.skipped == skipped


AUTOMQ = Layout(automq_metrics.decode, metrics_oracle.automq, (AUTOMQ_PARTITION, AUTOMQ_BROKER))
CRUISE = Layout(
    cruise_control_metrics.decode,
    metrics_oracle.cruise_control,
    (CRUISE_BROKER, CRUISE_TOPIC, CRUISE_PARTITION),
)
both = pytest.mark.parametrize("layout", [AUTOMQ, CRUISE], ids=["automq", "cruise"])


def recorded() -> Iterator[bytes]:
    """Values of the records that a real AutoMQ wrote."""
    data, at = FIXTURE.read_bytes(), 0
    while at < len(data):
        at += 20 + struct.unpack_from(">i", data, at + 16)[0]
        (size,) = struct.unpack_from(">i", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def test_golden_records_of_automq() -> None:
    result = automq_metrics.decode(pa.array([AUTOMQ_PARTITION, AUTOMQ_BROKER])).table
    rows = [
        automq(
            0, topic="t", partition=3, bytes_in=1_048_576.0, bytes_out=2_097_152.0, size_bytes=0.0
        ),
        automq(0, topic=None, partition=-1),
    ]
    assert figures(result) == figures(pa.Table.from_pylist(rows, schema=REPORTS))


def test_golden_records_of_cruise_control() -> None:
    result = cruise_control_metrics.decode(pa.array(CRUISE.golden)).table.to_pylist()
    assert [tuple(row.values()) for row in result] == [
        (5, 1_700_000_000_000, 3, None, -1, 0.4375),
        (2, 1_700_000_000_000, 3, "orders.v1", -1, 1_048_576.0),
        (4, 1_700_000_000_000, 3, "orders.v1", 7, 1.5e9),
    ]


@pytest.mark.parametrize("padding", [275 - 58, 340 - 60, 1])
def test_padding_after_the_entries_changes_nothing(padding: int) -> None:
    padded = [record + bytes(padding) for record in AUTOMQ.golden]
    assert metrics_oracle.rows_of(
        automq_metrics.decode(pa.array(padded)).table
    ) == metrics_oracle.rows_of(automq_metrics.decode(pa.array(AUTOMQ.golden)).table)


def test_records_of_a_real_automq_are_decoded() -> None:
    records = list(recorded())
    result = automq_metrics.decode(pa.array(records))
    assert result.skipped == {}
    topics = result.table["topic"]
    assert set(topics.unique().to_pylist()) == {
        None,
        "ab",
        "ab2",
        "__auto_balancer_metrics",
        "__automq_cluster_events",
    }
    assert topics.null_count == 30
    # Three brokers reported the quorum's own log ten times.
    assert len(records) == 240
    assert len(result.table) == 240 - 30
    AUTOMQ.check(records)


@both
def test_every_truncated_record_is_recognised(layout: Layout) -> None:
    for record in layout.golden:
        layout.check([record[:size] for size in range(len(record) + 1)])


@both
def test_a_newer_version_is_counted_and_not_decoded(layout: Layout) -> None:
    newer = [bytes([record[0], 1]) + record[2:] for record in layout.golden]
    result = layout.decode(pa.array(newer + list(layout.golden)))
    assert result.skipped == {"version": len(newer)}
    assert len(result.table) == len(layout.golden)


def test_an_unknown_entry_is_ignored_and_the_others_count() -> None:
    entry = AUTOMQ_PARTITION.index(b"\x00\x00\x00\x03\x00\x41\x30") + 4
    newer = bytearray(AUTOMQ_PARTITION)
    newer[entry] = 99
    (row,) = automq_metrics.decode(pa.array([bytes(newer)])).table.to_pylist()
    assert np.isnan(row["bytes_in"])
    assert row["bytes_out"] == 2_097_152.0


@both
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_a_record_with_an_invalid_value_is_omitted(layout: Layout, value: float) -> None:
    record = layout.golden[-1][:-8] + struct.pack(">d", value)
    result = layout.decode(pa.array([record, *layout.golden]))
    assert result.skipped == {"value": 1}
    assert len(result.table) == len(layout.golden)


@both
def test_nulls_slices_and_chunks_are_read_equally(layout: Layout) -> None:
    records = pa.array([b"x", *layout.golden, None, *layout.golden, b"y"], pa.binary())
    middle = layout.decode(records.slice(1, len(records) - 2))
    assert middle.skipped == {"short": 1}
    assert len(middle.table) == 2 * len(layout.golden)
    chunked = pa.chunked_array([records.slice(0, 2), records.slice(2)])
    whole = layout.decode(records).table
    assert metrics_oracle.rows_of(layout.decode(chunked).table) == metrics_oracle.rows_of(whole)


@both
def test_no_records_give_no_rows(layout: Layout) -> None:
    assert len(layout.decode(pa.array([], pa.binary())).table) == 0


@both
@given(data=st.data())
def test_both_readers_agree_on_any_content_of_the_topic(
    layout: Layout, data: st.DataObject
) -> None:
    records = data.draw(
        st.lists(
            st.one_of(
                st.binary(max_size=80),
                st.builds(
                    _spoilt,
                    st.sampled_from(layout.golden),
                    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 255))),
                    st.binary(max_size=12),
                ),
            ),
            max_size=30,
        )
    )
    layout.check(records)


def _spoilt(record: bytes, changes: list[tuple[int, int]], tail: bytes) -> bytes:
    spoilt = bytearray(record)
    for at, value in changes:
        spoilt[at % len(spoilt)] = value
    return bytes(spoilt) + tail


@both
def test_a_million_mutated_records_are_read_or_counted(layout: Layout) -> None:
    count, random = 1_000_000, np.random.default_rng(20261122)
    of = random.integers(0, len(layout.golden), count)
    sizes = np.array([len(record) for record in layout.golden])[of]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    data = np.frombuffer(b"".join(layout.golden[i] for i in of), np.uint8).copy()
    for _ in range(2):
        at = starts[:-1] + random.integers(0, sizes)
        data[at] = random.integers(0, 256, count)
    mutated = pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(starts), pa.py_buffer(data)]
    )
    result = layout.decode(mutated)
    assert len(result.table) + sum(result.skipped.values()) == count
    assert set(result.skipped) >= {"short", "class", "version", "value"}
    layout.check(mutated.slice(0, 5_000).to_pylist())


def with_entries(*counts: int) -> pa.Array:
    """A record of one partition for each number of entries."""
    return pa.array(
        [
            AUTOMQ_PARTITION[:27] + struct.pack(">i", count) + struct.pack(">bd", 0, 1.0) * count
            for count in counts
        ],
        pa.binary(),
    )


def test_work_does_not_grow_with_the_declared_number_of_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each distinct number costs a pass over its records; there are few."""
    passes = []
    take = automq_metrics._take

    def counted(*given: Any) -> None:
        passes.append(1)
        take(*given)

    monkeypatch.setattr(automq_metrics, "_take", counted)
    most = automq_metrics.MOST_ENTRIES
    result = automq_metrics.decode(with_entries(*range(460), 50_000))
    assert result.skipped == {"entries": 460 - most}
    assert len(result.table) == most + 1
    assert len(passes) == most * (most + 1) / 2

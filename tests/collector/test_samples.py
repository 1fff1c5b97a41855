import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.samples import SAMPLES, decode, encode, not_ahead
from tests.support.collector.sample_rows import START_MS, sample, table
from tests.support.paths import ROOT

GOLDEN = {
    "01000000018bcfe5680000000003000000010000000100000000000003e800000000000000c8"
    "00000000000000000000000000001000000000000000200000000000000003de000174": sample(
        0,
        topic="t",
        partition=3,
        latest=1000,
        earliest_local=200,
        local_bytes=4096,
        total_bytes=8192,
        group_offsets=990,
    ),
    "01010000018bcfe56800000000007fffffffffffffff4000000000000000ffffffffffffffff"
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "000a6772c3b6c39f652e7631": sample(
        0,
        topic="größe.v1",
        broker=2**31 - 1,
        flags=1,
        groups=-1,
        latest=2**62,
        earliest_local=-1,
        earliest=-1,
        local_bytes=-1,
        total_bytes=-1,
        group_offsets=-1,
    ),
}


def records(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


@pytest.mark.parametrize(("hexadecimal", "row"), GOLDEN.items())
def test_the_documented_vectors_are_written_and_read(
    hexadecimal: str, row: dict[str, object]
) -> None:
    assert encode(table([row])) == [bytes.fromhex(hexadecimal)]
    result = decode(records(bytes.fromhex(hexadecimal)))
    assert result.table.to_pylist() == [row]
    assert result.skipped == {}


def test_the_document_contains_the_golden_vectors() -> None:

    document = ROOT / "docs" / "reference" / "samples.md"
    text = document.read_text("utf-8")
    assert all(f"`{hexadecimal}`" in text for hexadecimal in GOLDEN)


counts = st.integers(-1, 2**63 - 1)
some_rows = st.lists(
    st.builds(
        lambda **fields: sample(0, **fields),
        topic=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        partition=st.integers(0, 2**31 - 1),
        time_ms=st.integers(0, 2**62),
        flags=st.integers(0, 255),
        groups=st.integers(-1, 2**31 - 1),
        latest=st.integers(0, 2**63 - 1),
        earliest_local=counts,
        earliest=counts,
        local_bytes=counts,
        total_bytes=counts,
        group_offsets=counts,
    )
)


@given(some_rows)
def test_written_samples_read_back(rows: list[dict[str, object]]) -> None:
    result = decode(records(*encode(table(rows))))
    assert result.table.equals(table(rows))
    assert result.skipped == {}


@given(st.lists(st.one_of(st.none(), st.binary(max_size=120))))
def test_every_record_is_either_a_sample_or_counted(values: list[bytes | None]) -> None:
    result = decode(records(*values))
    assert len(result.table) + sum(result.skipped.values()) == len(values)


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), max_size=4))
def test_altered_records_never_raise(changes: list[tuple[int, int]]) -> None:
    value = bytearray(encode(table([sample(1, topic="a-long-name")]))[0])
    for position, byte in changes:
        value[position] = byte
    result = decode(records(bytes(value)))
    assert len(result.table) + sum(result.skipped.values()) == 1


def test_every_truncation_is_counted_as_short() -> None:
    (whole,) = encode(table([sample(1)]))
    cut = [whole[:length] for length in range(len(whole))]
    assert decode(records(*cut)).skipped == {"short": len(whole)}


@pytest.mark.parametrize(
    ("position", "byte", "reason"),
    [
        (0, 2, "version"),
        (2, 0x80, "negative"),
        (22, 0x80, "negative"),
        (46, 0x80, "negative"),
        (72, 0xFF, "topic"),
    ],
)
def test_a_bad_record_is_counted_by_its_reason(position: int, byte: int, reason: str) -> None:
    value = bytearray(encode(table([sample(1)]))[0])
    value[position] = byte
    good = encode(table([sample(2)]))[0]
    result = decode(records(bytes(value), good))
    assert result.skipped == {reason: 1}
    assert result.table["time_ms"].to_pylist() == [START_MS + 2000]


def test_an_empty_topic_name_is_rejected() -> None:
    (value,) = encode(table([sample(1, topic="")]))
    assert decode(records(value)).skipped == {"topic": 1}


def test_later_fields_are_ignored() -> None:
    (value,) = encode(table([sample(1)]))
    assert decode(records(value + b"later")).table.equals(table([sample(1)]))


def test_a_slice_of_an_array_is_read_by_itself() -> None:
    rows = [sample(second) for second in range(9)]
    part = records(*encode(table(rows))).slice(3, 2)
    assert decode(part).table.equals(table(rows[3:5]))
    chunked = pa.chunked_array([part, part])
    assert len(decode(chunked).table) == 4


def test_an_empty_array_gives_no_samples() -> None:
    assert decode(records()).table.schema == SAMPLES


def test_samples_of_a_clock_that_is_five_minutes_ahead_are_omitted() -> None:
    mine, behind, ahead = sample(0), sample(-300), sample(300)
    result = not_ahead(table([mine, ahead, behind]), START_MS)
    assert result.to_pylist() == [mine, behind]

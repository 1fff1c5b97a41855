import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.bounded import (
    LARGEST_INT,
    InvalidJson,
    check_times,
    open_regular,
    parse_json,
    parse_toml,
    read_bytes,
)
from model.errors import ConfigError
from model.exchange.text_files import read_json
from model.files import read_document

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_INT, LARGEST_INT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


@given(JSON)
def test_json_is_read_like_in_the_standard_library(document: object) -> None:
    for text in (json.dumps(document), json.dumps(document, ensure_ascii=False)):
        try:
            text.encode()
        except UnicodeEncodeError:
            continue
        assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "line 1: recursion limit"),
        ("[" * 300 + "]" * 300, "recursion limit"),
        ('{"a":\n {"b": NaN}}', "line 2: a value is expected"),
        ('{"a": -Infinity}', "line 1"),
        ('{"a": {"b": [1, 1e400]}}', r"^a\.b\.1 is out of range"),
        ("9" * 30, "the number is out of range"),
        (f'{{"a": -{"9" * 25}}}', "a is out of range"),
        ("9" * 5000, "out of range"),
        (r'{"a": "\ud800"}', "line 1: unexpected end of hex escape"),
        (b'"\xff"', "line 1"),
        (b"\x89PNG\x00\x01", "it is a binary file, not text"),
        (b"hello", "line 1: a value is expected$"),
        (b"[NaN]", "NaN and Infinity are not JSON, write a number"),
        ("", "line 1"),
        ("{} {}", "trailing"),
    ],
)
def test_invalid_or_out_of_range_json_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidJson, match=message):
        parse_json(text)


@pytest.mark.parametrize("number", ["1e400", "-1.5E+999", "12345678901234567890", "-" + "9" * 400])
@pytest.mark.parametrize("text", ["{}", "[{}]", "[1,{}]", '{{"a":{}}}', '{{"a":\n{}}}', "[\t{} ]"])
def test_a_number_out_of_range_is_found_wherever_it_stands(number: str, text: str) -> None:
    with pytest.raises(InvalidJson, match="out of range"):
        parse_json(text.format(number))


def test_digits_in_text_are_not_numbers() -> None:
    assert parse_json(f'["{"9" * 40}", 1e300, "1e999"]') == ["9" * 40, 1e300, "1e999"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 50_000, "nested too deeply"),
        ("a." * 2_000 + "a = nan", "nested too deeply"),
        ("a = nan", "a is nan; give a finite number"),
        ("[t]\na = [1.0, inf]", r"t\.a\.1 is inf"),
        (f"a = {'9' * 30}", "a is too large; give a finite number"),
        (f"a = {'9' * 400}", "a is too large"),
        (f"a = 0x{'f' * 20_000}", "a is too large"),
        (f"a = {'9' * 5000}", "not valid TOML"),
        ("a = \n", "line 1"),
    ],
)
def test_toml_is_bounded_too(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_toml(Path("x.toml"), text)
    assert "x.toml" in str(caught.value)


@pytest.mark.parametrize("time", [-2, 1e18, 2**62])
def test_an_impossible_time_is_named(time: float) -> None:
    document = {"a": [{"b": {"at_ms": 1_700_000_000_000}}, {"b": {"at_ms": time}}]}
    with pytest.raises(ValueError, match=r"a\.1\.b\.at_ms"):
        check_times(document)


@pytest.mark.parametrize("first", [0, None, "x", [], {}])
def test_a_time_is_found_whatever_precedes_it(first: object) -> None:
    document = {"a": [first, [first, {"at_ms": 10**15}]]}
    with pytest.raises(ValueError, match=r"a\.1\.1\.at_ms"):
        check_times(document)


@pytest.mark.parametrize("text", ["", "[1,", '{"a": "b'])
def test_truncated_text_is_reported_as_such(text: str) -> None:
    with pytest.raises(InvalidJson, match="line 1: the text ends too early; the file"):
        parse_json(text)


def test_a_decompression_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    with pytest.raises(ConfigError, match=r"s\.json\.gz holds more than 4 MiB"):
        read_bytes(path, 4 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.parametrize("damage", ["cut", "flipped", "plain", "trailing"])
def test_a_damaged_gzip_file_is_named(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(os.urandom(2000), mtime=0)
    flipped = bytearray(whole)
    flipped[20] ^= 255
    path = tmp_path / "s.gz"
    path.write_bytes(
        {"cut": whole[:-20], "flipped": bytes(flipped), "plain": b"{}", "trailing": whole + b"x"}[
            damage
        ]
    )
    with pytest.raises(ConfigError, match=r"cannot read .*s\.gz: not a gzip file"):
        read_bytes(path)


def test_a_named_pipe_in_place_of_a_document_is_refused(tmp_path: Path) -> None:
    """Reading it waited for a writer without end."""
    pipe = tmp_path / "moves.plan"
    os.mkfifo(pipe)
    (tmp_path / "link.plan").symlink_to(pipe)
    for path in (pipe, tmp_path / "link.plan"):
        with pytest.raises(ConfigError, match=r"\.plan: it is a named pipe; give a file"):
            read_document(path, "plimsoll.plan", 1)
        with pytest.raises(ConfigError, match=r"\.plan: it is a named pipe; give a file"):
            read_json(path)
        with pytest.raises(ConfigError, match=r"\.plan: it is a named pipe; give a file"):
            read_bytes(path)
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(pipe)


def test_a_pipe_of_the_shell_is_read() -> None:
    """As of `plimsoll verify <(...)`."""
    reader, writer = os.pipe()
    os.write(writer, b'{"kind": "k", "schema_version": "1.0"}')
    os.close(writer)
    assert read_document(Path(f"/dev/fd/{reader}"), "k", 1)["kind"] == "k"
    os.close(reader)
    reader, writer = os.pipe()
    os.write(writer, b"racks = 3")
    os.close(writer)
    assert read_bytes(Path(f"/dev/fd/{reader}")) == b"racks = 3"
    os.close(reader)


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="/dev/zero holds more than 1 MiB"):
        read_bytes(Path("/dev/zero"), 1 << 20)


@pytest.mark.parametrize("document", [[], {}, None, [[]], [[], []], {"a": []}])
def test_empty_documents_have_no_times(document: object) -> None:
    check_times(document)

"""Canonical files: bytes, versions, and errors about invalid ones."""

import gzip
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import ConfigError
from model.files import (
    DIGITS,
    FileModel,
    VersionedModel,
    canonical,
    digest,
    read_document,
    rounded,
    validate_document,
    write_document,
)

KIND = "plimsoll.thing"
DOCUMENT = {"kind": KIND, "schema_version": "1.0", "b": [1, 2.5], "a": "ü"}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), values))
def test_canonical_bytes_read_back_and_do_not_depend_on_order(document: dict) -> None:
    """Reading gives the same document, and the order of keys does not matter."""
    data = canonical(document)
    assert json.loads(data) == document
    assert canonical(dict(reversed(document.items()))) == data
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1


def test_canonical_form_is_sorted_and_compact() -> None:
    assert canonical({"b": 1, "a": [1, "ü"]}) == '{"a":[1,"ü"],"b":1}\n'.encode()


def test_the_digest_is_computed_from_the_canonical_form() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_keeps_nine_digits_and_is_stable(value: float) -> None:
    once = rounded(value)
    assert rounded(once) == once
    assert math.isinf(once) or math.isclose(once, value, rel_tol=10.0 ** (1 - DIGITS))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="cannot stand in a file"):
        rounded(value)


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_a_document_reads_back(tmp_path: Path, name: str) -> None:
    """Plain or compressed; twice the same bytes, and no partial file is left."""
    path = tmp_path / name
    write_document(path, DOCUMENT)
    first = path.read_bytes()
    write_document(path, DOCUMENT)
    assert path.read_bytes() == first
    assert read_document(path, KIND, major=1) == DOCUMENT
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x.json"
    with pytest.raises(ConfigError, match=f"cannot write {path}"):
        write_document(path, DOCUMENT)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the plimsoll.thing file .*x"):
        read_document(tmp_path / "x.json", KIND, major=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "is not a plimsoll.thing file"),
        ({"schema_version": "2.0"}, "reads plimsoll.thing files up to 1.x"),
        ({"schema_version": "x"}, "not a number"),
        ({"schema_version": None}, "not a number"),
    ],
)
def test_another_kind_or_version_of_document_is_refused(
    tmp_path: Path, change: dict, message: str
) -> None:
    path = tmp_path / "x.json"
    write_document(path, DOCUMENT | change)
    with pytest.raises(ConfigError, match=message):
        read_document(path, KIND, major=1)


def test_a_newer_minor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_document(path, DOCUMENT | {"schema_version": "1.7", "new": 1})
    assert read_document(path, KIND, major=1)["new"] == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.json", b"{"),
        ("x.json", b"[1]"),
        ("x.json", b"\xff\xfe"),
        ("x.json.gz", b"{}"),
        ("x.json.gz", gzip.compress(b'{"a": 1}' * 50, mtime=0)[:20]),
    ],
)
def test_an_invalid_document_is_reported_in_one_sentence(
    tmp_path: Path, name: str, data: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=str(path)):
        read_document(path, KIND, major=1)


def test_faults_are_named_with_their_field() -> None:
    class Inner(FileModel):
        n: int

    class Whole(VersionedModel):
        inner: Inner

    with pytest.raises(ConfigError, match=r"x.json cannot be used: inner.n"):
        validate_document(Whole, {"inner": {"n": "1"}}, Path("x.json"))
    with pytest.raises(ConfigError, match=r"inner.extra"):
        validate_document(Whole, {"inner": {"n": 1, "extra": 2}}, Path("x.json"))
    assert validate_document(Whole, {"inner": {"n": 1}, "newer": 0}, Path("x.json")) == Whole(
        inner=Inner(n=1)
    )

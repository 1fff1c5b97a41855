"""Canonical files: bytes, versions, and errors about invalid ones."""

import errno
import gzip
import json
import math
import os
import stat
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
    make_folder,
    read_document,
    replace_file,
    rounded,
    sync_folder,
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


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of what is synced, in order."""
    found, fsync = list[str](), os.fsync

    def noting(handle: int) -> None:
        found.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    return found


def test_a_replaced_file_is_synced_before_its_folder(tmp_path: Path, synced: list[str]) -> None:
    replace_file(tmp_path / "task.json", b"{}")
    assert synced == [str(tmp_path / "task.json.partial"), str(tmp_path)]


def test_folders_that_are_made_are_synced_into_their_parents(
    tmp_path: Path, synced: list[str]
) -> None:
    made = tmp_path / "a" / "b"
    make_folder(made)
    assert synced[-2:] == [str(tmp_path), str(tmp_path / "a")]


def test_a_folder_that_exists_is_synced_into_its_parent(tmp_path: Path, synced: list[str]) -> None:
    """Whoever made it may have died before that, as may the maker of the innermost parent."""
    (tmp_path / "a").mkdir()
    make_folder(tmp_path / "a")
    assert synced == [str(tmp_path)]
    synced.clear()
    make_folder(tmp_path / "a" / "b" / "c")
    assert synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]


def failing(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let syncs of folders fail."""
    fsync = os.fsync

    def of_files(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", of_files)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_files_can_be_replaced_on_a_file_system_that_syncs_no_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    failing(monkeypatch, code)
    replace_file(tmp_path / "task.json", b"{}")
    assert (tmp_path / "task.json").read_bytes() == b"{}"


def test_a_failed_sync_of_the_folder_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, errno.EIO)
    with pytest.raises(ConfigError, match=r"cannot write .*task\.json: Input/output error"):
        write_document(tmp_path / "task.json", {})


def test_a_folder_that_cannot_be_opened_is_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    sync_folder(tmp_path)

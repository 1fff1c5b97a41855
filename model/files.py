"""Canonical files: one JSON document each, versioned, the same bytes for equal values.

A file's `schema_version` is `major.minor`. A newer minor may add fields, which are
ignored; a newer major is refused.
"""

import errno
import gzip
import hashlib
import json
import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model.bounded import check_times, parse_json, read_bytes, refuse_named_pipe
from model.errors import ConfigError, NewerVersion
from model.private import share

T = TypeVar("T", bound=BaseModel)

DIGITS = 9
"""Significant digits kept of a figure in a file, so that processors agree on it."""


class FileModel(BaseModel):
    """Base of every value that stands in a file: frozen, strict, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_CANNOT_SYNC: Final = frozenset(
    {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EROFS}
)
"""Some network file systems sync no folders, and one that cannot be read cannot be opened.
A read-only one has nothing to lose."""

unless_empty: Final = Field(exclude_if=operator.not_)
"""`Annotated[T, unless_empty]`: a field that files leave out where it is empty, so that
documents from before the field keep their bytes and hashes."""

unless_none: Final = Field(exclude_if=lambda value: value is None)
"""The same for a field that is left out where it is None."""

OldNames = Mapping[str, tuple[str, ...]]
"""The fields of a model that each former name of a field sets."""


def with_new_names(given: Any, names: OldNames) -> Any:
    """Return a table with the old names of its fields replaced by the new ones.

    Anything but a table is returned as it is. Raises ValueError for a field given under both names.
    """
    if not isinstance(given, Mapping):
        return given
    for old in sorted(names.keys() & given.keys()):
        if given.keys() & set(names[old]):
            new = ", ".join(names[old])
            raise ValueError(f"{old} is the old name of {new}: do not set both")
    return {new: value for name, value in given.items() for new in names.get(name, (name,))}


def old_names_of(model: type[BaseModel]) -> OldNames:
    """Return the old names of a model's fields; empty if none was ever renamed."""
    names: OldNames = getattr(model, "old_names", {})
    return names


class VersionedModel(FileModel):
    """A whole file; unknown fields of a newer minor version are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


def rounded(value: float) -> float:
    """Round to `DIGITS` significant digits.

    Raises ValueError for NaN and infinities, which JSON cannot hold.
    """
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{value} cannot stand in a file")
    return float(f"{value:.{DIGITS - 1}e}")


def canonical(document: Mapping[str, Any]) -> bytes:
    """UTF-8 JSON in one line, keys sorted, no blanks, a newline at the end.

    Raises ValueError: the document holds NaN, an infinity or a lone surrogate.
    """
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode() + b"\n"


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, 64 hex digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def write_document(path: Path, document: Mapping[str, Any], *, private: bool = False) -> None:
    """Replace `path` in one step by the canonical JSON; gzip when its suffix is `.gz`.

    private: the user alone may read the file; otherwise it has the mode of the user's mask.

    Raises ConfigError: the folder is missing or cannot be written. ValueError: as `canonical`.
    """
    data = canonical(document)
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        replace_file(path, data, shared=not private)
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc


def file_mark(path: Path) -> tuple[int, int, int] | None:
    """Time, size and inode of a file, which tell whether it has changed; None without one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def replace_file(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Replace `path` in one step, so that it has the old bytes or the new ones.

    The bytes are synced to `path` with the suffix `.partial`, which is then renamed. The folder is
    synced, too, so that a power loss does not bring the old bytes back.

    shared: give it the mode of the user's mask; otherwise that of the process's mask, which
    `model.private.begin` makes the user's alone.

    Raises OSError: the file cannot be written, synced or renamed; if the folder cannot be synced,
    the new bytes are there, but may be lost.
    """
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    if shared:
        share(partial)
    partial.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable, unless its file system syncs no folders.

    Raises OSError.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as exc:
        if exc.errno not in _CANNOT_SYNC:
            raise


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and make their entries durable. Raises OSError."""
    # Each is synced before the next is made, so that of folders that exist, only the entry of the
    # innermost may not be durable: whoever made it may have died before syncing it.
    if not folder.exists() and folder.parent != folder:
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def read_document(path: Path, kind: str, major: int) -> dict[str, Any]:
    """Read a JSON object and check `schema_version`.

    Raises ConfigError: the file is missing or a named pipe, is not a JSON object, is of another
    kind or of a newer major version than `major`.
    """
    what = f"the {kind} file "
    refuse_named_pipe(path, what)
    return parse_document(read_bytes(path, what=what), path, kind, major)


def parse_document(data: bytes, where: Path | str, kind: str, major: int) -> dict[str, Any]:
    """Parse the bytes of a file or an object of a bucket as `read_document` does.

    where: what to name in messages. Raises ConfigError as `read_document` does.
    """
    document = _parsed(data, where, kind)
    found = document.get("kind")
    if found != kind:
        raise ConfigError(f"{where} is not a {kind} file (its kind is {found!r})")
    version = str(document.get("schema_version"))
    written = major_of(version)
    if written is None:
        raise ConfigError(f"{where} has the schema version {version!r}, not a number")
    if written > major:
        raise NewerVersion(
            f"{where} has schema version {version}; this plimsoll reads {kind} files "
            f"up to {major}.x: use a newer plimsoll, or write the file again"
        )
    return document


def major_of(version: str) -> int | None:
    """The major number of a `schema_version`, 1 of `1.4`; None if not a number."""
    head = version.partition(".")[0]
    return int(head) if head.isdecimal() and len(head) <= 9 else None


def _parsed(data: bytes, where: Path | str, kind: str) -> dict[str, Any]:
    try:
        document = parse_json(data)
        check_times(document)
    except ValueError as exc:
        raise ConfigError(f"{where} is not a {kind} file: {exc}") from exc
    if not isinstance(document, dict):
        raise ConfigError(f"{where} is not a {kind} file: it does not contain a JSON object")
    return document


def validate_document(model: type[T], document: Mapping[str, Any], path: Path | str) -> T:
    """Validate a document as a value of `model`; path: the file to name in the message.

    Raises ConfigError: it does not fit; the first five faults, each with its place in the document.
    """
    try:
        return model.model_validate_json(json.dumps(document))
    except ValidationError as exc:
        faults = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in exc.errors()[:5]
        )
        raise ConfigError(f"{path} cannot be used: {faults}") from exc

"""Files that several processes change, each with a checksum of its own."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model.bounded import read_bytes
from model.errors import ConfigError, NewerVersion
from model.files import digest, make_folder, parse_document


def checksum_of(document: dict[str, Any]) -> str:
    """SHA-256, in hex, of the canonical form of a file without its own checksum."""
    return digest({k: v for k, v in document.items() if k != "checksum"})


def read_sealed(path: Path, kind: str, instead: str) -> dict[str, Any]:
    """Read a file of major version 1 whose field `checksum` fits the others.

    instead: what to do without the file, in words. Raises ConfigError as `read_document` does,
    and where the file is damaged or was edited.
    """
    try:
        data = read_bytes(path, what=f"the {kind} file ", regular=True)
    except ConfigError as exc:
        if isinstance(exc.__cause__, (PermissionError, FileNotFoundError)):
            raise
        raise ConfigError(f"{exc}. {_advice(instead)}") from exc
    return parse_sealed(data, path, kind, instead)


def _advice(instead: str) -> str:
    return f"Restore it, or move it away and {instead}"


def parse_sealed(data: bytes, where: Path | str, kind: str, instead: str) -> dict[str, Any]:
    """Parse a file, or an object of a bucket, as `read_sealed` does; where: its address."""
    advice = _advice(instead)
    try:
        document = parse_document(data, where, kind, major=1)
    except NewerVersion:
        raise
    except ConfigError as exc:
        raise ConfigError(f"{exc}. {advice}") from exc
    if document.get("checksum") != checksum_of(document):
        raise ConfigError(f"{where} is damaged or was edited: its checksum does not fit. {advice}")
    return document


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which the kernel releases however the process ends.

    Raises ConfigError where the file cannot be made, and BlockingIOError without `wait` where
    another process holds it.
    """
    try:
        make_folder(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise ConfigError(
            f"{path} is not writable ({exc.strerror}). Set state_dir to a writable folder."
        ) from exc
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)

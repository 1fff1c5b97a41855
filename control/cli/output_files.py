"""Checks of the files and folders that a command will write, before it plans."""

import os
from pathlib import Path
from typing import Final

from model.errors import ConfigError
from model.exchange.text_files import read_json
from model.files import read_document

_ANY_MAJOR: Final = 10**6
KAFKA: Final = "Kafka JSON"
"""Input of Kafka's own tools: an object with `partitions` and without `kind`."""
SVG: Final = "SVG"


def check_file(path: Path | None, kind: str) -> None:
    """Refuse a file that cannot be written or replaced by a `kind` file.

    Raises ConfigError where it is a folder or a device, its folder is missing or not writable,
    it exists and is of another kind, or its name is that of another kind of picture.
    """
    if path is None:
        return
    if str(path) == "-":
        raise ConfigError(f"cannot write {path}: it does not stand for stdout here; name a file")
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigError(f"cannot write {path}: it is {what}; name a file")
    folder = path.absolute().parent
    if not folder.exists():
        raise ConfigError(f"cannot write {path}: there is no folder {path.parent}")
    if not folder.is_dir():
        raise ConfigError(f"cannot write {path}: {path.parent} is not a folder")
    _check_writable(folder, path)
    if path.exists() and path.stat().st_size and not _is(path, kind):
        raise ConfigError(
            f"{path} exists and is not a {kind} file; name another file, or remove it"
        )
    if kind == SVG and path.suffix.lower() not in ("", ".svg"):
        raise ConfigError(
            f"the picture is an SVG, and {path} is the name of something else; name it "
            f"{path.with_suffix('.svg')}"
        )


def check_folder(path: Path | None) -> None:
    """Raise ConfigError for a folder that cannot be created or written."""
    if path is None:
        return
    there = next((p for p in (path, *path.absolute().parents) if p.exists()), path)
    if not there.is_dir():
        raise ConfigError(f"cannot write to {path}: {there} is not a folder")
    _check_writable(there, path)


def _check_writable(folder: Path, path: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot write {path}: the folder {folder} is not writable")


def _is(path: Path, kind: str) -> bool:
    try:
        if kind == SVG:
            with path.open("rb") as file:
                return file.read(5) in (b"<svg ", b"<?xml")
        if kind == KAFKA:
            document = read_json(path)
            known = document if isinstance(document, dict) else {}
            return "partitions" in known and "kind" not in known
        read_document(path, kind, _ANY_MAJOR)
    except ConfigError:
        return False
    return True

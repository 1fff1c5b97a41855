"""Ship plimsoll's code to Spark's Python workers as a zip."""

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

SHIPPED: Final = ("collector", "model")
"""Packages; what workers run of them imports nothing but numpy and pyarrow."""


def pack(target: Path, packages: Iterable[str] = SHIPPED) -> Path:
    """Write packages as an importable zip; returns `target`. Equal code gives equal bytes."""
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name in packages:
            _add(archive, files(name), name)
    return target


def _add(archive: ZipFile, folder: Traversable, name: str) -> None:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        inside = f"{name}/{entry.name}"
        if entry.is_dir():
            _add(archive, entry, inside)
        elif entry.name.endswith(".py"):
            # A name alone has a fixed time, where `writestr` would take the present one.
            archive.writestr(ZipInfo(inside), entry.read_bytes(), ZIP_DEFLATED)

"""Ship plimsoll's code to Spark's Python workers as a zip."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

SHIPPED: Final = ("collector", "model")
"""Packages; what workers run of them imports nothing but numpy and pyarrow."""


def pack(target: Path) -> Path:
    """Write the packages `SHIPPED` as an importable zip; returns `target`."""
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name in SHIPPED:
            _add(archive, files(name), name)
    return target


def _add(archive: ZipFile, folder: Traversable, name: str) -> None:
    for entry in folder.iterdir():
        inside = f"{name}/{entry.name}"
        if entry.is_dir():
            _add(archive, entry, inside)
        elif entry.name.endswith(".py"):
            archive.writestr(inside, entry.read_bytes())

"""Code that Spark's executors unpack and run: packages whose loops are compiled there.

A package inside a zip cannot cache its compiled loops, so the zip is unpacked once per machine.
"""

import importlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

FOLDER: Final = "plimsoll-code"
"""Folder of unpacked code below the user's cache folder."""


def call_shipped(archive: str, function: str, shared: Any, argument: bytes) -> bytes:
    """Call `function`, as `module:name`, of a zip that was sent with `SparkContext.addFile`.

    Runs on an executor. `shared` is a broadcast variable with the bytes that are the first
    argument. Raises what the function raises, and ImportError where Python packages are missing.
    """
    from pyspark import SparkFiles

    folder = str(unpacked(Path(SparkFiles.get(archive))))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module, _, name = function.partition(":")
    called = getattr(importlib.import_module(module), name)
    result: bytes = called(shared.value, argument)
    return result


def unpacked(archive: Path) -> Path:
    """Return the folder with the files of a zip, named like it; unpack it at the first call.

    Unpacked in the user's cache folder if that can be written, so that compiled loops are kept
    for later sessions; otherwise beside the zip. Several processes may unpack at once.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for parent in (Path(home) / FOLDER, archive.parent / FOLDER):
        target = parent / archive.stem
        with suppress(OSError):
            if not target.is_dir():
                parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _unpack(archive, target)
            return target
    raise OSError(f"cannot unpack {archive.name}: neither {home} nor {archive.parent} is writable")


def _unpack(archive: Path, target: Path) -> None:
    """Unpack into a folder of its own first, so that a half-unpacked one is never used."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=target.parent))
    try:
        with ZipFile(archive) as packed:
            packed.extractall(scratch)
        try:
            scratch.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

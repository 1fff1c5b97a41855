"""Inputs that once reached new code of a reader, kept in `fixtures/fuzz`: one archive each."""

import hashlib
import io
import lzma
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "fixtures" / "fuzz"
SUFFIX: Final = ".tar.xz"
_PRESET: Final = 9 | lzma.PRESET_EXTREME


def kept(name: str, folder: Path = FOLDER) -> tuple[bytes, ...]:
    """The inputs of a reader; none where it has no archive."""
    path = folder / (name + SUFFIX)
    return unpacked(path.read_bytes()) if path.exists() else ()


def keep(name: str, inputs: Iterable[bytes], folder: Path = FOLDER) -> None:
    """Replace the inputs of a reader."""
    path, found = folder / (name + SUFFIX), tuple(inputs)
    if found:
        folder.mkdir(exist_ok=True)
        path.write_bytes(packed(found))
    else:
        path.unlink(missing_ok=True)


def packed(inputs: Iterable[bytes]) -> bytes:
    """An archive of some inputs, each named by its SHA-1; equal inputs give equal bytes."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as out:
        # Neighbours of about the same length are alike, and compress well.
        for data in sorted(set(inputs), key=lambda data: (len(data), data)):
            member = tarfile.TarInfo(hashlib.sha1(data, usedforsecurity=False).hexdigest())
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
    return lzma.compress(archive.getvalue(), preset=_PRESET)


def unpacked(archive: bytes) -> tuple[bytes, ...]:
    """The inputs of an archive, shortest first."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:xz") as found:
        files = (found.extractfile(member) for member in found)
        return tuple(file.read() for file in files if file is not None)

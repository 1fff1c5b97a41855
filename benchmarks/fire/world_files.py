"""Disks of hosts: real files in memory, of which power losses take what was not synced.

While `simulated` lasts, file system calls on the folders of a world go through its disks: opening,
writing, syncing, renaming, and making folders. A file keeps what was synced, and any beginning of
what was written after it; a folder keeps its entries as of its last sync, and any beginning of the
later changes.
"""

import errno
import io
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

_JOURNAL: Final = ".jsonl"
_PARTIAL: Final = ".partial"
_FLIPPED: Final = (_JOURNAL, ".plan")
"""Suffixes of files whose bits may flip."""
_TORN: Final = (_JOURNAL, ".json", ".plan")
"""Suffixes of files that a power loss may tear."""


@dataclass(slots=True)
class _Change:
    """A change of a folder: an entry created, or a file renamed over another one."""

    path: str
    source: str = ""
    """Empty for a new entry."""
    replaced: bytes | None = None


@dataclass(frozen=True, slots=True)
class Flip:
    """A byte of a file, one bit of which has flipped."""

    path: Path
    at: int
    before: int
    after: int

    @property
    def is_there(self) -> bool:
        """Whether the file still has it; it may have been replaced or torn since."""
        content = self.path.read_bytes() if self.path.exists() else b""
        return self.undone(content) != content

    def undone(self, content: bytes) -> bytes:
        """Content of the file without it."""
        if content[self.at : self.at + 1] != bytes([self.after]):
            return content
        return content[: self.at] + bytes([self.before]) + content[self.at + 1 :]


@dataclass(slots=True)
class Disk:
    """The disk of one host."""

    folder: Path
    rng: random.Random
    step: Callable[[], None]
    """Called before and after each write and sync; may kill the process."""
    now_s: Callable[[], float] | None = None
    """The host's wall clock, by which files have their times; None: the machine's."""
    full: bool = False
    failing_writes: set[int] = field(default_factory=set)
    failing_syncs: set[int] = field(default_factory=set)
    met: Callable[[str], None] = lambda _: None
    """Receives the name of each fault that has happened."""
    replaced: Callable[[str, bytes | None], None] = lambda *_: None
    """Receives the path of each file that a rename has replaced, and its bytes before."""
    durable: dict[str, bytes] = field(default_factory=dict)
    """What was synced, by path."""
    opened: set["WorldFile"] = field(default_factory=set)
    """Files that the process has open."""
    flips: list["Flip"] = field(default_factory=list)
    """Bits that have flipped by themselves."""
    writes: int = 0
    syncs: int = 0
    _changes: list[_Change] = field(default_factory=list)

    def write(self, file: "WorldFile", data: Any) -> int:
        """Write to a file; what fails leaves a part."""
        self.step()
        number, self.writes = self.writes, self.writes + 1
        code = errno.ENOSPC if self.full else 0
        if number in self.failing_writes:
            code = errno.EIO
        if code:
            self.met("disk full" if self.full else "write error")
            file.write_part(data, self.rng.randrange(len(data) + 1))
            raise OSError(code, os.strerror(code))
        # A process that dies here leaves a part, too.
        half = len(data) // 2
        file.write_part(data, half)
        self.step()
        return half + file.write_part(data[half:], len(data) - half)

    def stamp(self, file: "WorldFile") -> None:
        """Set the time of a file that has just changed, since the machine's clock is another."""
        if self.now_s is not None:
            os.utime(file.fileno(), (self.now_s(), self.now_s()))

    def sync(self, path: str) -> None:
        """Make a file or the entries of a folder durable."""
        if os.path.isdir(path):
            self.step()
            self._changes = [c for c in self._changes if os.path.dirname(c.path) != path]
            return
        self.step()
        number, self.syncs = self.syncs, self.syncs + 1
        if number in self.failing_syncs:
            self.met("sync error")
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.durable[path] = Path(path).read_bytes()
        self.step()

    def created(self, path: str) -> None:
        """A file or folder was created."""
        self._changes.append(_Change(path))

    def renamed(self, source: str, path: str, replaced: bytes | None) -> None:
        """A file was renamed, and replaced one with this content."""
        self._changes.append(_Change(path, source, replaced))
        self.durable[path] = self.durable.pop(source, b"")
        self.replaced(path, replaced)

    def die(self) -> None:
        """Close the files of a process that was killed."""
        for file in [*self.opened]:
            file.close()

    def flip(self, which: int) -> bool:
        """Flip a bit of one of the journals and plans; False where there is none."""
        paths = [p for p in sorted(self.folder.iterdir()) if p.suffix in _FLIPPED]
        files = [p for p in paths if p.stat().st_size]
        if not files:
            return False
        path = files[which % len(files)]
        content = bytearray(path.read_bytes())
        at = self.rng.randrange(len(content))
        before = content[at]
        content[at] ^= 1 << self.rng.randrange(8)
        _put(path, bytes(content), path.stat())
        self.flips.append(Flip(path, at, before, content[at]))
        return True

    def intact(self, path: str, content: bytes) -> bytes:
        """Content of a file without bits that have flipped."""
        for flip in self.flips:
            if str(flip.path) == path:
                content = flip.undone(content)
        return content

    def flipped(self, path: Path) -> Flip | None:
        """The flipped bit of a file; None where it has none, or none any more."""
        return next((f for f in self.flips if f.path == path and f.is_there), None)

    def lose_power(self) -> None:
        """Lose what was not synced, or a part of it."""
        of_folder: dict[str, list[_Change]] = {}
        for change in self._changes:
            of_folder.setdefault(os.path.dirname(change.path), []).append(change)
        # The innermost folder first, since its own entry may be lost with all that is in it.
        for _, changes in sorted(of_folder.items(), reverse=True):
            kept = self.rng.randrange(len(changes) + 1)
            for change in reversed(changes[kept:]):
                self._undo(change)
        self._changes.clear()
        for entry in sorted(self.folder.rglob("*")):
            if entry.suffix in _TORN:
                self._tear(entry)

    def _undo(self, change: _Change) -> None:
        path = Path(change.path)
        if path.is_dir():
            shutil.rmtree(path)
            return
        content = path.read_bytes() if path.exists() else b""
        times = path.stat() if path.exists() else None
        path.unlink(missing_ok=True)
        synced = self.durable.pop(change.path, b"")
        if change.source and not change.source.endswith(_PARTIAL):
            _put(Path(change.source), content, times)
            self.durable[change.source] = synced
        if change.replaced is not None:
            _put(path, change.replaced, times)
            self.durable[change.path] = change.replaced

    def _tear(self, path: Path) -> None:
        synced, content = self.durable.get(str(path), b""), path.read_bytes()
        if content == synced:
            return
        rest = content[len(synced) :] if content.startswith(synced) else b""
        part = rest[: self.rng.randrange(len(rest) + 1)]
        if part and self.rng.random() < 0.2:
            # The file's new length was written, but not its blocks.
            part = part[: len(part) // 2] + bytes(len(part) - len(part) // 2)
        _put(path, synced + part, path.stat())
        self.durable[str(path)] = synced + part


def _put(path: Path, content: bytes, times: os.stat_result | None) -> None:
    """Replace what is on a disk, which does not change a file's time as a write does."""
    path.write_bytes(content)
    if times is not None:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


class WorldFile(io.FileIO):
    """An open journal, or a file that is about to replace another."""

    disk: Disk

    def close(self) -> None:
        """Close the file, once or again."""
        if hasattr(self, "disk"):
            # It has none where it could not be opened.
            self.disk.opened.discard(self)
        super().close()

    def write(self, data: Any) -> int:
        """Write as the disk lets it."""
        return self.disk.write(self, data)

    def write_part(self, data: Any, size: int) -> int:
        """Write the first `size` bytes."""
        written = super().write(data[:size])
        self.disk.stamp(self)
        return written

    def truncate(self, size: int | None = None) -> int:
        """Cut off what follows."""
        length = super().truncate(size)
        self.disk.stamp(self)
        return length


@contextmanager
def simulated(disk_of: Callable[[str], Disk | None]) -> Iterator[None]:
    """Let file system calls on a world's files go through its disks.

    disk_of: the disk that a path lies on, None outside of all worlds.
    """
    opens, syncs, replaces, renames = Path.open, os.fsync, os.replace, os.rename
    mkdirs, links = os.mkdir, os.link

    def open_path(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        suffix = self.suffix
        is_written = "+" in mode if suffix == _JOURNAL else suffix == _PARTIAL and mode == "wb"
        disk = disk_of(str(self)) if is_written else None
        if disk is None:
            return opens(self, mode, *rest, **options)
        file = WorldFile(str(self), mode.replace("b", ""))
        file.disk = disk
        disk.opened.add(file)
        if "x" in mode:
            disk.created(str(self))
        return file

    def sync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        disk = disk_of(path)
        if disk is None:
            syncs(handle)
        else:
            disk.sync(path)

    def rename(how: Callable[[Any, Any], None], source: Any, target: Any) -> None:
        disk = disk_of(str(target))
        if disk is None:
            return how(source, target)
        disk.step()
        there = Path(target)
        replaced = there.read_bytes() if there.exists() else None
        how(source, target)
        disk.renamed(str(source), str(target), replaced)
        disk.step()
        return None

    paths: Any = Path
    calls: Any = os
    paths.open, calls.fsync = open_path, sync
    calls.replace, calls.rename = partial(rename, replaces), partial(rename, renames)
    calls.mkdir, calls.link = partial(_mkdir, mkdirs, disk_of), partial(_link, links, disk_of)
    try:
        yield
    finally:
        paths.open, calls.fsync = opens, syncs
        calls.replace, calls.rename = replaces, renames
        calls.mkdir, calls.link = mkdirs, links


def _mkdir(
    how: Callable[..., None],
    disk_of: Callable[[str], Disk | None],
    path: Any,
    mode: int = 0o777,
    **options: Any,
) -> None:
    how(path, mode, **options)
    if disk := disk_of(str(path)):
        disk.created(str(path))


def _link(
    how: Callable[..., None],
    disk_of: Callable[[str], Disk | None],
    source: Any,
    target: Any,
    **options: Any,
) -> None:
    how(source, target, **options)
    if disk := disk_of(str(target)):
        disk.durable[str(target)] = disk.durable.get(str(source), b"")
        disk.created(str(target))

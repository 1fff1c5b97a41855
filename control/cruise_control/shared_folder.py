"""The folder of user tasks and kept plans in the archive, so that they follow a takeover.

    cruise-control/<cluster id>/task-017
    cruise-control/<cluster id>/kept-003
    cruise-control/<cluster id>/plan-042

Each object has the name of a file in its first line, and after it the file, or nothing once it has
been removed. There is a fixed number
of each kind, used again once their files have been forgotten, since objects are never deleted.
The service that leads writes them, and those that stand by read what has changed. Once a service
leads, it writes what it has and no object has, such as a dry run from before it led.
"""

import contextlib
import hashlib
import logging
import re
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

from clients.s3 import Stored
from model.closing import Closing
from model.errors import ArchiveUnreachable, ConfigError, PlimsollError
from model.files import make_folder, replace_file
from model.log_events import LogEvent, named
from model.paths import path_part

ROOT: Final = "cruise-control/"
SLOTS: Final = {"task": 400, "kept": 64, "plan": 64}
"""Objects of each kind: more than the files of it that are kept at once."""
NAMED: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(task)\.json|[0-9a-f]{64}\.(kept|plan)\.json"
)
"""Names of the files."""
_SLOT: Final = re.compile(r"(task|kept|plan)-\d{3}")
FLUSH_S: Final = 10.0
"""Seconds that an order waits for its user task to be in the archive."""
_log = logging.getLogger("plimsoll.service")


class SharedBucket(Protocol):
    """What is asked of the bucket; `clients.s3.Bucket` is one."""

    def get(self, key: str) -> Stored | None:
        """An object; None where there is none."""
        ...

    def put_new(self, key: str, body: bytes) -> str | None:
        """Create an object; its ETag, None where there is one."""
        ...

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace an object; its new ETag, None where it has another one than this."""
        ...

    def etags(self, folder: str) -> dict[str, str]:
        """The ETags of the objects in a folder, by name."""
        ...


class SharedFolder(Closing):
    """The folder and its objects; any thread may call, and one of its own asks the bucket."""

    def __init__(self, folder: Path, bucket: SharedBucket) -> None:
        """folder: `cruise-control` in the state folder."""
        self.folder, self._bucket = folder, bucket
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cruise-archive")
        self._seen: dict[str, str] = {}
        """ETags of the objects as they were read or written last, by name; of the worker."""
        self._slots: dict[str, str] = {}
        """The object of each file, by the file's name; of the worker."""
        self._foreign: set[str] = set()
        """Objects that are no files of user tasks, which are left alone; of the worker."""
        self._unread: set[str] = set()
        """Files that have come, and of which no caller knows yet; of the worker."""
        self._there: dict[str, bytes] = {}
        """Digests of the files as their objects have them, by name; of the worker."""
        self._cluster_id = ""
        self._waiting: set[str] = set()
        """Files that have to be written."""
        self._submitted = False
        """Whether the worker will write them."""
        self._refreshing = False
        """Whether the worker reads, or will."""
        self._lock = threading.Lock()
        self._warned = ""
        self.writes = False
        """Whether this service leads, and so writes."""

    def close(self) -> None:
        """Write what is waiting, within a while, and end."""
        self.retry()
        self.flush()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def of_cluster(self, cluster_id: str) -> None:
        """Name the cluster, before which nothing is written."""
        if not self._cluster_id:
            self._cluster_id = cluster_id
            self.retry()

    def lead(self) -> None:
        """Write from now on, and what objects lack: what was written before this service led, or
        before there was an archive. To be called by the worker, once it has read all objects.
        """
        # Before the files are listed, so that none is written unnoticed in between.
        self.writes = True
        here = {p.name: p for p in self.folder.glob("*.json") if NAMED.fullmatch(p.name)}
        # Of a request whose newest dry run moves nothing.
        gone = {name for name in self._there if _kind(name) == "kept" and name not in here}
        changed = {name for name, path in here.items() if self._there.get(name) != _digest(path)}
        with self._lock:
            self._waiting |= gone | changed
        self.retry()

    def put(self, path: Path) -> None:
        """Write a file to its object soon; what was written before `lead` has waited for that."""
        if self.writes:
            with self._lock:
                self._waiting.add(path.name)
            self.retry()

    def retry(self) -> None:
        """Write what could not be written before, such as while the bucket was away."""
        with self._lock:
            if not self._waiting or self._submitted:
                return
            self._submitted = self._submit(self._write)

    def flush(self) -> None:
        """Wait until what has been put before is written, or `FLUSH_S` have passed."""
        done = threading.Event()
        if self._submit(done.set):
            done.wait(FLUSH_S)

    def refresh(self, changed: Callable[[Collection[str]], None]) -> None:
        """Read what others have written, in the thread of this object; returns at once.

        changed: is passed the names of the files that are others now, also where there are none.
        It is not called where the bucket cannot be read, or an earlier refresh has not ended.
        """
        with self._lock:
            if not self._refreshing:
                self._refreshing = self._submit(lambda: self._refresh(changed))

    # ---- the worker

    def _submit(self, work: Callable[[], object]) -> bool:
        with contextlib.suppress(RuntimeError):
            self._worker.submit(work)
            return True
        return False

    def _write(self) -> None:
        with self._lock:
            self._submitted = False
            if not self._cluster_id or not self.writes:
                return
            # Nothing names a plan that is not there yet.
            names, self._waiting = sorted(self._waiting, key=_rank), set()
        for number, name in enumerate(names):
            try:
                self._put(name)
            except (PlimsollError, OSError) as exc:
                self._warn(f"user tasks do not follow a takeover now: {exc}")
                # Each further file would wait as long for a bucket that does not answer.
                away = isinstance(exc, ArchiveUnreachable)
                with self._lock:
                    self._waiting.update(names[number:] if away else [name])
                if away:
                    return
        if names and not self._waiting:
            self._warned = ""

    def _put(self, name: str) -> None:
        for _ in range(SLOTS[_kind(name)]):
            data = b""
            try:
                data = (self.folder / name).read_bytes()
            except FileNotFoundError:
                if name not in self._slots:
                    return
            body = name.encode() + b"\n" + data
            slot = self._slots.get(name) or self._free(name)
            found = self._put_in(slot, name, body)
            if found is not None:
                self._seen[slot], self._slots[name] = found, slot
                self._note(name, data)
                return
        raise ConfigError(f"other services keep taking the objects of {self._prefix}")

    def _put_in(self, slot: str, name: str, body: bytes) -> str | None:
        """Write a file to an object; its ETag, None where that has another file meanwhile."""
        key, etag = f"{self._prefix}{slot}", self._seen.get(slot)
        found = self._bucket.put_over(key, body, etag) if etag else self._bucket.put_new(key, body)
        if found is not None:
            return found
        # Another service has led meanwhile.
        there = self._bucket.get(key)
        if there is None:
            self._seen.pop(slot, None)
            return None
        if _name_in(there) != name:
            # Of a task or plan that is known there alone: it stays, and is read.
            self._unread |= self._keep(slot, there)
            return None
        found = self._bucket.put_over(key, body, there.etag)
        if found is None:
            raise ConfigError(f"other services keep changing {key} in the archive")
        return found

    def _free(self, name: str) -> str:
        """An object for a new file: one that is not there, or whose file has been forgotten."""
        kind = _kind(name)
        used = {slot: of for of, slot in self._slots.items()}
        for number in range(SLOTS[kind]):
            slot = f"{kind}-{number:03d}"
            if slot in self._foreign:
                continue
            before = used.get(slot)
            if before is None or not (self.folder / before).exists():
                self._slots.pop(before or "", None)
                return slot
        raise ConfigError(f"more than {SLOTS[kind]} files of {self.folder} are kept")

    def _refresh(self, changed: Callable[[Collection[str]], None]) -> None:
        try:
            self._read(changed)
        finally:
            with self._lock:
                self._refreshing = False

    def _read(self, changed: Callable[[Collection[str]], None]) -> None:
        if not self._cluster_id:
            return
        try:
            for slot, etag in self._bucket.etags(self._prefix).items():
                if _SLOT.fullmatch(slot) and self._seen.get(slot) != etag:
                    found = self._bucket.get(f"{self._prefix}{slot}")
                    if found is not None:
                        self._unread |= self._keep(slot, found)
        except (PlimsollError, OSError) as exc:
            self._warn(f"user tasks of the service that leads cannot be read: {exc}")
            return
        self._warned = ""
        names, self._unread = self._unread, set()
        changed(names)

    def _keep(self, slot: str, found: Stored) -> set[str]:
        """Bring one object into the folder; the name of its file."""
        name, data = _name_in(found), found.body.partition(b"\n")[2]
        self._slots = {of: at for of, at in self._slots.items() if at != slot}
        if not NAMED.fullmatch(name) or not slot.startswith(f"{_kind(name)}-"):
            self._foreign.add(slot)
            self._seen[slot] = found.etag
            self._warn(f"{self._prefix}{slot} in the archive is not a file of user tasks")
            return set()
        self._foreign.discard(slot)
        make_folder(self.folder)
        if data:
            replace_file(self.folder / name, data)
        else:
            (self.folder / name).unlink(missing_ok=True)
        self._seen[slot], self._slots[name] = found.etag, slot
        self._note(name, data)
        return {name}

    def _note(self, name: str, data: bytes) -> None:
        """Remember what the object of a file has; nothing of one that has been removed."""
        self._there = {of: at for of, at in self._there.items() if of in self._slots}
        self._there.pop(name, None)
        if data:
            self._there[name] = hashlib.sha256(data).digest()

    @property
    def _prefix(self) -> str:
        return f"{ROOT}{path_part(self._cluster_id)}/"

    def _warn(self, words: str) -> None:
        if words != self._warned:
            self._warned = words
            _log.warning("%s", words, extra=named(LogEvent.REQUEST_FAILED))


def _digest(path: Path) -> bytes:
    """Of a file; empty where it has been removed meanwhile, or cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""


def _name_in(found: Stored) -> str:
    """The name of the file that an object has."""
    return found.body.partition(b"\n")[0].decode("ascii", "replace")


def _rank(name: str) -> tuple[int, str]:
    return ("plan", "kept", "task").index(_kind(name)), name


def _kind(name: str) -> str:
    found = NAMED.fullmatch(name)
    if found is None:
        raise ConfigError(f"{name} is not a file of user tasks")
    return found[1] or found[2]

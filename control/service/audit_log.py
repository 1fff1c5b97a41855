"""The audit log: every action of a person or client, in the state folder.

A record is appended and synced before its action begins, and a second one with the outcome after
it. The log is bounded: a full file is set aside, and the oldest one removed.
"""

import contextlib
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, ValidationError

from model.errors import ConfigError
from model.files import FileModel, make_folder, sync_folder
from model.printable import printable

FILE: Final = "audit.jsonl"
MOST_BYTES: Final = 1024 * 1024
"""Size from which a file is set aside."""
KEPT: Final = 4
"""Files that are set aside, `audit.1.jsonl` the newest."""
MOST_TEXT: Final = 500
"""Characters of a text in a record."""


class AuditOutcome(StrEnum):
    """How far an action has come."""

    REQUESTED = "requested"
    """It is about to begin."""
    DONE = "done"
    REFUSED = "refused"
    """Nothing was changed."""


class AuditVia(StrEnum):
    """How an action was requested."""

    SOCKET = "socket"
    """By `plimsoll ctl`, or another client of the control socket."""
    COMMAND = "command"
    """By a command that writes to the state folder."""
    SIGNAL = "signal"
    """By a signal, whose sender is not known."""


class AuditRecord(FileModel):
    """One record; unknown fields of later versions are ignored."""

    model_config = ConfigDict(extra="ignore")

    at_ms: int
    """Milliseconds since the epoch."""
    id: str
    """The same in all records of an action."""
    action: str
    by: str
    """The name that the client gave."""
    user: str
    """Login name of the client's process as the system has it; empty if unknown."""
    uid: int | None
    """Its user id; None where the platform does not report it."""
    pid: int | None
    via: AuditVia
    plan_hash: str
    """The plan that it is about: approved, rejected, or being executed; empty without one."""
    detail: str
    """What was requested beyond the action's name, such as a rate."""
    outcome: AuditOutcome
    message: str
    """What was done, or why not; empty before that."""


def new_id() -> str:
    """An id for the records of an action."""
    return secrets.token_hex(8)


class AuditLog:
    """Append records; several processes may do so at once."""

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        """folder: the state folder."""
        self.path = folder / FILE
        self._most_bytes = most_bytes

    def append(self, record: AuditRecord) -> None:
        """Append a record and sync it. Raises OSError; then the file has no part of it."""
        line = _line(record)
        make_folder(self.path.parent)
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                found = os.fstat(handle)
                if not self._is_current(found):
                    continue
                if not stat.S_ISREG(found.st_mode):
                    raise OSError(f"{self.path} is not a file")
                if found.st_size and found.st_size + len(line) > self._most_bytes:
                    self._set_aside()
                    continue
                self._write(handle, line, found.st_size)
                return
            finally:
                os.close(handle)

    def _write(self, handle: int, line: bytes, size: int) -> None:
        if size and os.pread(handle, 1, size - 1) != b"\n":
            # A line that a crash cut off must not swallow this one.
            line = b"\n" + line
        try:
            written = os.write(handle, line)
            if written < len(line):
                raise OSError(f"{self.path}: no space is left")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise
        if not size:
            sync_folder(self.path.parent)

    def _is_current(self, found: os.stat_result) -> bool:
        """Whether another process has not set the open file aside meanwhile."""
        try:
            return os.path.samestat(os.lstat(self.path), found)
        except FileNotFoundError:
            return False

    def _set_aside(self) -> None:
        """Rename the files; the lock on the newest one keeps other processes out."""
        paths = [self.path, *(aside(self.path.parent, n) for n in range(1, KEPT + 1))]
        for newer, older in reversed(list(pairwise(paths))):
            if newer.exists():
                newer.replace(older)


@contextlib.contextmanager
def recorded(folder: Path, record: AuditRecord, message: str) -> Iterator[None]:
    """Record an action before the block, and how it ended after it; message: once it is done.

    Raises ConfigError where the log cannot be written; the block then does not begin.
    """
    log = AuditLog(folder)
    try:
        log.append(record)
    except OSError as exc:
        raise ConfigError(
            f"the audit log {log.path} cannot be written: {exc.strerror or exc}; nothing was done"
        ) from exc
    ended = {"outcome": AuditOutcome.DONE, "message": message}
    try:
        yield
    except Exception as exc:
        ended = {"outcome": AuditOutcome.REFUSED, "message": printable(str(exc))}
        raise
    finally:
        with contextlib.suppress(OSError):
            log.append(record.model_copy(update=ended))


def aside(folder: Path, number: int) -> Path:
    """A file that was set aside; 1 is the newest."""
    return folder / f"audit.{number}.jsonl"


def read_audit(folder: Path) -> list[AuditRecord]:
    """All records that are left, oldest first; lines that are not whole are left out.

    Raises ConfigError where a file cannot be read.
    """
    paths = [*(aside(folder, n) for n in range(KEPT, 0, -1)), folder / FILE]
    return [record for path in paths for record in _records(path)]


def _records(path: Path) -> Iterator[AuditRecord]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            # Nothing that plimsoll writes is longer.
            file.seek(max(0, size - 2 * MOST_BYTES))
            lines = file.read(2 * MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return
    except OSError as exc:
        raise ConfigError(f"cannot read the audit log {path}: {exc.strerror or exc}") from exc
    for line in lines:
        try:
            yield AuditRecord.model_validate_json(line)
        except ValidationError:
            continue


def _line(record: AuditRecord) -> bytes:
    texts = {
        name: printable(value[:MOST_TEXT])[:MOST_TEXT]
        for name, value in record.model_dump(mode="json").items()
        if isinstance(value, str)
    }
    document = record.model_dump(mode="json") | texts
    return json.dumps(document, sort_keys=True).encode() + b"\n"

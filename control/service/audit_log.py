"""The audit log: every action of a person or client, in the state folder.

A record is appended and synced before its action begins, and a second one with the outcome after
it. The log is bounded: a full file is set aside, and the oldest one removed.
"""

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final

from pydantic import ConfigDict, Field, ValidationError

from model.bounded import END_MS
from model.errors import ConfigError
from model.file_locks import locked_file, plain_file
from model.files import FileModel, make_folder, sync_folder
from model.printable import printable
from model.units import count_text, listed, seconds_text

FILE: Final = "audit.jsonl"
MOST_BYTES: Final = 1024 * 1024
"""Size from which a file is set aside."""
KEPT: Final = 4
"""Files that are set aside, `audit.1.jsonl` the newest."""
MOST_TEXT: Final = 500
"""Characters of a text in a record."""
MOST_RANGES: Final = 10
"""Damaged lines that a warning names, or ranges of them."""
LOCK_WAIT_S: Final = 2.0
"""Seconds that a record waits for another process; people wait for an action as long."""


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
    SCREEN = "screen"
    """By an operator at the screen."""
    HTTP = "http"
    """By a client of the HTTP listener that has logged in."""
    SIGNAL = "signal"
    """By a signal, whose sender is not known."""
    CRUISE_CONTROL = "cruise-control"
    """By a client of Cruise Control, whose address is its name."""


class AuditRecord(FileModel):
    """One record; unknown fields of later versions are ignored."""

    model_config = ConfigDict(extra="ignore")

    at_ms: Annotated[int, Field(ge=0, lt=END_MS)]
    """Milliseconds since the epoch."""
    id: str
    """The same in all records of an action."""
    action: str
    by: str
    """The name that the client gave, or with which it logged in over HTTP."""
    user: str
    """Login name of the client's process as the system has it; empty if unknown."""
    uid: int | None
    """Its user id; None where the platform does not report it."""
    pid: int | None
    client: str = ""
    """Address of a client over HTTP; empty for all else."""
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

    def __init__(
        self, folder: Path, *, most_bytes: int = MOST_BYTES, wait_s: float = LOCK_WAIT_S
    ) -> None:
        """folder: the state folder. wait_s: for another process that has the lock."""
        self.path, self._wait_s = folder / FILE, wait_s
        self._most_bytes = most_bytes

    def check(self) -> None:
        """Raise ConfigError where something else than a file is in the log's place."""
        try:
            os.close(plain_file(self.path, os.O_RDONLY))
        except FileNotFoundError:
            return
        except OSError as exc:
            raise _unusable(self.path, exc) from exc

    def append(self, record: AuditRecord) -> None:
        """Append a record and sync it. Raises OSError; then the file has no part of it.

        A process that was stopped while it had the lock does not keep this one waiting.
        """
        line = _line(record)
        if not self.path.exists():
            make_folder(self.path.parent)
        while True:
            file = locked_file(self.path, self._wait_s)
            if file is None:
                words = f"another process has had its lock for {seconds_text(self._wait_s)}"
                raise OSError(errno.EAGAIN, words)
            with file:
                handle, size = file.fileno(), os.fstat(file.fileno()).st_size
                if size and size + len(line) > self._most_bytes:
                    self._set_aside()
                    continue
                self._write(handle, line, size)
                return

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


def read_audit(
    folder: Path, warn: Callable[[str], None] = lambda _warning: None
) -> list[AuditRecord]:
    """All records that are left, oldest first.

    warn: hears how many lines of a file are damaged, and which. They are left out.

    Raises ConfigError where a file cannot be read.
    """
    paths = [*(aside(folder, n) for n in range(KEPT, 0, -1)), folder / FILE]
    return [record for path in paths for record in _records(path, warn)]


def _records(path: Path, warn: Callable[[str], None]) -> Iterator[AuditRecord]:
    try:
        with os.fdopen(plain_file(path, os.O_RDONLY), "rb") as file:
            # Nothing that plimsoll writes is longer.
            skipped = max(0, os.fstat(file.fileno()).st_size - 2 * MOST_BYTES)
            file.seek(skipped)
            lines = file.read(2 * MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return
    except OSError as exc:
        raise _unusable(path, exc) from exc
    if skipped:
        warn(f"{path} is too long: what comes before byte {skipped} is not read")
        del lines[0]
    damaged = []
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                yield AuditRecord.model_validate_json(line)
        except ValidationError:
            damaged.append(number)
    if damaged:
        after = f", counted from byte {skipped}" if skipped else ""
        warn(
            f"{path}: {count_text(len(damaged), 'line')} left out as damaged: "
            f"{_ranges_text(damaged)}{after}"
        )


def _ranges_text(numbers: Sequence[int]) -> str:
    """Ascending numbers such as `3, 7-9`; of many ranges, the first."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return listed([f"{a}" if a == b else f"{a}-{b}" for a, b in ranges], MOST_RANGES)


def _unusable(path: Path, exc: OSError) -> ConfigError:
    return ConfigError(f"cannot use the audit log {path}: {exc.strerror or exc}")


def _line(record: AuditRecord) -> bytes:
    texts = {
        name: printable(value[:MOST_TEXT])[:MOST_TEXT]
        for name, value in record.model_dump(mode="json").items()
        if isinstance(value, str)
    }
    document = record.model_dump(mode="json") | texts
    return json.dumps(document, sort_keys=True).encode() + b"\n"

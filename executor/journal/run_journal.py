"""The journal of a run: one file of JSON lines, synced before every request.

Because a record is written first, the file holds every request, even if this process
dies right after sending it. Records are only appended; a run without an ENDED record
was interrupted. The plan is stored beside the file. `executor.journal.records` chains
the lines, `executor.journal.run_history` reads them.
"""

import contextlib
import errno
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any, Final

from executor.journal.records import JournalEnd, scan, sealed
from executor.timing import Timing
from model.bounded import read_bytes
from model.errors import ConfigError, WriterBarred
from model.files import make_folder, sync_folder, write_document
from model.log_events import LogEvent, named
from model.paths import path_part
from model.plan.plan import Move, Plan
from model.run import JournalEvent, JournalRecord

SUFFIX: Final = ".jsonl"
PLAN_SUFFIX: Final = ".plan.json"
_COUNTED: Final = re.compile(r"r\d{8}-")
_ACTION: Final = re.compile(r"r\d+-\d{8}T\d{9}-(elect|topic|cordon)")
_ACTIONS: Final = ("-elect", "-topic", "-cordon")
HASH_DIGITS: Final = 8
"""Digits of the plan's hash at the end of a run's id."""
CORDON: Final = "cordon"
"""The kind of an action that cordons brokers, or ends it."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_REPORTS: Final = frozenset(
    {
        JournalEvent.PREPARED,
        JournalEvent.UNTHROTTLED,
        JournalEvent.UNCORDONED,
        JournalEvent.BALANCER_RESTORED,
        JournalEvent.SEGMENTS_RESTORED,
        JournalEvent.PAUSED,
        JournalEvent.PAUSE_ENDED,
        JournalEvent.ISSUED,
        JournalEvent.MOVED,
        JournalEvent.NOTED,
        JournalEvent.DROPPED,
        JournalEvent.STUCK,
        JournalEvent.ENDED,
    }
)
"""Records that announce no request: if they are lost, the cluster shows the same."""

_log = logging.getLogger("plimsoll.executor")


@dataclass(frozen=True, slots=True)
class Action:
    """A change without a plan, such as an election: journalled, never resumed."""

    cluster_id: str
    hash: str = ""


class RunJournal:
    """The journal of one run; each write is on disk when it returns.

    The file is created with the first record; that of a resumed run is continued.
    `sink` receives each write afterwards.

    Where a record cannot be written, `failure` says why from then on. A record that announces a
    request raises WriterBarred, as every later one of that kind does. Other records are kept,
    and written with the next one that succeeds, so that the fate of moves in flight is not lost
    once there is space again. A file that is removed during the run is written again with the
    next record. Raises ConfigError where the file cannot be created, and as `sink` does.
    """

    def __init__(
        self,
        journal_dir: Path,
        plan: Plan | Action,
        run_id: str,
        timing: Timing,
        *,
        resumed: bool = False,
        sink: Callable[[JournalEvent, bytes], None] | None = None,
    ) -> None:
        self.path = run_path(journal_dir, run_id)
        self.run_id = run_id
        self.failure = ""
        """Why the journal could not be written; empty while all is well."""
        self.problem = ""
        """The operating system's message for it."""
        self._plan = plan
        self._timing = timing
        self._resumed = resumed
        self._sink = sink
        self._file: FileIO | None = None
        self._end = JournalEnd()
        self._size = 0
        """Bytes up to the end of the last complete write."""
        self._unwritten: list[JournalRecord] = []

    def write(
        self, event: JournalEvent, moves: Sequence[Move | None] = (None,), **detail: Any
    ) -> None:
        """Write one record per move, or one about the run, and sync them together.

        Raises WriterBarred for a record that announces a request but cannot be written.
        """
        if self.failure and event not in _REPORTS:
            raise WriterBarred(self.failure)
        records = [self._record(event, move, detail) for move in moves]
        try:
            if self._file is None:
                self._file = self._open(event)
            elif not self.path.exists():
                self._file = self._recreated(self._file)
            lines = self._append(self._file, [*self._unwritten, *records])
        except OSError as exc:
            self._fail(event, records, exc)
            return
        self._unwritten = []
        if self._sink is not None:
            self._sink(event, lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            # A failed write has been reported already.
            with contextlib.suppress(OSError):
                self._file.close()

    def _append(self, file: FileIO, records: Sequence[JournalRecord]) -> bytes:
        """Append and sync records, over remains of a failed write; raises OSError."""
        lines, end = b"", self._end
        for record in records:
            line, end = sealed(record, end)
            lines += line
        if self.failure:
            file.truncate(self._size)
        file.seek(self._size)
        _write_all(file, lines)
        os.fsync(file.fileno())
        self._end, self._size = end, self._size + len(lines)
        return lines

    def _fail(self, event: JournalEvent, records: Sequence[JournalRecord], exc: OSError) -> None:
        begun = self._resumed or self._end.sequence > 0
        remedy = "Free disk space" if exc.errno in _FULL else "Make it writable"
        what_then = (
            f"{remedy}, then continue with plimsoll run --resume."
            if begun
            else f"Nothing was changed. {remedy}, then try again."
        )
        self.problem = self.problem or f"{exc.strerror}"
        self.failure = self.failure or (
            f"The journal {self.path} cannot be written ({exc.strerror}), so nothing "
            f"further is sent. {what_then}"
        )
        if event not in _REPORTS:
            raise WriterBarred(self.failure) from exc
        self._unwritten += records

    def _record(
        self, event: JournalEvent, move: Move | None, detail: dict[str, Any]
    ) -> JournalRecord:
        return JournalRecord(
            at_ms=self._timing.now_ms(),
            event=event,
            run_id=self.run_id,
            plan_hash=self._plan.hash,
            cluster_id=self._plan.cluster_id,
            topic=move.topic if move else None,
            partition=move.partition if move else None,
            replicas_before=move.replicas_before if move else (),
            replicas_after=move.replicas_after if move else (),
            detail=detail,
        )

    def _open(self, event: JournalEvent) -> FileIO:
        """Create or continue the file.

        Raises ConfigError; OSError where an event that announces no request cannot be
        added, since what it reports has happened anyway.
        """
        try:
            if self._resumed:
                return self._reopened()
            return self._made()
        except OSError as exc:
            if self._resumed and event in _REPORTS:
                raise
            raise ConfigError(
                f"The journal {self.path} cannot be created ({exc.strerror}); nothing "
                "was changed. Set state_dir to a writable folder."
            ) from exc

    def _made(self, content: bytes = b"") -> FileIO:
        """Create a file with this content, and the plan beside it; raises OSError."""
        folder = self.path.parent
        make_folder(folder)
        beside_it = plan_path(folder, self.run_id)
        if isinstance(self._plan, Plan) and not beside_it.exists():
            # Before the journal, since a run with a journal can be resumed.
            plan = self._plan.model_dump(mode="json")
            write_document(beside_it, plan, private=True)
        opened = self.path.open("x+b", buffering=0)
        try:
            _write_all(opened, content)
            sync_folder(folder)
        except OSError:
            # A partial file must not be mistaken for a complete one.
            opened.close()
            self.path.unlink()
            raise
        return opened

    def _recreated(self, removed: FileIO) -> FileIO:
        """Recreate a removed file, whose content this process still has; raises OSError.

        Without it the run could be neither resumed nor rolled back.
        """
        removed.seek(0)
        opened = self._made(removed.readall()[: self._size])
        removed.close()
        _log.warning(
            "the journal %s was removed and is written again",
            self.path,
            extra=named(LogEvent.JOURNAL_REWRITTEN),
        )
        return opened

    def _reopened(self) -> FileIO:
        """Open the file at the end of its last complete line."""
        kept = whole_lines(self.path)
        self._end, self._size = scan(kept, self.run_id).end(kept), len(kept)
        opened = self.path.open("r+b", buffering=0)
        try:
            opened.truncate(len(kept))
            if kept:
                # The newline may be missing or damaged.
                opened.seek(len(kept) - 1)
                _write_all(opened, b"\n")
        except OSError:
            opened.close()
            raise
        return opened


def _write_all(file: FileIO, data: bytes) -> None:
    """Write everything; an unbuffered file may take a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def run_path(journal_dir: Path, run_id: str) -> Path:
    """The path of a run's journal."""
    return journal_dir / (path_part(run_id) + SUFFIX)


def plan_path(journal_dir: Path, run_id: str) -> Path:
    """The path of a run's plan."""
    return journal_dir / (path_part(run_id) + PLAN_SUFFIX)


def run_paths(journal_dir: Path) -> list[Path]:
    """Journals of runs, oldest first, regardless of the clock."""
    return [
        journal_dir / (name + SUFFIX) for name in journal_ids(journal_dir) if not is_action(name)
    ]


def journal_paths(journal_dir: Path) -> list[Path]:
    """Journals of runs and other changes, in the order of `run_paths`."""
    return [journal_dir / (name + SUFFIX) for name in journal_ids(journal_dir)]


def journal_ids(journal_dir: Path) -> list[str]:
    """Ids of runs and other changes, in the order of `run_paths`; empty without a folder."""
    return [*journal_inodes(journal_dir)]


def journal_inodes(journal_dir: Path) -> dict[str, int]:
    """The numbers of the files of `journal_ids`, by id and in the same order."""
    end = -len(SUFFIX)
    try:
        with os.scandir(journal_dir) as entries:
            # There may be many, and another file system call for each takes longer than all else.
            inodes = {e.name[:end]: e.inode() for e in entries if e.name.endswith(SUFFIX)}
    except OSError:
        return {}
    # Eight digits sort as their numbers do.
    key = None if all(map(_COUNTED.match, inodes)) else order
    return {run_id: inodes[run_id] for run_id in sorted(inodes, key=key)}


def order(run_id: str) -> tuple[int, str]:
    """The sort key of run ids: the counter, then the id."""
    number = run_id[1:].partition("-")[0] if run_id.startswith("r") and "-" in run_id else ""
    return int(number) if number.isdecimal() else 0, run_id


def is_action(run_id: str) -> bool:
    """Whether it is an action without a plan, which is not resumed, rolled back or cleaned up."""
    # The end alone tells almost all runs, of which there may be many.
    return run_id.endswith(_ACTIONS) and _ACTION.fullmatch(run_id) is not None


def kind_of(run_id: str) -> str | None:
    """The kind of an action, such as `elect`; None for a run."""
    found = _ACTION.fullmatch(run_id)
    return None if found is None else found[1]


def of_plans(run_ids: Iterable[str], plans: Iterable[str]) -> list[str]:
    """Those of these runs whose ids end as those of the plans with these hashes do."""
    ends = {plan_hash[:HASH_DIGITS] for plan_hash in plans}
    return [run_id for run_id in run_ids if run_id.rpartition("-")[2] in ends]


def backup_path(path: Path, suffix: str) -> Path:
    """An unused name beside a file, for a backup."""
    names = (f"{path.name}{suffix}{number or ''}" for number in count())
    return next(p for p in map(path.with_name, names) if not p.exists())


def whole_lines(path: Path) -> bytes:
    """The journal's complete lines, without a partial last write."""
    data = read_bytes(path, what="the journal ", regular=True)
    found = scan(data, path.stem)
    kept = data[: found.keep_bytes]
    return kept if found.ends_line else kept + b"\n"

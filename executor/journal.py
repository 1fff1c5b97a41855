"""Runs on disk: one file of JSON lines each, synced before every request.

A file tells what was asked of the cluster even when this process dies right after
asking. Nothing is ever changed in it; a run without an ENDED record was cut off.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from pydantic import ValidationError

from executor.timing import Timing
from model.errors import ConfigError, ExecutionStopped
from model.files import canonical
from model.ids import PartitionId
from model.plan import Move, Plan
from model.run import JournalEvent, JournalRecord
from model.snapshot import RecentMove

_SUFFIX: Final = ".jsonl"
_SENT: Final = (JournalEvent.ISSUING, JournalEvent.ISSUED, JournalEvent.ELECTING)


class Journal:
    """The journal of one run; writes are on disk when they return.

    The file is made with the first record. Raises ConfigError where it cannot be
    made, ExecutionStopped where a later record cannot be written.
    """

    def __init__(
        self, journal_dir: Path, plan: Plan, run_id: str, timing: Timing
    ) -> None:
        self.path = journal_dir / (run_id + _SUFFIX)
        self.run_id = run_id
        self._plan = plan
        self._timing = timing
        self._file: IO[bytes] | None = None

    def write(
        self, event: JournalEvent, moves: Sequence[Move | None] = (None,), **detail: Any
    ) -> None:
        """One record per move, or one about the run; all synced together."""
        lines = b"".join(self._line(event, move, detail) for move in moves)
        if self._file is None:
            self._file = self._create()
        try:
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as exc:
            raise ExecutionStopped(
                f"The journal {self.path} cannot be written ({exc.strerror}), so "
                "nothing further is sent. Make room, then plan again."
            ) from exc

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _line(
        self, event: JournalEvent, move: Move | None, detail: dict[str, Any]
    ) -> bytes:
        record = JournalRecord(
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
        return canonical(record.model_dump(mode="json"))

    def _create(self) -> IO[bytes]:
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            opened = self.path.open("xb")
            _sync_folder(folder)
        except OSError as exc:
            raise ConfigError(
                f"The journal {self.path} cannot be made ({exc.strerror}); nothing was "
                "changed. Set state_dir to a folder that can be written."
            ) from exc
        return opened


def read_journal(path: Path) -> tuple[JournalRecord, ...]:
    """The records of one run; a last line that was cut off is left out.

    Raises ConfigError where another line cannot be read, with its number.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as exc:
        raise ConfigError(f"cannot read the journal {path}: {exc.strerror}") from exc
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(JournalRecord.model_validate_json(line))
        except ValidationError as exc:
            if number == len(lines):
                break
            raise ConfigError(
                f"{path}, line {number}, is no journal record. Move the file away if "
                "its runs need not be remembered."
            ) from exc
    return tuple(records)


@dataclass(slots=True)
class _Trace:
    """What became of one partition in one run."""

    run_id: str
    move: RecentMove
    open: bool
    """Whether it was sent and its end was not seen."""


def recent_moves(
    journal_dir: Path, cluster_id: str, since_ms: int
) -> tuple[RecentMove, ...]:
    """Moves on a cluster since a time, oldest first.

    A move that was sent counts even where its end was not seen: it may have been
    made. Raises ConfigError for a journal that cannot be read.
    """
    found = [
        trace.move
        for path in _paths(journal_dir)
        # A file is not touched after its last record.
        if path.stat().st_mtime_ns >= 1_000_000 * since_ms
        for trace in _traces(path, cluster_id).values()
        if trace.move.at_ms >= since_ms
    ]
    return tuple(sorted(found, key=lambda m: (m.at_ms, m.topic, m.partition)))


def unfinished(journal_dir: Path, cluster_id: str) -> dict[PartitionId, str]:
    """Partitions whose last move was sent and not seen to its end, with the run's id.

    Raises ConfigError for a journal that cannot be read.
    """
    last: dict[PartitionId, _Trace] = {}
    for path in _paths(journal_dir):
        last |= _traces(path, cluster_id)
    return {pid: trace.run_id for pid, trace in last.items() if trace.open}


def _paths(journal_dir: Path) -> list[Path]:
    """Oldest first: run ids begin with the time."""
    return sorted(journal_dir.glob("*" + _SUFFIX))


def _traces(path: Path, cluster_id: str) -> dict[PartitionId, _Trace]:
    """What the run in a file did; nothing where it is about another cluster."""
    traces: dict[PartitionId, _Trace] = {}
    for record in read_journal(path):
        pid = record.id
        if pid is None or record.cluster_id != cluster_id:
            continue
        if record.event in _SENT or record.event is JournalEvent.MOVED:
            is_open = record.event is not JournalEvent.MOVED
            traces[pid] = _Trace(record.run_id, _recent(pid, record), is_open)
        elif record.event is JournalEvent.DROPPED:
            traces.pop(pid, None)
    return traces


def _recent(pid: PartitionId, record: JournalRecord) -> RecentMove:
    before, after = record.replicas_before, record.replicas_after
    return RecentMove(
        topic=pid.topic,
        partition=pid.partition,
        left=tuple(b for b in before if b not in after),
        at_ms=record.at_ms,
    )


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

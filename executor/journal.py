"""Runs on disk: one file of JSON lines each, synced before every request.

A file tells what was asked of the cluster even when this process dies right after
asking. Nothing is ever changed in it; a run without an ENDED record was cut off. The
plan lies beside it. `executor.history` reads both.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

from executor.timing import Timing
from model.errors import ConfigError, ExecutionStopped
from model.files import canonical, write_document
from model.paths import path_part
from model.plan import Move, Plan
from model.run import JournalEvent, JournalRecord

_SUFFIX: Final = ".jsonl"
_PLAN_SUFFIX: Final = ".plan.json"


class Journal:
    """The journal of one run; writes are on disk when they return.

    The file is made with the first record; that of a run that is resumed is gone on
    with. `sink` is then told of each write. Raises ConfigError where that cannot be,
    ExecutionStopped where a later record cannot be written, and as `sink` does.
    """

    def __init__(
        self,
        journal_dir: Path,
        plan: Plan,
        run_id: str,
        timing: Timing,
        *,
        resumed: bool = False,
        sink: Callable[[JournalEvent, bytes], None] | None = None,
    ) -> None:
        self.path = run_path(journal_dir, run_id)
        self.run_id = run_id
        self._plan = plan
        self._timing = timing
        self._resumed = resumed
        self._sink = sink
        self._file: IO[bytes] | None = None

    def write(
        self, event: JournalEvent, moves: Sequence[Move | None] = (None,), **detail: Any
    ) -> None:
        """One record per move, or one about the run; all synced together."""
        lines = b"".join(self._line(event, move, detail) for move in moves)
        if self._file is None:
            self._file = self._open()
        try:
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as exc:
            raise ExecutionStopped(
                f"The journal {self.path} cannot be written ({exc.strerror}), so "
                "nothing further is sent. Make room, then plan again."
            ) from exc
        if self._sink is not None:
            self._sink(event, lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            # What could not be written was told when it was.
            with contextlib.suppress(OSError):
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

    def _open(self) -> IO[bytes]:
        folder = self.path.parent
        try:
            if self._resumed:
                return _reopened(self.path)
            folder.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                # Before the journal: a run that has one can be gone on with.
                plan = self._plan.model_dump(mode="json")
                write_document(plan_path(folder, self.run_id), plan)
            opened = self.path.open("xb")
            _sync_folder(folder)
        except OSError as exc:
            raise ConfigError(
                f"The journal {self.path} cannot be made ({exc.strerror}); nothing "
                "was changed. Set state_dir to a folder that can be written."
            ) from exc
        return opened


def run_path(journal_dir: Path, run_id: str) -> Path:
    """The journal of a run."""
    return journal_dir / (path_part(run_id) + _SUFFIX)


def plan_path(journal_dir: Path, run_id: str) -> Path:
    """The plan that a run carries out."""
    return journal_dir / (path_part(run_id) + _PLAN_SUFFIX)


def run_paths(journal_dir: Path) -> list[Path]:
    """All journals, oldest first: run ids begin with the time."""
    return sorted(journal_dir.glob("*" + _SUFFIX))


def whole_lines(path: Path) -> bytes:
    """A journal without a last line that a crash has cut off."""
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1]


def _reopened(path: Path) -> IO[bytes]:
    """Open at the end of the last whole line."""
    whole = len(whole_lines(path))
    opened = path.open("r+b")
    opened.truncate(whole)
    opened.seek(whole)
    return opened


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""File format of a recorded session: one JSON line for each change of the screen.

The first line is the header. Each further line has what differs from the one before:
fields of `LoopView` by name; of a run, only the moves that changed; of a snapshot,
only the loads if nothing else changed. Loads have four digits, as on the screen.
"""

import contextlib
import gzip
import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeVar, get_type_hints

import numpy as np
from pydantic import TypeAdapter

from control.loop.view import LogLine, LoopView
from model.cpu import columns_to_file
from model.errors import ConfigError
from model.files import VersionedModel
from model.goals.goals import Goals
from model.run import MoveProgress, RunProgress, RunReport
from model.snapshot.file import SnapshotDocument
from model.snapshot.snapshot import Snapshot
from model.stop_rules import StopRules

T = TypeVar("T", LoopView, RunProgress, MoveProgress)

KIND: Final = "plimsoll.screen"
MAJOR: Final = 1
DIGITS: Final = 4
_OWN: Final = ("snapshot", "evaluation", "run", "log", "at_ms")
"""Fields of a view with an encoding of their own, or derived from others."""


class RecordingHeader(VersionedModel):
    """First line: what stays the same throughout the session."""

    kind: Literal["plimsoll.screen"] = KIND
    schema_version: str = "1.1"
    bootstrap: str
    name: str | None
    goals: Goals
    throttle: int | Literal["auto"] | None
    stop_rules: StopRules


class Frame(VersionedModel):
    """A further line: the differences from the view before."""

    after_s: float
    """Seconds of wall-clock time since the first view."""
    at_ms: int
    """Time of the view, milliseconds since the epoch."""
    running: bool
    view: dict[str, Any] = {}
    """Changed fields by name."""
    snapshot: Any = None
    """The whole snapshot, if more than its loads changed."""
    loads: list[list[float | None]] | None = None
    """Loads by row of the previous snapshot."""
    taken_at_ms: int | None = None
    """When these loads were measured, milliseconds since the epoch."""
    run: Any = None
    """The whole run, if it is a new one."""
    run_changes: dict[str, Any] = {}
    """Changed fields by name; of the moves, changed ones by position."""
    log: list[Any] = []
    """New lines of the log."""
    report: RunReport | None = None
    """Report of a run that ended since the view before."""


@cache
def adapters() -> Mapping[str, TypeAdapter[Any]]:
    """Converters of the fields of views, runs and moves, by name."""
    found: dict[str, TypeAdapter[Any]] = {
        "snapshot": TypeAdapter(SnapshotDocument),
        "run": TypeAdapter(RunProgress),
        "log": TypeAdapter(tuple[LogLine, ...]),
    }
    for owner in (LoopView, RunProgress, MoveProgress):
        hints = get_type_hints(owner)
        for field in fields(owner):
            key = f"{owner.__name__}.{field.name}"
            if field.name not in _OWN:
                found[key] = TypeAdapter(hints[field.name])
    return found


def dumped(key: str, value: Any) -> Any:
    """Convert a value to JSON types; key: a key of `adapters`."""
    return adapters()[key].dump_python(value, mode="json")


def loaded(key: str, value: Any) -> Any:
    """Convert a value from JSON types; raises ValidationError."""
    return adapters()[key].validate_json(json.dumps(value))


class RecordingWriter:
    """Write a recording: of each view only what differs from the one before.

    Every method but `close` raises ConfigError if the file cannot be written.
    """

    def __init__(self, path: Path, header: RecordingHeader) -> None:
        self._path = path
        self._file = opened(path, "wt")
        self._last: LoopView | None = None
        self._write(header.model_dump_json())

    def add(
        self, view: LoopView, *, after_s: float, running: bool, report: RunReport | None
    ) -> None:
        """Append the differences from the view before.

        after_s: seconds of wall-clock time since the first view.
        """
        last, self._last = self._last, view
        frame = Frame(
            after_s=round(after_s, 3),
            at_ms=view.at_ms,
            running=running,
            view=_changed(last, view, *_OWN),
            log=dumped("log", _added(last, view)),
            report=report,
            **_snapshot(last, view),
            **_run(last, view),
        )
        self._write(frame.model_dump_json(exclude_defaults=True))

    def close(self) -> None:
        """Close the file."""
        # A failed write has been reported already.
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, line: str) -> None:
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as exc:
            self.close()
            raise ConfigError(f"cannot write the recording {self._path}: {exc.strerror}") from exc


def opened(path: Path, mode: str) -> IO[str]:
    """Open a recording as text, compressed if it ends in `.gz`; ConfigError."""
    try:
        if path.suffix == ".gz":
            return gzip.open(path, mode, encoding="utf-8")  # type: ignore[return-value]  # text by its mode
        return path.open(mode, encoding="utf-8")
    except OSError as exc:
        does = "write" if "w" in mode else "read"
        raise ConfigError(f"cannot {does} the recording {path}: {exc.strerror}") from exc


def _changed(last: T | None, now: T, *apart: str) -> dict[str, Any]:
    """Fields that differ, by name and without those `apart`; all if there is no `last`."""
    owner = type(now)
    return {
        field.name: dumped(f"{owner.__name__}.{field.name}", getattr(now, field.name))
        for field in fields(owner)
        if field.name not in apart
        and (last is None or getattr(last, field.name) != getattr(now, field.name))
    }


def _added(last: LoopView | None, view: LoopView) -> tuple[LogLine, ...]:
    """New log lines since the view before."""
    if last is None or not last.log or last.log[-1] not in view.log:
        return view.log
    lines = list(view.log)
    newest = len(lines) - 1 - lines[::-1].index(last.log[-1])
    return tuple(lines[newest + 1 :])


def _snapshot(last: LoopView | None, view: LoopView) -> dict[str, Any]:
    now, before = view.snapshot, None if last is None else last.snapshot
    if now is None or now is before:
        return {}
    if before is not None and _only_loads_differ(before, now):
        rows = columns_to_file(now.partitions.loads, now.header.resources).tolist()
        return {
            "loads": [[_short(value) for value in row] for row in rows],
            "taken_at_ms": now.header.taken_at_ms,
        }
    return {"snapshot": dumped("snapshot", now)}


def _only_loads_differ(before: Snapshot, now: Snapshot) -> bool:
    """Whether snapshots differ only by loads and the times they follow from."""
    return before.fingerprint == now.fingerprint and _lasting(before) == _lasting(now)


def _lasting(of: Snapshot) -> tuple[Any, ...]:
    header = of.header
    return header.brokers, header.topics, header.resources, len(header.sources)


def _short(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.{DIGITS - 1}e}")


def _run(last: LoopView | None, view: LoopView) -> dict[str, Any]:
    now, before = view.run, None if last is None else last.run
    if now is None or now is before:
        return {}
    if before is None or before.run_id != now.run_id:
        return {"run": dumped("run", now)}
    pairs = enumerate(zip(before.moves, now.moves, strict=True))
    moves = {str(n): _changed(None, new, "move") for n, (old, new) in pairs if old != new}
    changes = _changed(before, now, "moves")
    return {"run_changes": changes | ({"moves": moves} if moves else {})}

"""Read a recorded session; the inverse of `control.session_recording.format`."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from control.loop.view import LOG_LINES, LoopView
from control.session_recording.format import KIND, MAJOR, Frame, RecordingHeader, loaded, opened
from model.bounded import MOST_LINE, InvalidJson, check_times, parse_json, refuse_named_pipe
from model.cpu import columns_from_file
from model.errors import ConfigError, InvalidCluster, PlimsollError
from model.evaluate import evaluate
from model.files import major_of
from model.goals.goals import Goals
from model.goals.topic_placement import with_topic_placements
from model.run import MoveProgress, RunProgress, RunReport
from model.snapshot.snapshot import Floats, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedView:
    """What the screen showed from one moment on."""

    after_s: float
    """Seconds of wall-clock time since the first view."""
    running: bool
    view: LoopView
    report: RunReport | None
    """Report of a run that ended since the view before."""


def read_recording(path: Path) -> tuple[RecordingHeader, Iterator[RecordedView]]:
    """Read the header at once, and the views lazily.

    An incomplete last line is ignored.

    Raises
    ------
    ConfigError
        The file cannot be read, or is not a recording; names the line. The iterator
        raises it, too.
    """
    refuse_named_pipe(path, "the recording ")
    lines = enumerate(_lines(path), 1)
    header = _header(path, next(lines, (1, ""))[1])
    return header, _views(path, lines, header.goals)


def _views(path: Path, lines: Iterator[tuple[int, str]], goals: Goals) -> Iterator[RecordedView]:
    view: LoopView | None = None
    for number, line in lines:
        if not line.endswith("\n"):
            return
        try:
            check_times(parse_json(line))
            frame = Frame.model_validate_json(line)
            view = _after(view, frame, goals)
        except (PlimsollError, LookupError, TypeError, ValueError) as exc:
            where = f"{path}, line {number}, is not a valid line of a recording"
            raise ConfigError(f"{where}: {_fault(exc)}") from exc
        yield RecordedView(
            after_s=frame.after_s, running=frame.running, view=view, report=frame.report
        )


def _fault(exc: Exception) -> str:
    if isinstance(exc, InvalidJson):
        return f"not valid JSON: {exc.reason}"
    if not isinstance(exc, ValidationError):
        return str(exc)
    first = exc.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def _lines(path: Path) -> Iterator[str]:
    with opened(path, "rt") as file:
        try:
            while line := file.readline(MOST_LINE):
                if len(line) == MOST_LINE:
                    raise ValueError(f"a line has more than {MOST_LINE} characters")
                yield line
        except UnicodeDecodeError as exc:
            raise ConfigError(f"{path} is not valid UTF-8, so not a recording") from exc
        except (OSError, EOFError, ValueError, zlib.error) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise ConfigError(f"cannot read the recording {path}: {reason}") from exc


def _header(path: Path, line: str) -> RecordingHeader:
    try:
        document = parse_json(line)
        kind, version = document["kind"], str(document["schema_version"])
    except (ValueError, KeyError, TypeError) as exc:
        raise ConfigError(f"{path}, line 1, is not the header of a recording") from exc
    if kind == KIND and (major_of(version) or 0) > MAJOR:
        raise ConfigError(
            f"{path} has schema version {version}; this plimsoll plays recordings up "
            f"to {MAJOR}.x: use a newer plimsoll"
        )
    try:
        return RecordingHeader.model_validate_json(line)
    except ValidationError as exc:
        raise ConfigError(
            f"{path}, line 1, is not the header of a recording: {_fault(exc)}"
        ) from exc


def _after(last: LoopView | None, frame: Frame, goals: Goals) -> LoopView:
    """Apply a frame to the view before; raises an error if it does not fit."""
    values = _loaded_fields(LoopView, frame.view)
    if last is None:
        last = _first(values)
    snapshot = _snapshot_after(last.snapshot, frame)
    evaluation = last.evaluation
    if snapshot is not None and snapshot is not last.snapshot:
        evaluation = evaluate(snapshot, with_topic_placements(goals, snapshot), ())
    return replace(
        last,
        **values,
        at_ms=frame.at_ms,
        snapshot=snapshot,
        evaluation=evaluation,
        run=_run_after(last.run, frame),
        log=(*last.log, *loaded("log", frame.log))[-LOG_LINES:],
    )


def _first(values: Mapping[str, Any]) -> LoopView:
    try:
        return LoopView(**values, at_ms=0, snapshot=None, evaluation=None, run=None, log=())
    except TypeError as exc:
        raise ConfigError("the first view lacks a field") from exc


def _snapshot_after(last: Snapshot | None, frame: Frame) -> Snapshot | None:
    if frame.snapshot is not None:
        found: Snapshot = loaded("snapshot", frame.snapshot)
        return found
    if frame.loads is None:
        return last
    if last is None or frame.taken_at_ms is None:
        raise ConfigError("there are loads before the first snapshot")
    loads = np.asarray(frame.loads, np.float64)
    if loads.shape != last.partitions.loads.shape:
        raise InvalidCluster("the loads do not have the shape of the snapshot")
    loads = columns_from_file(loads, last.header.resources)
    return _with_loads(last, loads, frame.taken_at_ms)


def _with_loads(last: Snapshot, loads: Floats, taken_at_ms: int) -> Snapshot:
    later_ms = taken_at_ms - last.header.taken_at_ms
    sources = tuple(
        s.model_copy(update={"newest_sample_ms": s.newest_sample_ms + later_ms})
        for s in last.header.sources
    )
    update = {"taken_at_ms": taken_at_ms, "sources": sources}
    header = last.header.model_copy(update=update)
    return Snapshot(header, replace(last.partitions, loads=loads))


def _run_after(last: RunProgress | None, frame: Frame) -> RunProgress | None:
    if frame.run is not None:
        found: RunProgress = loaded("run", frame.run)
        return found
    if not frame.run_changes:
        return last
    if last is None:
        raise ConfigError("a run changes before it starts")
    changes = dict(frame.run_changes)
    moves = list(last.moves)
    for position, values in changes.pop("moves", {}).items():
        changed = _loaded_fields(MoveProgress, values)
        moves[int(position)] = replace(moves[int(position)], **changed)
    return replace(last, **_loaded_fields(RunProgress, changes), moves=tuple(moves))


def _loaded_fields(owner: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: loaded(f"{owner.__name__}.{name}", value) for name, value in values.items()}

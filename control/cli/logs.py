"""Log lines: structured, one JSON object each, to a file or to stderr."""

import contextlib
import logging
import logging.handlers
import os
import sys
from collections.abc import Callable, MutableMapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import structlog

from control.cli.output import json_of
from control.service.cluster_context import CLUSTER
from model.errors import ConfigError
from model.file_locks import locked_file
from model.log_events import ATTRIBUTE, event_of
from model.printable import printable

_BEGIN: Final = b'{"event": '
"""Start of each line of a log file; its keys are sorted."""
MOST_BYTES: Final = 16 * 2**20
"""Size from which a log file is renamed."""
KEPT: Final = 4
"""Renamed log files that are kept."""
LOCK_WAIT_S: Final = 0.2
"""Seconds that a line waits for another process that renames the file."""
LOOP: Final = "plimsoll.control"
"""The logger of the loop."""


def configure(*, verbose: bool, file: Path | None) -> None:
    """Send the `plimsoll` loggers to a file as JSON, or to stderr as text.

    stderr gets warnings, or everything if verbose; a screen removes the handler of
    stderr while it is shown.

    Raises ConfigError where the file cannot be written.
    """
    # Without a handler, logging prints messages of libraries to the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    root = logging.getLogger("plimsoll")
    # Created first: where the file cannot be written, the handlers so far remain.
    handler = _file_handler(file) if file else _stderr_handler(verbose)
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.propagate = False


def silence_stderr() -> None:
    """Remove handlers of stderr, for a screen that owns the terminal."""
    root = logging.getLogger("plimsoll")
    for handler in list(root.handlers):
        if not isinstance(handler, logging.FileHandler):
            root.removeHandler(handler)
    root.addHandler(logging.NullHandler())


def pass_warnings(report: Callable[[str], None]) -> None:
    """Pass warnings to the screen's log, except those of the loop, already there.

    They are no longer passed to the one given before.
    """
    root = logging.getLogger("plimsoll")
    for handler in list(root.handlers):
        if isinstance(handler, _WarningHandler):
            root.removeHandler(handler)
    root.addHandler(_WarningHandler(report))


def narrate(report: Callable[[str], None]) -> None:
    """Keep messages from stderr that a command without a screen prints itself.

    Warnings of other parts go to `report`, the loop's log, which omits repetitions.
    """
    pass_warnings(report)
    leave_to_loops()


def leave_to_loops() -> None:
    """Keep messages from stderr that narrators print, and warnings that loops repeat."""
    for handler in logging.getLogger("plimsoll").handlers:
        if type(handler) is logging.StreamHandler:
            handler.addFilter(_is_left_to_log)


def warning_handler(report: Callable[[str], None]) -> logging.Handler:
    """What passes warnings of other parts to the log of a loop."""
    return _WarningHandler(report)


def _is_left_to_log(record: logging.LogRecord) -> bool:
    if record.name == LOOP:
        return not getattr(record, "narrated", False)
    return record.levelno < logging.WARNING


class _WarningHandler(logging.Handler):
    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self.addFilter(lambda record: record.name != LOOP)

    def createLock(self) -> None:
        """Use no lock: `report` takes others, and the two orders could deadlock."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        self._report(record.getMessage())


def _refuse_other(file: Path) -> None:
    """Refuse to append to a file that is not a log, such as a plan or a journal."""
    if not file.is_file():
        return
    with file.open("rb") as found:
        begin = found.read(len(_BEGIN))
    if begin not in (b"", _BEGIN):
        raise ConfigError(
            f"{file} exists and is not a plimsoll log; name another file, or remove it"
        )


class _LogFile(logging.handlers.WatchedFileHandler):
    """A log file that is bounded, also where several processes write to it.

    A full file is renamed, to `log.1.jsonl` for `log.jsonl`, and the oldest is removed. Whoever
    renames the file otherwise, such as logrotate, need not tell this process: it notices.
    """

    def emit(self, record: logging.LogRecord) -> None:
        # What hinders the rotation must not hinder the line.
        with contextlib.suppress(OSError):
            self._rotate()
        super().emit(record)

    def _rotate(self) -> None:
        path = Path(self.baseFilename)
        if not path.is_file() or path.stat().st_size < MOST_BYTES:
            return
        lock = locked_file(path, LOCK_WAIT_S)
        if lock is None:
            return
        with lock:
            # Another process may have renamed it until the lock was free.
            if os.fstat(lock.fileno()).st_size >= MOST_BYTES:
                paths = [path, *(aside(path, number) for number in range(1, KEPT + 1))]
                for newer, older in reversed(list(pairwise(paths))):
                    if newer.is_file():
                        newer.replace(older)


def aside(path: Path, number: int) -> Path:
    """The name of a full log file; 1 is the newest."""
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def _file_handler(file: Path) -> logging.Handler:
    try:
        _refuse_other(file)
        handler = _LogFile(file, encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"cannot write the log file {file}: {exc.strerror}") from exc
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.stdlib.ExtraAdder(allow=("plan_hash", ATTRIBUTE)),
                _with_event,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(json_of, sort_keys=True, allow_nan=True),
            ],
        )
    )
    return handler


def _with_event(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Any:
    """Put the message under `message`, and the stable name of its event under `event`."""
    line["message"] = line["event"]
    line["event"] = event_of(str(line.get("logger", "")), line.pop(ATTRIBUTE, None))
    if name := CLUSTER.get():
        line["cluster"] = name
    return line


class _OneLine(logging.Formatter):
    """Messages on one line each, whatever names they contain; tracebacks have more."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        name = CLUSTER.get()
        record.message = printable(f"{name}: {record.message}" if name else record.message)
        return super().formatMessage(record)


def _stderr_handler(verbose: bool) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("plimsoll: %(message)s"))
    handler.setLevel(logging.DEBUG if verbose else logging.WARNING)
    return handler

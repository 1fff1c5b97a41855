"""Log lines: as text to stderr, or structured, one JSON object each, to a file and to stderr."""

import contextlib
import logging
import logging.handlers
import os
import sys
import threading
from collections.abc import Callable, Iterable, MutableMapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TextIO, cast

import structlog

from control.cli.output import LogFormat, json_of
from control.service.cluster_context import CLUSTER
from model.errors import ConfigError
from model.file_locks import locked_file
from model.log_events import ATTRIBUTE, LogEvent, event_of, named
from model.printable import printable

_BEGIN: Final = b'{"event": '
"""Start of each line of a log file; its keys are sorted."""
MOST_BYTES: Final = 16 * 2**20
"""Size from which a log file is renamed."""
KEPT: Final = 4
"""Renamed log files that are kept."""
LOCK_WAIT_S: Final = 0.2
"""Seconds that a line waits for another process that renames the file."""
COMMAND: Final = "plimsoll.command"
"""The logger of what commands write to stderr themselves, where that is part of the log."""
LOOP: Final = "plimsoll.control"
"""The logger of the loop."""


def configure(*, verbose: bool, file: Path | None, form: LogFormat = LogFormat.TEXT) -> None:
    """Send the `plimsoll` loggers to a file as JSON, or to stderr as text.

    stderr gets warnings, or everything if verbose; a screen removes the handler of
    stderr while it is shown. form: with JSON, stderr gets what a file does, whether or not there
    is one, and whatever else is written to it becomes a line of the log, too.

    Raises ConfigError where the file cannot be written.
    """
    # Without a handler, logging prints messages of libraries to the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    root = logging.getLogger("plimsoll")
    # Created first: where the file cannot be written, the handlers so far remain.
    handlers = [_file_handler(file)] if file else []
    if isinstance(sys.stderr, _LineLog):
        sys.stderr = sys.stderr.stream
    if form is LogFormat.JSON:
        handlers.append(_json_stderr_handler())
        sys.stderr = cast("TextIO", _LineLog(sys.stderr))
    elif not file:
        handlers.append(_stderr_handler(verbose))
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.propagate = False


def has_text() -> bool:
    """Whether stderr has text, rather than the log as JSON."""
    return not isinstance(sys.stderr, _LineLog)


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
    handler.setFormatter(_json_formatter())
    return handler


def _json_formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
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


def _with_event(_logger: object, _method: str, line: MutableMapping[str, Any]) -> Any:
    """Put the message under `message`, and the stable name of its event under `event`."""
    line["message"] = line["event"]
    line["event"] = event_of(str(line.get("logger", "")), line.pop(ATTRIBUTE, None))
    if name := CLUSTER.get():
        line["cluster"] = name
    return line


class _JsonStream(logging.StreamHandler[TextIO]):
    """stderr with the log as JSON; `leave_to_loops` keeps nothing from it."""


def _json_stderr_handler() -> logging.Handler:
    handler = _JsonStream(sys.stderr)
    handler.setFormatter(_json_formatter())
    return handler


class _LineLog:
    """In place of stderr: each line that is written becomes one of the log.

    Messages of commands, and of libraries, would else stand between the objects of the log.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        """Where the lines go."""
        # A handler of a signal may write while the same thread does.
        self._lock = threading.RLock()
        self._begun = ""
        """What has been written of a line."""
        self._formatter = _json_formatter()

    def write(self, text: str) -> int:
        """Write what is whole lines."""
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
        self._put(lines, logging.INFO)
        return len(text)

    def write_error(self, text: str) -> int:
        """The same for why a command ends."""
        self._put(text.split("\n"), logging.ERROR)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is there of a line, too."""
        with self._lock:
            begun, self._begun = self._begun, ""
        self._put([begun], logging.INFO)
        self.stream.flush()

    def isatty(self) -> bool:
        """No line is redrawn."""
        return False

    def _put(self, lines: Iterable[str], level: int) -> None:
        for line in lines:
            words = line.removeprefix("plimsoll: ").strip()
            if words:
                made = logging.LogRecord(COMMAND, level, "", 0, words, None, None)
                vars(made).update(named(LogEvent.COMMAND))
                self.stream.write(self._formatter.format(made) + "\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


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

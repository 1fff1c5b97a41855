"""Forms of stdout, and output streams that write printable text only.

stdout and stderr are replaced for the whole process, so that messages need not be
escaped where they are made.
"""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, TextIO, cast

from model.printable import printable

_CURSOR: Final = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z])")
"""Control sequences that colour text or move the cursor (ECMA-48, 5.4)."""


class Form(StrEnum):
    """Form of what a command prints to stdout."""

    TABLE = "table"
    JSON = "json"


class LogFormat(StrEnum):
    """Form of what a command writes to stderr."""

    TEXT = "text"
    JSON = "json"
    """One object a line, as in a log file."""


class SafeStream:
    """A text stream whose unprintable characters are written as escapes.

    Lines end with a line feed; a carriage return is escaped, too.
    """

    def __init__(self, stream: TextIO, *ignored: type[OSError]) -> None:
        """ignored: errors of the stream that are not raised."""
        self._stream, self._ignored = stream, ignored

    def write(self, text: str) -> int:
        """Write the text, escaped; returns its length before escaping, even if it is lost."""
        with contextlib.suppress(*self._ignored):
            self._stream.write(self._safe(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with contextlib.suppress(*self._ignored):
            self._stream.flush()

    def writelines(self, lines: Iterator[str]) -> None:
        """Write each, escaped."""
        for line in lines:
            self.write(line)

    @property
    def rich_proxied_file(self) -> "SafeStream":
        """The stream for Rich, which draws with control sequences."""
        return DrawnStream(self._stream, *self._ignored)

    def _safe(self, text: str) -> str:
        return printable(text, keep="\n")

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            # Bytes would bypass the escaping.
            raise AttributeError(name)
        return getattr(self._stream, name)


class DrawnStream(SafeStream):
    """A stream that also passes colours and cursor movements, for progress bars."""

    def _safe(self, text: str) -> str:
        parts = _CURSOR.split(text)
        return "".join(
            part if at % 2 else printable(part, keep="\r\n") for at, part in enumerate(parts)
        )

    @property
    def rich_proxied_file(self) -> "SafeStream":
        """Itself."""
        return self


def drawn(stream: TextIO) -> TextIO:
    """The stream for a line that is redrawn, found as Rich finds it."""
    return getattr(stream, "rich_proxied_file", stream)


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """A context in which stdout and stderr accept printable text only.

    Losing stderr does not end a command: a run continues, with its throttle and journal,
    when the terminal is closed, the reader of a pipe exits, or the disk behind a
    redirection is full.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # The parent process closed it.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A locale that cannot encode a name must not end the command.
            stream.reconfigure(errors="backslashreplace")
    with (
        contextlib.redirect_stdout(cast("TextIO", SafeStream(sys.stdout))),
        contextlib.redirect_stderr(cast("TextIO", SafeStream(sys.stderr, OSError))),
    ):
        yield


def json_of(document: Any, *, allow_nan: bool = False, **options: Any) -> str:
    """JSON in ASCII, with every other character as `\\uXXXX`; options of `json.dumps`.

    Raises ValueError for NaN and infinities unless they are allowed.
    """
    text = json.dumps(document, allow_nan=allow_nan, **options)
    # DEL is the one control character that JSON does not escape.
    return text.replace("\x7f", "\\u007f")

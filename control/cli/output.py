"""What commands print, on its way to a terminal: nothing but printable text.

stdout and stderr are replaced for the whole process, so that no message has to be
cleaned where it is made.
"""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, Final, TextIO, cast

from model.printable import printable

_CURSOR: Final = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z])")
"""Control sequences that colour text or move the cursor (ECMA-48, 5.4)."""


class Narration:
    """stderr, whose loss does not end the command.

    A run continues, with its throttle and journal, when the terminal is closed, the
    reader of a pipe exits, or the disk behind a redirection is full.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text; the number of characters given, even if it is lost."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream; an error is ignored."""
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class SafeStream:
    """A text stream whose unprintable characters are written as escapes.

    Lines end with a line feed; a carriage return is escaped, too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, escaped; the number of characters given."""
        self._stream.write(self._safe(text))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write each, escaped."""
        for line in lines:
            self.write(line)

    @property
    def rich_proxied_file(self) -> "SafeStream":
        """What Rich writes to instead, for it draws with control sequences."""
        return DrawnStream(self._stream)

    def _safe(self, text: str) -> str:
        return printable(text, keep="\n")

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            # Bytes would bypass the escaping.
            raise AttributeError(name)
        return getattr(self._stream, name)


class DrawnStream(SafeStream):
    """Lets colours and movements of the cursor through, for progress bars."""

    def _safe(self, text: str) -> str:
        parts = _CURSOR.split(text)
        return "".join(
            part if at % 2 else printable(part, keep="\r\n")
            for at, part in enumerate(parts)
        )

    @property
    def rich_proxied_file(self) -> "SafeStream":
        """Itself."""
        return self


def drawn(stream: TextIO) -> TextIO:
    """Where a line that is drawn again and again goes; as Rich finds it."""
    return getattr(stream, "rich_proxied_file", stream)


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """While entered, stdout and stderr take printable text alone."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # It was closed by who started the process.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A locale without the letters of a name must not end the command.
            stream.reconfigure(errors="backslashreplace")
    narration = cast("TextIO", Narration(sys.stderr))
    with (
        contextlib.redirect_stdout(cast("TextIO", SafeStream(sys.stdout))),
        contextlib.redirect_stderr(cast("TextIO", SafeStream(narration))),
    ):
        yield


def json_of(document: Any, *, indent: int | None = None, sort: bool = False) -> str:
    """JSON in ASCII: what is unprintable stands as `\\uXXXX` and reads as it was.

    Raises ValueError for NaN and infinities.
    """
    text = json.dumps(document, indent=indent, sort_keys=sort, allow_nan=False)
    # The one control character that JSON lets stand.
    return text.replace("\x7f", "\\u007f")

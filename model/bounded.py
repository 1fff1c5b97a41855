"""Reading what others wrote, in bounded memory: bytes, JSON and TOML.

Every reader of files uses these, so that limits and messages are the same.
"""

import errno
import gzip
import math
import os
import re
import stat
import tomllib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from pydantic_core import from_json

from model.errors import ConfigError

MOST_BYTES: Final = 1 << 28
"""Of a file that programs write, decompressed: a million partitions fit."""
MOST_TYPED_BYTES: Final = 1 << 22
"""Of a file that people write."""
MOST_LINE: Final = 1 << 26
"""Characters of one line of a recording."""
LARGEST_INT: Final = 2**63 - 1
END_MS: Final = 253_402_300_800_000
"""The end of the year 9999, the last that can be shown."""

_AT: Final = re.compile(r" at line (\d+) column \d+$")
_LONG: Final = re.compile(rb"(?:^|[\s:,\[])-?(?:\d{19}|[\d.]++[eE]\+?\d{3})")
"""Numbers that may be out of range; everything else is not walked through for them. Hashes, which
nearly every record has, contain an exponent's digits, but begin after a quote."""
_VALUE: Final = "a value is expected"
_NUMBER: Final = f"{_VALUE}; NaN and Infinity are not JSON, write a number"
_NOT_NUMBERS: Final = re.compile(rb"NaN|Infinity")
_REASONS: Final = {
    "expected value": _VALUE,
    "expected ident": _VALUE,
    "EOF": "the text ends too early; the file is empty or was cut off",
}
"""The parser's reasons that need other words."""
_NESTING: Final = frozenset({dict, list})
"""What may hold times; long lists of numbers alone are passed over at once."""


class InvalidJson(ValueError):
    """Text that is not JSON, or that holds a number out of range."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason = reason
        self.line = line
        """Counted from 1; None where the reason names the place."""


def read_bytes(
    path: Path, most: int = MOST_BYTES, what: str = "", *, regular: bool = False
) -> bytes:
    """The bytes of a file, decompressed where its name ends in `.gz`.

    what: what the file is, for messages, with a blank at its end. regular: for plimsoll's own
    files; any pipe is refused. Others may be pipes of a shell, as `refuse_named_pipe` says.

    Raises ConfigError: it cannot be read, is a named pipe, or holds more than `most` bytes.
    """
    try:
        if not regular:
            refuse_named_pipe(path, what)
        with _opened(path, regular) as file:
            data = file.read(most + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise ConfigError(f"cannot read {what}{path}: not a gzip file") from exc
    except OSError as exc:
        raise ConfigError(f"cannot read {what}{path}: {exc.strerror}") from exc
    except ValueError as exc:  # a NUL in the name
        raise ConfigError(f"cannot read {what}{path}: {exc}") from exc
    if len(data) > most:
        size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        raise ConfigError(f"{path} holds more than {size}, the most that is read of such a file")
    return data


def refuse_named_pipe(path: Path, what: str = "") -> None:
    """Raise ConfigError for a named pipe: without a writer, its reader waits for ever.

    Pipes of a shell, such as `<(...)` and /dev/stdin, have one and are read. what: as of
    `read_bytes`.
    """
    if path.is_fifo() and path.resolve().exists():
        raise ConfigError(f"cannot read {what}{path}: it is a named pipe; give a file")


def open_regular(path: Path) -> IO[bytes]:
    """Open a file of plimsoll's own for reading, without waiting.

    Raises OSError where it cannot be opened, or is a pipe or a device.
    """
    return open(path, "rb", opener=_regular)


def _opened(path: Path, regular: bool) -> IO[bytes]:
    if regular:
        return open_regular(path)
    # gzip's reader decompresses no more than is asked of it.
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]  # both read bytes


def _regular(name: str, flags: int) -> int:
    """Open a file without waiting for a writer; folders are left to the caller."""
    handle = os.open(name, flags | os.O_NONBLOCK)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file")


def parse_json(data: str | bytes) -> Any:
    """What JSON text means, by RFC 8259: no NaN, no lone surrogates.

    Nested at most 200 deep; integers fit 64 bits, other numbers a double.

    Raises InvalidJson: it is not JSON, or beyond those limits.
    """
    try:
        raw = data.encode() if isinstance(data, str) else data
        document = from_json(raw, allow_inf_nan=False)
    except ValueError as exc:
        raise _invalid(exc, raw) from exc
    if _LONG.search(raw):
        for place, value in _numbers(document, ""):
            if not _in_range(value):
                raise InvalidJson(f"{place or 'the number'} is out of range")
    return document


def _in_range(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(abs(value) <= LARGEST_INT)


def _invalid(exc: ValueError, raw: bytes) -> InvalidJson:
    """The parser's error as a message for people."""
    if b"\0" in raw:
        return InvalidJson("it is a binary file, not text")
    message = str(exc)
    found = _AT.search(message)
    if found is None:
        return InvalidJson("a character is not valid UTF-8")
    reason = message[: found.start()]
    reason = _REASONS.get(reason.partition(" while")[0], reason)
    if reason == _VALUE and _NOT_NUMBERS.search(raw):
        reason = _NUMBER
    return InvalidJson(reason, int(found[1]))


def _numbers(document: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every number of a document, and where it stands."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _numbers(value, f"{place}.{key}" if place else key)
    elif isinstance(document, list):
        for at, value in enumerate(document):
            yield from _numbers(value, f"{place}.{at}" if place else str(at))
    elif isinstance(document, int | float):
        yield place, document


def check_times(document: Any, place: str = "") -> None:
    """Refuse a document of plimsoll's own with a time that no clock has shown.

    All numeric members whose names end in `_ms` are times since 1970, or spans of time, and must be
    at least -1 and below `END_MS`.

    place: where the document stands in a larger one, for the message.

    Raises ValueError, which names the first other such member.
    """
    if isinstance(document, dict):
        for key, value in document.items():
            where = f"{place}.{key}" if place else key
            if isinstance(value, int | float):
                if key.endswith("_ms") and not -1 <= value < END_MS:
                    raise ValueError(f"{where} is {value}, which is not a time")
            elif value:
                check_times(value, where)
    elif isinstance(document, list) and not _NESTING.isdisjoint(map(type, document)):
        for at, value in enumerate(document):
            if value:
                check_times(value, f"{place}.{at}")


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """What TOML text means; its numbers are finite and integers fit 64 bits.

    Raises ConfigError: it is not TOML, or beyond those limits; the file is named, and the line or
    key.
    """
    try:
        document = tomllib.loads(text)
        odd = [(n, v) for n, v in _numbers(document, "") if not _in_range(v)]
    except RecursionError as exc:
        raise ConfigError(f"{path} is nested too deeply to be read") from exc
    except ValueError as exc:
        raise ConfigError(f"{path} is not valid TOML: {exc}") from exc
    for place, value in odd:
        # An integer may be too long to be printed.
        shown = f"{value:g}" if isinstance(value, float) else "too large"
        raise ConfigError(f"{path}: {place} is {shown}; give a finite number")
    return document

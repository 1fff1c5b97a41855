"""Kafka's responses as columns, without an object for each partition.

The driver makes several of each, which is most of the cost of sampling a large cluster.
Layouts are those of Kafka's message definitions (`ListOffsetsResponse.json`,
`DescribeLogDirsResponse.json`, `OffsetFetchResponse.json`; KIP-482 for the flexible
ones). From one answer of a broker to its next mostly nothing but figures changes: then
they are read where they stood before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from struct import Struct, error
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from model.snapshot.snapshot import Ints

Bytes = NDArray[np.uint8]
Figure = tuple[str, int]
"""A big-endian type, and how many bytes after the beginning of a row it stands."""

PARTITION: Final[Figure] = ("i4", 0)
"""In all rows."""
ERROR, OFFSET = ("i2", 4), ("i8", 14)
"""In rows of `list_offsets`."""
SIZE, FUTURE = ("i8", 4), ("i1", 20)
"""In rows of `log_dirs`; FUTURE: 1 where a copy into another directory is made."""
COMMITTED: Final[Figure] = ("i8", 4)
"""In rows of `commits`; -1 for none."""
_MOST_SHIFT: Final = 35
_KINDS: Final = {
    kind: Struct(f">{code}") for kind, code in {"i1": "b", "i2": "h", "i4": "i", "i8": "q"}.items()
}


class MalformedResponse(Exception):
    """A response that does not follow Kafka's message definition."""


@dataclass(frozen=True, slots=True)
class RawResponse:
    """An answer as its broker sent it, after the header."""

    body: bytes
    version: int
    flexible: bool
    """Whether lengths are varints and tags follow (KIP-482)."""

    @property
    def throttle_time_ms(self) -> int:
        """Milliseconds that the broker throttled the request; the driver reads it."""
        return int.from_bytes(self.body[:4], "big", signed=True)


@dataclass(frozen=True, slots=True)
class LogDirEntry:
    """A log directory, and the position of its usable space in the response."""

    path: str
    error_code: int
    cordoned: bool
    room_at: int
    """Where total and usable bytes begin; -1 where they are absent (before Kafka 3.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLayout:
    """Where in an answer its rows stand: one per partition, and group or directory."""

    body: Bytes
    """The answer."""
    rigid: Bytes
    """(bytes,) 0 where a figure stands, else 255."""
    names: tuple[str, ...]
    """Topics, as often as they occur."""
    topic: Ints
    """(n,) position in `names`."""
    at: Ints
    """(n,) where each row begins."""
    folder: Ints
    """(n,) position in `folders`; 0 where there are none."""
    folders: tuple[LogDirEntry, ...] = ()
    errors: tuple[int, ...] = ()
    """Kafka's codes of what failed."""

    def read(self, figure: Figure) -> Ints:
        """(n,) one figure of each row, as int64."""
        return _gather(self.body, figure[0], self.at + figure[1])

    def room(self, folder: LogDirEntry) -> tuple[int, int]:
        """Total and usable bytes of a directory's disk; -1 each before Kafka 3.3."""
        if folder.room_at < 0:
            return -1, -1
        total, usable = _gather(self.body, "i8", folder.room_at + np.array([0, 8])).tolist()
        return total, usable

    def of(self, answer: RawResponse) -> "ResponseLayout | None":
        """Reuse this layout for a response that differs in figures alone; else None."""
        body = np.frombuffer(answer.body, np.uint8)
        if len(body) != len(self.body) or ((body ^ self.body) & self.rigid).any():
            return None
        return replace(self, body=body)


def list_offsets(answer: RawResponse) -> ResponseLayout:
    """Parse a ListOffsets response, version 1 or newer; raises MalformedResponse."""
    # Timestamp, offset and epoch are figures.
    width = 22 + 4 * (answer.version >= 4)
    row = _Row(width=width, soft=(6, width))
    with _reading(answer, row) as reader:
        reader.skip(4 * (answer.version >= 2))
        reader.topics()
    return reader.layout()


def log_dirs(answer: RawResponse) -> ResponseLayout:
    """Parse a DescribeLogDirs response (KIP-113); raises MalformedResponse."""
    row = _Row(width=21, soft=(4, 20))
    with _reading(answer, row) as reader:
        reader.skip(4 + 2 * (answer.version >= 3))
        for number in range(reader.count()):
            error_code, path = reader.take("i2"), reader.text()
            reader.topics(number)
            room_at = reader.room() if answer.version >= 4 else -1
            cordoned = answer.version >= 5 and reader.take("i1") != 0
            reader.folders.append(LogDirEntry(path, error_code, cordoned, room_at))
            reader.skip_tags()
    return reader.layout()


def commits(answer: RawResponse) -> ResponseLayout:
    """Parse an OffsetFetch response, versions 2 to 8; raises MalformedResponse."""
    width = 12 + 4 * (answer.version >= 5)
    row = _Row(width=width, soft=(4, width), text=True)
    several = answer.version >= 8
    with _reading(answer, row) as reader:
        reader.skip(4 * (answer.version >= 3))
        for _ in range(reader.count() if several else 1):
            if several:
                reader.text()
            reader.topics()
            reader.failed(reader.take("i2"))
            if several:
                reader.skip_tags()
    return reader.layout()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """The layout of the row of one partition."""

    width: int
    """Bytes up to its text or its tags."""
    soft: tuple[int, int]
    """From where to where figures stand."""
    text: bool = False
    """Whether a text and an error code follow."""


class _Reader:
    """Reads an answer once, from its beginning to its end."""

    def __init__(self, answer: RawResponse, row: _Row) -> None:
        self._body, self._flexible = answer.body, answer.flexible
        self._row = row
        self._at = 0
        self._rigid = np.full(len(answer.body), 255, np.uint8)
        self._rigid[:4] = 0
        self._names: list[str] = []
        self._topic: list[Ints] = []
        self._rows: list[Ints] = []
        self._folder: list[Ints] = []
        self._errors: list[int] = []
        self.folders: list[LogDirEntry] = []

    def take(self, kind: str) -> int:
        form = _KINDS[kind]
        (value,) = form.unpack_from(self._body, self._at)
        self._at += form.size
        return int(value)

    @property
    def whole(self) -> bool:
        return self._at == len(self._body)

    def skip(self, size: int) -> None:
        self._at += size

    def room(self) -> int:
        """Skip total and usable bytes; return where they begin."""
        at = self._at
        self._rigid[at : at + 16] = 0
        self.skip(16)
        return at

    def count(self) -> int:
        """Read the number of elements of a list."""
        return max(0, self._varint() - 1 if self._flexible else self.take("i4"))

    def text(self) -> str:
        """Read a text; null becomes the empty text."""
        size = max(0, self._varint() - 1 if self._flexible else self.take("i2"))
        end = self._at + size
        if end > len(self._body):
            raise IndexError("a text is cut off")
        found = self._body[self._at : end].decode()
        self._at = end
        return found

    def skip_tags(self) -> None:
        for _ in range(self._varint() if self._flexible else 0):
            self._varint()
            self.skip(self._varint())

    def failed(self, code: int) -> None:
        if code:
            self._errors.append(code)

    def topics(self, folder: int = 0) -> None:
        """Read a list of topics, each with a list of rows."""
        for _ in range(self.count()):
            name, count = self.text(), self.count()
            at = self._alike(count)
            if at is None:
                at = np.array([self._one() for _ in range(count)], np.int64)
            self._topic.append(np.full(count, len(self._names)))
            self._folder.append(np.full(count, folder))
            self._rows.append(at)
            self._names.append(name)
            self.skip_tags()

    def layout(self) -> ResponseLayout:
        """Return the layout of everything that was read."""
        at = _joined(self._rows)
        self._rigid[(at[:, None] + np.arange(*self._row.soft)).ravel()] = 0
        return ResponseLayout(
            body=np.frombuffer(self._body, np.uint8),
            rigid=self._rigid,
            names=tuple(self._names),
            topic=_joined(self._topic),
            at=at,
            folder=_joined(self._folder),
            folders=tuple(self.folders),
            errors=tuple(self._errors),
        )

    def _alike(self, count: int) -> Ints | None:
        """(count,) where the rows begin, if none has tags, a text or an error."""
        row = self._row
        if row.text and not self._flexible:
            return None
        tail = row.text * 3 + self._flexible
        stride = row.width + tail
        begin, end = self._at, self._at + stride * count
        if end > len(self._body):
            return None
        for k in range(tail if count else 0):
            # An empty text has the length 1, null 0.
            most = int(row.text and k == 0)
            if max(self._body[begin + row.width + k : end : stride]) > most:
                return None
        self._at = end
        return begin + stride * np.arange(count, dtype=np.int64)

    def _one(self) -> int:
        begin = self._at
        self._at += self._row.width
        if self._at > len(self._body):
            raise IndexError("a row is cut off")
        if self._row.text:
            self.text()
            self.failed(self.take("i2"))
        self.skip_tags()
        return begin

    def _varint(self) -> int:
        value = shift = 0
        while shift < _MOST_SHIFT:
            byte = self._body[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise IndexError("a length has no end")


@contextmanager
def _reading(answer: RawResponse, row: _Row) -> Iterator[_Reader]:
    reader = _Reader(answer, row)
    try:
        yield reader
        reader.skip_tags()
        if not reader.whole:
            raise IndexError("it is not as long as it says")
    except (error, IndexError, ValueError) as exc:
        raise MalformedResponse(f"version {answer.version}: {exc}") from exc


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _gather(body: Bytes, kind: str, at: Ints) -> Ints:
    dtype = np.dtype(f">{kind}")
    count = max(0, len(body) - dtype.itemsize + 1)
    every: NDArray[Any] = np.ndarray((count,), dtype, body, strides=(1,))
    return every[at].astype(np.int64)

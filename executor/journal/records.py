"""Records of a journal as lines, each with a checksum chained to the previous one.

Since schema 2 a line is canonical JSON that begins with `at_ms` and `checksum`. The
checksum is SHA-256 over the bytes of the line without its newline and without the
digits of the checksum itself, cut to 128 bits. CRC-32 would detect a flipped bit, but
not everything that can happen to files: it is linear, so errors can cancel out,
and two different records share a checksum once in 2^32 pairs, while chaining needs one
that names exactly one record. `previous` is the checksum of the previous record, and
`sequence` counts them, so lines that were deleted, repeated, swapped or inserted show.

A journal of schema 1 is continued in schema 2: `previous` of the first new record is
the checksum of all bytes before it, which protects the old lines from then on.

A line is intact if its own checksum holds. Whether the record that it names as its
predecessor is there is judged separately: a missing or replaced predecessor is damage
between the lines, and takes nothing away from the line itself.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from pydantic import ValidationError

from model.bounded import check_times, parse_json
from model.errors import ConfigError
from model.files import canonical, major_of
from model.paths import path_part
from model.run import JournalEvent, JournalRecord

_MAJOR: Final = 2
_DIGITS: Final = 32
_BEGINNING: Final = b'{"at_ms":'
_SEALED: Final = re.compile(rb'\{"at_ms":-?\d{1,19},"checksum":"([0-9a-f]{32})",')
_PLACE: Final = b'"checksum":"'


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalDamage:
    """A place in a journal that is not as it was written."""

    line: int
    """From 1; for a gap, the line after it."""
    problem: str
    """Completes "line 5 ..."."""
    after: int = 0
    """Number of the last intact record before it; 0 where there is none."""
    before: int | None = None
    """Number of the intact record after a gap."""
    loses: bool = True
    """Whether a record may be lost; False if everything is still readable."""

    def __str__(self) -> str:
        return f"line {self.line} {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntactRecord:
    """An intact record and its line."""

    line: int
    raw: bytes
    """Without the line end."""
    record: JournalRecord

    @property
    def number(self) -> int:
        """Its sequence number; in schema 1 its line."""
        return self.record.sequence or self.line


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalContent:
    """The content of a journal."""

    intact: tuple[IntactRecord, ...] = ()
    """In the order written."""
    damage: tuple[JournalDamage, ...] = ()
    torn_bytes: int = 0
    """Bytes of an incomplete last write after a crash, which is not damage."""
    keep_bytes: int = 0
    """Bytes up to the end of the last complete line."""
    ends_line: bool = True
    """Whether the last kept line has its newline."""
    repaired: tuple[JournalDamage, ...] = ()
    """Losses that a repair has noted."""

    @property
    def records(self) -> tuple[JournalRecord, ...]:
        """The intact records, in the order written."""
        return tuple(found.record for found in self.intact)

    @property
    def losses(self) -> tuple[JournalDamage, ...]:
        """Where records may be missing, repaired or not."""
        return (*self.repaired, *(d for d in self.damage if d.loses))

    def end(self, kept: bytes) -> "JournalEnd":
        """The end of the journal, after the lines that are kept."""
        last = self.intact[-1] if self.intact else None
        if last is None or last.record.sequence is None:
            checksum = checksum_of(kept) if kept else ""
            return JournalEnd(kept.count(b"\n"), checksum)
        # Damaged lines at the end keep their numbers, so that the gap shows.
        lost = sum(d.loses and d.line > last.line for d in self.damage)
        return JournalEnd(last.record.sequence + lost, last.record.checksum)


@dataclass(frozen=True, slots=True)
class JournalEnd:
    """The last record of a journal, which the next one refers to."""

    sequence: int = 0
    previous: str = ""


def sealed(record: JournalRecord, end: JournalEnd) -> tuple[bytes, JournalEnd]:
    """Return the line of the next record, and the new end of the journal."""
    update = {"sequence": end.sequence + 1, "previous": end.previous, "checksum": ""}
    line = canonical(record.model_copy(update=update).model_dump(mode="json"))
    checksum = checksum_of(line[:-1])
    place = line.index(_PLACE) + len(_PLACE)
    line = line[:place] + checksum.encode() + line[place:]
    return line, JournalEnd(end.sequence + 1, checksum)


def checksum_of(data: bytes) -> str:
    """The first 128 bits of SHA-256, as hex digits."""
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def scan(data: bytes, run_id: str) -> JournalContent:
    """Read the journal of a run.

    Raises ConfigError where an intact record was written by a newer plimsoll.
    """
    return _Scan(data, run_id).content()


@dataclass(slots=True)
class _Scan:
    """The state of a scan: one pass over the lines, one over the records in order."""

    data: bytes
    run_id: str
    intact: list[IntactRecord] = field(default_factory=list)
    damage: list[JournalDamage] = field(default_factory=list)
    repaired: list[JournalDamage] = field(default_factory=list)
    is_sealed: bool = False
    """Whether any record so far has a checksum (schema 2)."""

    def content(self) -> JournalContent:
        *lines, tail = self.data.split(b"\n")
        for number, line in enumerate(lines, start=1):
            self._line(number, line)
        whole = self._tail(len(lines) + 1, tail)
        self._hold_unsealed(lines)
        self._hold_order()
        self.damage.sort(key=lambda found: found.line)
        return JournalContent(
            intact=tuple(self.intact),
            damage=tuple(self.damage),
            torn_bytes=len(tail) - whole,
            keep_bytes=len(self.data) - len(tail) + whole,
            ends_line=not whole,
            repaired=tuple(self.repaired),
        )

    def _line(self, number: int, line: bytes) -> None:
        raw = line.removesuffix(b"\r")
        problem = self._read(number, raw)
        if problem:
            self._note(number, problem)
        elif raw != line:
            self._note(number, "ends in CR LF instead of LF", loses=False)

    def _read(self, number: int, raw: bytes) -> str:
        """Keep the record of a line, or return what is wrong with it."""
        record = _record(raw)
        if isinstance(record, str):
            return record
        if path_part(record.run_id) != path_part(self.run_id):
            return f"belongs to the run {record.run_id}"
        if record.sequence is None and self.is_sealed:
            return "has no checksum, although records before it have one"
        self.is_sealed |= bool(record.checksum)
        self.intact.append(IntactRecord(line=number, raw=raw, record=record))
        return ""

    def _tail(self, number: int, tail: bytes) -> int:
        """Return how many bytes after the last newline form a line to keep.

        A crash leaves the start of a record there, a power loss zeros.
        """
        text = tail.rstrip(b"\0")
        if not text or not self._read(number, text):
            return len(text)
        if not self._read(number, text[:-1]):
            self._note(number, "has a damaged line end", loses=False)
            return len(text) - 1
        if text.startswith(_BEGINNING) or _BEGINNING.startswith(text):
            return 0
        self._note(number, "is not a journal record")
        return len(text)

    def _hold_unsealed(self, lines: Sequence[bytes]) -> None:
        """Verify lines of schema 1 against the first later record, which covers them all."""
        first = next((i for i in self.intact if i.record.checksum), None)
        if first is None or first is self.intact[0]:
            return
        before = checksum_of(b"".join(line + b"\n" for line in lines[: first.line - 1]))
        if before in (first.record.previous, *self._covers()):
            return
        if any(d.loses and d.line == first.line - 1 for d in self.damage):
            # That line may be the record that covers them.
            return
        changed = f"or another line before line {first.line} was changed"
        for found in self.intact[: self.intact.index(first)]:
            self._note(found.line, changed)
        self.intact = [i for i in self.intact if i.record.checksum]

    def _covers(self) -> Iterator[object]:
        """Checksums of schema 1 lines that repairs have kept."""
        for found in self.intact:
            if found.record.event is JournalEvent.REPAIRED:
                yield found.record.detail.get("unsealed")

    def _hold_order(self) -> None:
        by_number: dict[int, IntactRecord] = {}
        last = 0
        for found in (i for i in self.intact if i.record.checksum):
            if (other := by_number.get(found.number)) is not None:
                same = found.record.checksum == other.record.checksum
                verb = "repeats" if same else "contradicts"
                self._note(found.line, f"{verb} line {other.line}", loses=not same)
                continue
            if found.number < last:
                problem = f"is out of place: it holds record {found.number}"
                self._note(found.line, problem, loses=False)
            by_number[found.number] = found
            last = max(last, found.number)
        unsealed = [i for i in self.intact if not i.record.checksum]
        ordered = [by_number[number] for number in sorted(by_number)]
        self._hold_links(ordered, begun=bool(unsealed))
        self.intact = [*unsealed, *ordered]

    def _hold_links(self, ordered: Sequence[IntactRecord], *, begun: bool) -> None:
        """Verify each record against the previous one; `begun`: schema 1 lines precede."""
        self.repaired += [
            loss
            for found in ordered
            if found.record.event is JournalEvent.REPAIRED
            for loss in _acknowledged(found)
        ]
        known = {loss.before for loss in self.repaired}
        for previous, found in pairwise([None, *ordered]):
            if found is None or found.number in known or (begun and previous is None):
                continue
            if loss := _lost(previous, found, self.damage):
                self.damage.append(loss)

    def _note(self, line: int, problem: str, *, loses: bool = True) -> None:
        before = (i.number for i in self.intact if i.line < line)
        after = max(before, default=0)
        self.damage.append(JournalDamage(line=line, problem=problem, after=after, loses=loses))


def _lost(
    previous: IntactRecord | None, found: IntactRecord, damage: Iterable[JournalDamage]
) -> JournalDamage | None:
    """A missing or replaced record between two others; None if there is none."""
    number, checksum = 0, ""
    if previous is not None:
        number, checksum = previous.number, previous.record.checksum
    is_next = found.number == number + 1
    if is_next and found.record.previous == checksum:
        return None
    first = previous.line if previous else 0
    if not is_next and any(d.loses and first < d.line < found.line for d in damage):
        return None
    return JournalDamage(
        line=found.line,
        problem=_gap(number + 1, found.number, previous),
        after=number,
        before=found.number,
    )


def _gap(expected: int, number: int, previous: IntactRecord | None) -> str:
    if number > expected + 1:
        return f"follows a gap: records {expected} to {number - 1} are missing"
    if number > expected:
        return f"follows a gap: record {expected} is missing"
    if previous is None:
        return "is the first record and names another one before it"
    return f"does not follow line {previous.line}, but another record {number - 1}"


def _acknowledged(repair: IntactRecord) -> Iterator[JournalDamage]:
    """The losses noted by a repair."""
    for loss in repair.record.detail.get("losses", ()):
        yield JournalDamage(
            line=repair.line,
            problem=f"notes a repair: line {loss['line']} {loss['problem']}",
            after=loss["after"],
            before=loss["before"],
        )


def _record(raw: bytes) -> JournalRecord | str:
    """The record of a line, or what is wrong with it."""
    place = _SEALED.match(raw)
    if place is not None:
        body = raw[: place.start(1)] + raw[place.end(1) :]
        if checksum_of(body).encode() != place[1]:
            return "does not match its checksum"
    try:
        check_times(parse_json(raw))
    except ValueError:
        return "is not a journal record"
    try:
        record = JournalRecord.model_validate_json(raw)
    except ValidationError as exc:
        if place is not None:
            raise ConfigError("was written by a newer plimsoll; use that one") from exc
        return "is not a journal record"
    major = major_of(record.schema_version)
    if place is not None and major is not None and major > _MAJOR:
        raise ConfigError("was written by a newer plimsoll; use that one")
    if place is None and major == _MAJOR:
        return "has no checksum"
    is_sealed = bool(record.checksum) and record.sequence is not None
    if major != (_MAJOR if place else 1) or is_sealed != bool(place):
        return "is not a journal record"
    return record

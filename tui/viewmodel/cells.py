"""Text in spans with a role each; widgets turn roles into colours."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, overload

_FIGURE: Final = re.compile(r"[+-]?\d[\d.,]*(?:-\d+)?(?: ?(?:%|[kMGTP]?i?B(?:/s)?))?")


class Role(StrEnum):
    """The meaning of a span. Never the only sign: a word or marker shows it as well."""

    PLAIN = "plain"
    MUTED = "muted"
    STRONG = "strong"
    GOOD = "good"
    OVER = "over"
    """Above the tolerance band, or failed."""
    UNDER = "under"
    """Below the tolerance band, or worth attention."""
    MARK = "mark"
    """The average, drawn into a bar."""
    ALARM = "alarm"
    """A word that must not be missed; shown reversed."""


class Span(NamedTuple):
    """A piece of text and its role."""

    text: str
    role: Role = Role.PLAIN


Cell = tuple[Span, ...]
"""One table cell, or one item of a line."""


class Column(NamedTuple):
    """A column of fixed width."""

    key: str
    label: str
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row, in the order of the columns."""

    key: str
    cells: tuple[Cell, ...]
    values: tuple[float | str, ...] = ()
    """Sort keys by column; empty if the cells' texts will do."""
    full: str = ""
    """What its cells had to shorten, in full; empty where nothing is."""


class LazyRows(Sequence[Row]):
    """Rows made when they are first asked for, which a screen does for those it shows.

    Their columns have to be wide enough without having seen them; those that are shown
    widen them in any case.
    """

    def __init__(self, keys: Sequence[str], make: Callable[[int], Row]) -> None:
        """keys: of all rows. make: the row at a position."""
        self.keys = keys
        self._make = make
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(len(self))[at])
        place = range(len(self))[at]
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]


def keys_of(rows: Sequence[Row]) -> Sequence[str]:
    """The keys of rows, without making any."""
    return rows.keys if isinstance(rows, LazyRows) else [row.key for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as it is displayed; `why_empty` replaces missing rows."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    why_empty: str = ""
    note: str = ""
    """What is not displayed: omitted rows, or an error in the filter."""


def fitted(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
    """Widen the columns to fit every cell and a blank after it.

    A truncated figure would be a different figure. The last column needs no blank.
    """
    longest = [0] * len(columns)
    for row in rows:
        for at, shown in enumerate(row.cells):
            length = sum(len(span.text) for span in shown)
            if length > longest[at]:
                longest[at] = length
    last = len(columns) - 1
    return tuple(
        column._replace(width=max(column.width, longest[at] + (at < last)))
        for at, column in enumerate(columns)
    )


def cell(text: str, role: Role = Role.PLAIN) -> Cell:
    """Return a cell of one span."""
    return (Span(text, role),)


def plain(line: Iterable[Span]) -> str:
    """Return the text without roles."""
    return "".join(span.text for span in line)


def right(text: str, width: int, role: Role = Role.PLAIN) -> Cell:
    """Right-align text in a column, before the blank that separates columns."""
    return cell(text.rjust(width - 1), role)


def flow(items: Sequence[Cell], width: int, gap: str = "  ") -> tuple[Cell, ...]:
    """Arrange items side by side, in as many lines as needed; none is broken."""
    lines: list[list[Span]] = [[]]
    for item in items:
        used = len(plain(lines[-1]))
        if used and used + len(gap) + len(plain(item)) > width:
            lines.append([])
            used = 0
        if used:
            lines[-1].append(Span(gap))
        lines[-1].extend(item)
    return tuple(tuple(line) for line in lines)


def shorten(text: str, width: int) -> str:
    """Truncate the end: `topic-with-a-…`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def shorten_words(text: str, width: int) -> str:
    """Truncate the end, but never a figure or its unit: `bound …`, not `bound 0.0…`.

    A truncated figure could be mistaken for another one.
    """
    if len(text) <= width:
        return text
    end = max(0, width - 1)
    figure = figure_at(text, end)
    end = figure[0] if figure else end
    return text[:end] + "…"


def figure_at(text: str, at: int) -> tuple[int, int] | None:
    """Return start and end of the figure that a cut at `at` would split, if any."""
    figures = (m.span() for m in _FIGURE.finditer(text))
    return next(((start, end) for start, end in figures if start < at < end), None)


def shorten_line(line: Cell, width: int) -> Cell:
    """Truncate a line as `shorten_words` does; each piece keeps its role."""
    words = plain(line)
    if len(words) <= width:
        return line
    rest = shorten_words(words, width)
    spans = []
    for span in line:
        spans.append(Span(rest[: len(span.text)], span.role))
        rest = rest[len(span.text) :]
    return tuple(span for span in spans if span.text)


def shorten_middle(text: str, width: int) -> str:
    """Truncate the middle, so that a partition keeps its number: `topic-wi…me-17`."""
    if len(text) <= width:
        return text
    tail = width // 2
    return text[: width - 1 - tail] + "…" + text[-tail:]


def named(text: str, width: int, role: Role = Role.PLAIN) -> tuple[Cell, str]:
    """A cell with a name, shortened in its middle, and the full name if it had to be shortened."""
    shown = shorten_middle(text, width)
    return cell(shown, role), "" if shown == text else text

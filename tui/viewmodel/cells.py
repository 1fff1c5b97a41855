"""Text with a meaning per span; widgets give each meaning its colour."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

_FIGURE: Final = re.compile(r"[+-]?\d[\d.,]*(?:-\d+)?(?: ?(?:%|[kMGTP]?i?B(?:/s)?))?")


class Role(StrEnum):
    """What a span of text means. Never the only sign: a word or marker says it too."""

    PLAIN = "plain"
    MUTED = "muted"
    STRONG = "strong"
    GOOD = "good"
    OVER = "over"
    """Over the band, or failed."""
    UNDER = "under"
    """Under the band, or worth a look."""
    MARK = "mark"
    """The level, drawn into a bar."""
    ALARM = "alarm"
    """A word that must not be overlooked; reversed."""


class Span(NamedTuple):
    """A piece of text and what it means."""

    text: str
    role: Role = Role.PLAIN


Cell = tuple[Span, ...]
"""One cell of a table, or one item of a line."""


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
    """What each column is sorted by; empty where its words will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as it is to be seen; `why_empty` stands in for missing rows."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    why_empty: str = ""
    note: str = ""
    """What does not show: rows left out, or a filter's fault."""


def fitted(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
    """The columns, wide enough for every cell and a blank after it.

    A figure that is cut is another figure. The last column needs no blank.
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
    """A cell of one span."""
    return (Span(text, role),)


def plain(line: Iterable[Span]) -> str:
    """The text without its meaning."""
    return "".join(span.text for span in line)


def right(text: str, width: int, role: Role = Role.PLAIN) -> Cell:
    """Text at the right end of a column, before the blank that parts columns."""
    return cell(text.rjust(width - 1), role)


def flow(items: Sequence[Cell], width: int, gap: str = "  ") -> tuple[Cell, ...]:
    """Items side by side, in as many lines as they need; none is broken."""
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
    """Cut the end: `topic-with-a-…`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def shorten_words(text: str, width: int) -> str:
    """Cut the end, but never a figure or its unit: `bound …` instead of `bound 0.0…`.

    A figure that is cut could be taken for another one.
    """
    if len(text) <= width:
        return text
    end = max(0, width - 1)
    figure = figure_at(text, end)
    end = figure[0] if figure else end
    return text[:end] + "…"


def figure_at(text: str, at: int) -> tuple[int, int] | None:
    """Where the figure begins and ends that is cut at a place; None if none is."""
    figures = (m.span() for m in _FIGURE.finditer(text))
    return next(((start, end) for start, end in figures if start < at < end), None)


def shorten_line(line: Cell, width: int) -> Cell:
    """A line cut as `shorten_words` does, each piece of it with its meaning."""
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
    """Cut the middle, so that a partition keeps its number: `topic-wi…me-17`."""
    if len(text) <= width:
        return text
    tail = width // 2
    return text[: width - 1 - tail] + "…" + text[-tail:]

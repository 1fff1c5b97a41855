"""Filter and sort order of a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar

import re2

from model.names import compiled, error_text, is_too_large
from model.units import count_text
from tui.viewmodel.cells import Column, Row, Table, plain

T = TypeVar("T")
SortKey = Callable[[T], tuple[float, str]]
"""What a column is sorted by: numbers, or texts."""

LONGEST = 200
"""Maximum length of a filter in characters."""


@dataclass(frozen=True)
class Filter:
    """A case-insensitive regular expression; a leading `!` inverts it.

    It is RE2's, which runs in linear time whatever is pasted.
    """

    text: str = ""

    @cached_property
    def fault(self) -> str:
        """Why the filter is invalid; empty if it is valid."""
        try:
            _ = self._compiled
        except re2.error as exc:
            if is_too_large(exc):
                return "This regular expression is too large."
            return f"This is not a valid regular expression: {error_text(exc)}."
        return ""

    def keeps(self, words: str) -> bool:
        """Whether the text matches; an invalid filter keeps everything."""
        if not self._pattern or self.fault:
            return True
        return bool(self._compiled.search(words)) is not self.text.startswith("!")

    @property
    def _pattern(self) -> str:
        # RE2 reads UTF-8, which cannot represent half a surrogate pair.
        return self.text.removeprefix("!").encode(errors="replace").decode()

    @cached_property
    def _compiled(self) -> "re2._Regexp[str]":
        return compiled(self._pattern, case_sensitive=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The filter and sort order chosen for a table."""

    filter: Filter = field(default_factory=Filter)
    sort: str = ""
    """The key of the column to sort by; empty for the table's own order."""
    down: bool = True
    """Largest first."""

    def sorted_by(self, key: str) -> "Wish":
        """Sort by this column; sort in reverse if it is already sorted by it."""
        return replace(self, sort=key, down=not self.down if key == self.sort else True)

    def sorted_next(self, columns: tuple[Column, ...]) -> "Wish":
        """Sort by the next column; after the last by none."""
        keys = ["", *(c.key for c in columns)]
        at = keys.index(self.sort) if self.sort in keys else 0
        return replace(self, sort=keys[(at + 1) % len(keys)], down=True)


def arranged(table: Table, wish: Wish) -> Table:
    """Filter and sort the table, with a note on the rows not displayed.

    The very same table if nothing is filtered or sorted, so that it is not drawn again.
    """
    if wish == Wish():
        return table
    rows = [r for r in table.rows if wish.filter.keeps(_words(r))]
    note = table.note
    if len(rows) < len(table.rows):
        note = f"{len(rows):,} of {len(table.rows):,} rows {note}".strip()
    keys = [c.key for c in table.columns]
    if wish.sort in keys:
        at = keys.index(wish.sort)
        rows.sort(key=lambda row: _value(row, at), reverse=wish.down)
    return replace(
        table,
        columns=marked(table.columns, wish),
        rows=tuple(rows),
        note=note,
        why_empty=no_match(wish) if table.rows else table.why_empty,
    )


def selected(
    items: Sequence[T], wish: Wish, *, words: Callable[[T], str], keys: Mapping[str, SortKey[T]]
) -> list[T]:
    """Filter and sort what rows would be made of, where there are too many to make all.

    words: the text that a filter matches. keys: what each column is sorted by.
    """
    filtered = bool(wish.filter.text)
    found = [item for item in items if not filtered or wish.filter.keeps(words(item))]
    if (key := keys.get(wish.sort)) is not None:
        found.sort(key=key, reverse=wish.down)
    return found


def by_number(value: Callable[[T], float | None]) -> SortKey[T]:
    """Sort by a number of at least 0; what is not known comes before all others."""

    def key(item: T) -> tuple[float, str]:
        found = value(item)
        return (-1.0 if found is None else found), ""

    return key


def by_text(value: Callable[[T], str]) -> SortKey[T]:
    """Sort by a text."""
    return lambda item: (0.0, value(item))


def left_out(shown: int, matching: int, known: int, what: str) -> str:
    """Describe what is not displayed: `the first 500 of 812 topics; ...`."""
    if shown < matching:
        first = f"the first {shown:,} of {count_text(matching, what)}"
        return f"{first}; filter or sort to see others"
    return f"{matching:,} of {count_text(known, what)}" if matching < known else ""


LEAST_SHOWN: Final = 2
"""Letters of a column's name that are shown beside the arrow in any case."""


def marked(columns: tuple[Column, ...], wish: Wish) -> tuple[Column, ...]:
    """The columns, with an arrow at the one sorted by."""
    arrow = "▼" if wish.down else "▲"
    return tuple(_with(arrow, c) if c.key == wish.sort else c for c in columns)


def _with(arrow: str, column: Column) -> Column:
    """The arrow after the name; what stands over a bar keeps its place."""
    name, gap, rest = column.label.partition("   ")
    if gap and rest.strip():
        return column._replace(label=f"{name} {arrow} {rest}")
    kept = column.label[: max(0, column.width - 3)]
    if len(kept) < min(LEAST_SHOWN, len(column.label)):
        # Such as `id`, of which nothing would be left.
        return column._replace(label=f"{column.label[: column.width - 1]}{arrow}")
    return column._replace(label=f"{kept} {arrow}")


def no_match(wish: Wish) -> str:
    """Explain why a filtered table is empty."""
    return f"Nothing matches the filter {wish.filter.text!r}; escape clears it."


def _words(row: Row) -> str:
    return " ".join((row.key, *map(plain, row.cells)))


def _value(row: Row, at: int) -> tuple[bool, float, str]:
    """A sort key that puts numbers before text."""
    value = row.values[at] if row.values else plain(row.cells[at]).strip()
    if isinstance(value, str):
        return True, 0.0, value
    return False, value, ""

"""How a person wants a table: which rows, in which order."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import re2

from tui.viewmodel.cells import Column, Row, Table, plain

LONGEST = 200
"""Letters of a filter."""


@dataclass(frozen=True)
class Filter:
    """A regular expression, in upper or lower case alike; `!` before it inverts.

    RE2's, whose time does not explode, whatever is pasted.
    """

    text: str = ""

    @cached_property
    def fault(self) -> str:
        """What is wrong with it, in words; empty where it can be used."""
        try:
            _ = self._compiled
        except re2.error as exc:
            detail = exc.args[0].decode() if exc.args else "cannot be parsed"
            return f"This is not a valid regular expression: {detail}."
        return ""

    def keeps(self, words: str) -> bool:
        """Whether it lets these words through; all, while it has a fault."""
        if not self._pattern or self.fault:
            return True
        return bool(self._compiled.search(words)) is not self.text.startswith("!")

    @property
    def _pattern(self) -> str:
        # RE2 reads UTF-8, which cannot represent half a surrogate pair.
        return self.text.removeprefix("!").encode(errors="replace").decode()

    @cached_property
    def _compiled(self) -> "re2._Regexp[str]":
        options = re2.Options()
        options.log_errors = False
        options.case_sensitive = False
        return re2.compile(self._pattern, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which rows of a table, and in which order."""

    filter: Filter = field(default_factory=Filter)
    sort: str = ""
    """The key of the column to sort by; empty for the order of the table itself."""
    down: bool = True
    """The largest first."""

    def sorted_by(self, key: str) -> "Wish":
        """By this column; once more, and the other way round."""
        return replace(self, sort=key, down=not self.down if key == self.sort else True)

    def sorted_next(self, columns: tuple[Column, ...]) -> "Wish":
        """By the column after the one sorted by; after the last by none."""
        keys = ["", *(c.key for c in columns)]
        at = keys.index(self.sort) if self.sort in keys else 0
        return replace(self, sort=keys[(at + 1) % len(keys)], down=True)


def arranged(table: Table, wish: Wish) -> Table:
    """The table as it is wanted, and a note on what does not show."""
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


def marked(columns: tuple[Column, ...], wish: Wish) -> tuple[Column, ...]:
    """The columns, an arrow at the one that is sorted by."""
    arrow = "▼" if wish.down else "▲"
    return tuple(
        c._replace(label=f"{c.label[: c.width - 3]} {arrow}")
        if c.key == wish.sort
        else c
        for c in columns
    )


def no_match(wish: Wish) -> str:
    """Why a filtered table is empty."""
    return f"Nothing matches the filter {wish.filter.text!r}; escape clears it."


def _words(row: Row) -> str:
    return " ".join((row.key, *map(plain, row.cells)))


def _value(row: Row, at: int) -> tuple[bool, float, str]:
    """Numbers before words."""
    value = row.values[at] if row.values else plain(row.cells[at]).strip()
    if isinstance(value, str):
        return True, 0.0, value
    return False, value, ""

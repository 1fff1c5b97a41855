"""Where a key stands in a TOML file, so that a fault can name its line."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_KEY: Final = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_KEYS: Final = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE: Final = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]\]?\s*(?:#.*)?")
_VALUE: Final = re.compile(rf"\s*({_KEYS})\s*=")

Trail = tuple[str | int, ...]


def line_of(text: str, trail: Sequence[str | int]) -> int | None:
    """The line, from 1, of a place or of the innermost table around it.

    trail: keys, and positions in lists. None where the text names no part of it.
    """
    best, line = 0, None
    for number, place in _places(text):
        inside = place == tuple(trail[: len(place)])
        if inside and len(place) > best:
            best, line = len(place), number
    return line


def _places(text: str) -> Iterator[tuple[int, Trail]]:
    table: Trail = ()
    lengths: dict[Trail, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if head := _TABLE.fullmatch(line):
            table = _in_lists(_parts(head[2]), lengths, new=head[1] == "[[")
            yield number, table
        elif value := _VALUE.match(line):
            yield number, (*table, *_parts(value[1]))


def _in_lists(keys: Trail, lengths: dict[Trail, int], *, new: bool) -> Trail:
    """The keys of a header, with positions in the lists of tables on the way."""
    place: Trail = ()
    for depth, key in enumerate(keys, 1):
        place = (*place, key)
        if new and depth == len(keys):
            lengths[place] = lengths.get(place, 0) + 1
        if place in lengths:
            place = (*place, lengths[place] - 1)
    return place


def _parts(keys: str) -> Trail:
    return tuple(key.strip().strip("\"'") for key in re.findall(_KEY, keys))

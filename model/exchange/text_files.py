"""Text files written by people and other tools; faults name file and line."""

import csv
import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from model.bounded import MOST_BYTES, InvalidJson, parse_json, read_bytes, refuse_named_pipe
from model.errors import ConfigError
from model.units import listed

LARGEST: Final = 1e18
"""Bytes or bytes per second above this are a slip: no disk or network has them."""


MOST_NAMED: Final = 40
"""Names that a sentence lists."""


def fault(path: Path, line: int, words: str) -> ConfigError:
    """Build an error that names the file and the line, counted from 1."""
    return ConfigError(f"{path}, line {line}: {words}")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Raises ConfigError where it cannot be read, holds more than `most` bytes, or is not UTF-8.
    """
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is not valid UTF-8; save it as UTF-8") from exc


def read_json(path: Path) -> Any:
    """Parse a JSON file that another tool wrote.

    Raises ConfigError: the file cannot be read, is a named pipe or is not valid JSON; the line is
    named.
    """
    refuse_named_pipe(path)
    try:
        return parse_json(read_text(path))
    except InvalidJson as exc:
        if exc.line is None:
            raise ConfigError(f"{path}: {exc.reason}") from exc
        raise fault(path, exc.line, f"this is not valid JSON: {exc.reason}") from exc


def read_object(path: Path) -> Mapping[str, Any]:
    """Parse a JSON file that holds an object, as `read_json` does.

    Raises ConfigError for a file that `read_json` refuses, and for one without an object.
    """
    return object_at(path, read_json(path), "the file")


def line_in_json(text: str, place: Sequence[int | str]) -> int:
    """The line, from 1, of the last key on the way to a place in JSON text.

    Keys that are not found are passed over; 1 where there is none.
    """
    at = 0
    for key in place:
        if isinstance(key, str) and (
            found := re.compile(rf'"{re.escape(key)}"\s*:').search(text, at)
        ):
            at = found.end()
    return text.count("\n", 0, at) + 1


def read_table(
    path: Path, *, required: Collection[str], known: Collection[str]
) -> tuple[tuple[str, ...], Iterator[tuple[int, dict[str, str]]]]:
    """The columns of a CSV file with a header, and its rows with their lines.

    Cells are stripped of blanks; empty lines are passed over.

    Raises ConfigError: the header lacks a required column or has one that is not known or stands
    twice; while rows are read, one with another number of cells.
    """
    refuse_named_pipe(path)
    reader = csv.reader(read_text(path).splitlines(), skipinitialspace=True)
    header = next((row for row in reader if any(row)), None)
    if header is None:
        raise ConfigError(f"{path} is empty; its first line names the columns")
    columns = tuple(cell.strip() for cell in header)
    _check_header(path, reader.line_num, columns, required, known)
    return columns, _rows(path, columns, reader)


def _check_header(
    path: Path,
    line: int,
    columns: tuple[str, ...],
    required: Collection[str],
    known: Collection[str],
) -> None:
    if len(columns) == 1 and (";" in columns[0] or "\t" in columns[0]):
        raise fault(path, line, "columns must be separated by commas; save the file as CSV")
    for column in columns:
        if column not in known:
            raise fault(path, line, f"unknown column {column!r}{nearest(column, known)}")
        if columns.count(column) > 1:
            raise fault(path, line, f"the column {column!r} is listed twice; keep one")
    missing = [name for name in required if name not in columns]
    if missing:
        raise fault(path, line, f"the column {missing[0]!r} is missing; add it")


def _rows(
    path: Path, columns: tuple[str, ...], reader: Any
) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        for row in reader:
            if not any(row):
                continue
            if len(row) != len(columns):
                raise fault(path, reader.line_num, f"{len(row)} cells under {len(columns)} columns")
            cells = (cell.strip() for cell in row)
            yield reader.line_num, dict(zip(columns, cells, strict=True))
    except csv.Error as exc:
        raise fault(path, reader.line_num, f"this is not valid CSV: {exc}") from exc


def whole_number(path: Path, line: int, name: str, cell: str) -> int:
    """A cell as a whole number of 0 or more.

    Raises ConfigError: it is not a whole number, is negative, or larger than `LARGEST`.
    """
    # Python also reads digits of other scripts, signs and underscores.
    if not (cell.isascii() and cell.isdigit()):
        raise fault(path, line, f"{name} is {cell!r}; give a whole number of 0 or more")
    if len(cell) > len(f"{LARGEST:.0f}") or int(cell) > LARGEST:
        raise fault(path, line, f"{name} is {cell!r}; give at most {LARGEST:g}")
    return int(cell)


def amount(path: Path, line: int, name: str, cell: str) -> float:
    """A cell as a finite number of 0 or more.

    Raises ConfigError: it is not a number, negative, or larger than `LARGEST`.
    """
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if 0 <= value <= LARGEST:
        return value
    if value > LARGEST:
        raise fault(path, line, f"{name} is {cell}, more than {LARGEST:g}")
    words = f"{name} is {cell!r}; give a number of 0 or more, or nothing if unknown"
    raise fault(path, line, words)


def nearest(name: str, known: Collection[str]) -> str:
    """Suffix for a message about an unknown name: the closest known name, or all."""
    if not known:
        return "; there are none"
    found = difflib.get_close_matches(name, sorted(known), 1, 0.5)
    if found:
        return f"; did you mean {found[0]!r}?"
    return f"; known: {listed(sorted(known), MOST_NAMED)}"


def object_at(path: Path, document: Any, place: str) -> Mapping[str, Any]:
    """A JSON object at a place of a document.

    Raises ConfigError: the value is not an object.
    """
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: {place} is not a JSON object")
    return document

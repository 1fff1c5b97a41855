"""Java's properties files, as Kafka's own tools read them (`java.util.Properties`)."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from model.bounded import MOST_TYPED_BYTES, read_bytes
from model.errors import ConfigError
from model.exchange.text_files import fault

_KEY: Final = re.compile(r"(?:\\.|[^\\=:\s])*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PROVIDER: Final = re.compile(r"\$\{\w+:.*\}")
"""A reference to one of Java's config providers, such as `${file:/secrets:key}`."""


@dataclass(frozen=True, slots=True)
class Property:
    """The value of one key and its line in the file."""

    value: str = field(repr=False)
    """Not in the repr: it may be a password."""
    line: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of one file; errors never quote a value: it may be a secret."""

    path: Path
    by_key: Mapping[str, Property] = field(repr=False)

    def get(self, *keys: str) -> str | None:
        """Return the value of the one of these keys that is set, None if none is.

        Raises ConfigError where two of them are set, or where the value refers to a
        config provider.
        """
        given = self.given(keys)
        if not given:
            return None
        if len(given) > 1:
            raise self.fault(given[1], f"it means the same as {given[0]}; keep one of them")
        value = self.by_key[given[0]].value
        if _PROVIDER.search(value):
            raise self.fault(
                given[0],
                "plimsoll does not support Java's config providers (${...}); write the "
                "value itself",
            )
        return value

    def require(self, *keys: str, reason: str) -> str:
        """As `get`, but raise ConfigError for an unset or empty value.

        reason: the clause that ends the message.
        """
        value = self.get(*keys)
        if not value:
            given = self.given(keys)
            if given:
                raise self.fault(given[0], f"it is empty; {reason}")
            raise ConfigError(f"{self.path}: {' or '.join(keys)} is missing; {reason}")
        return value

    def given(self, keys: Collection[str]) -> list[str]:
        """Return those of the keys that the file sets."""
        return [key for key in keys if key in self.by_key]

    def fault(self, key: str, problem: str) -> ConfigError:
        """Build a ConfigError that names the file, the line and the key."""
        return fault(self.path, self.by_key[key].line, f"{key}: {problem}")

    def text_of(self, key: str) -> str:
        """Read the file that a key names; bytes that are not UTF-8 are replaced.

        Raises ConfigError where it cannot be read.
        """
        try:
            data = read_bytes(Path(self.get(key) or ""), MOST_TYPED_BYTES)
        except ConfigError as exc:
            raise self.fault(key, str(exc)) from exc
        return data.decode("utf-8", "replace")


def read_properties(path: Path) -> dict[str, Property]:
    """Read a properties file; of equal keys the last one counts.

    The text is UTF-8, or Latin-1 where it is not valid UTF-8.

    Raises ConfigError where the file cannot be read, or an escape in it is malformed.
    """
    data = read_bytes(path, MOST_TYPED_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    found = {}
    for number, line in _logical_lines(text):
        key, value = _split(path, number, line)
        found[key] = Property(value, number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations, without comments and empty lines."""
    start, parts = 0, list[str]()
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(" \t\f")
        if not parts:
            if not line or line[0] in "#!":
                continue
            start = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        yield start, "".join([*parts, line])
        parts = []
    if parts:
        yield start, "".join(parts)


def _split(path: Path, number: int, line: str) -> tuple[str, str]:
    found = _KEY.match(line)
    key = found.group() if found else ""
    gap = _SEPARATOR.match(line, len(key))
    value = line[gap.end() if gap else len(key) :]
    return _unescaped(path, number, key), _unescaped(path, number, value)


def _unescaped(path: Path, number: int, text: str) -> str:
    def character(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] != "u":
            return _LETTERS.get(escape, escape)
        if not re.fullmatch(r"u[0-9a-fA-F]{4}", escape):
            raise fault(path, number, r"\u needs four hexadecimal digits")
        return chr(int(escape[1:], 16))

    return _ESCAPE.sub(character, text)

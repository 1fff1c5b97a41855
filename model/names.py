"""Topics by name: exactly, by prefix, by regular expression."""

from functools import lru_cache
from typing import Final

import re2
from pydantic import field_validator

from model.files import FileModel

MOST_MEMORY: Final = 256 * 1024
"""Bytes that a compiled regular expression may take.

Compiling nested optional repetitions is quadratic in this and holds the interpreter's lock: 2 KB
of them took minutes by RE2's default. Some 300 alternatives of topic names fit.
"""
LONGEST: Final = 16_384
"""Characters of a regular expression; parsing it takes time, too."""
_SHOWN: Final = 30
"""Characters of a regular expression that is too large."""


class Names(FileModel):
    """A set of topic names; a name that any part matches belongs to it.

    Regular expressions have RE2's syntax and cover the whole name. RE2 takes time
    linear in the name, whatever the expression.
    """

    exact: tuple[str, ...] = ()
    """Whole names."""
    prefix: tuple[str, ...] = ()
    """Beginnings of names."""
    regex: tuple[str, ...] = ()
    """Regular expressions that match whole names."""

    @field_validator("regex")
    @classmethod
    def _expressions(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if why := expression_fault(pattern):
                raise ValueError(why)
        return patterns

    def match(self, name: str) -> bool:
        """Whether a topic's name is in the set: exactly, by prefix or by regex."""
        return (
            name in self.exact
            or name.startswith(self.prefix)
            or any(compiled(p).fullmatch(name) for p in self.regex)
        )


def expression_fault(pattern: str) -> str:
    """Why a regular expression cannot be used; empty if it can."""
    try:
        compiled(pattern)
    except re2.error as exc:
        if is_too_large(exc):
            return f"the regular expression is too large; simplify it: {pattern[:_SHOWN]!r}..."
        return f"{pattern!r} is not a valid regular expression: {error_text(exc)}"
    return ""


@lru_cache(maxsize=1024)
def compiled(pattern: str, *, case_sensitive: bool = True) -> "re2._Regexp[str]":
    """Compile a regular expression that captures nothing; raises re2.error.

    Raises at once where it would take more than `MOST_MEMORY`, which bounds the time to match, too.
    """
    if len(pattern) > LONGEST:
        raise re2.error(_TOO_LARGE)
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = case_sensitive
    options.max_mem = MOST_MEMORY
    # Thousands of groups would take longer than the match.
    options.never_capture = True
    return re2.compile(pattern, options)


_TOO_LARGE: Final = "pattern too large"
"""The beginning of RE2's own message."""


def is_too_large(error: re2.error) -> bool:
    """Whether an expression exceeds what is allowed, and may be valid otherwise."""
    return error_text(error).startswith(_TOO_LARGE)


def error_text(error: re2.error) -> str:
    """RE2's reason."""
    message = error.args[0] if error.args else "it cannot be read"
    return message.decode() if isinstance(message, bytes) else str(message)

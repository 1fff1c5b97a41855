"""Topics by name: exactly, by prefix, by regular expression."""

from functools import lru_cache

import re2
from pydantic import field_validator

from model.files import FileModel


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
            try:
                _compiled(pattern)
            except re2.error as exc:
                raise ValueError(
                    f"{pattern!r} is not a valid regular expression: {_reason(exc)}"
                ) from exc
        return patterns

    def match(self, name: str) -> bool:
        """Whether a topic's name is in the set: exactly, by prefix or by regex."""
        return (
            name in self.exact
            or name.startswith(self.prefix)
            or any(_compiled(p).fullmatch(name) for p in self.regex)
        )


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> "re2._Regexp[str]":
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _reason(error: Exception) -> str:
    message = error.args[0] if error.args else "it cannot be read"
    return message.decode() if isinstance(message, bytes) else str(message)

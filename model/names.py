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
    prefix: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()

    @field_validator("regex")
    @classmethod
    def _expressions(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                _compiled(pattern)
            except re2.error as exc:
                raise ValueError(
                    f"{pattern!r} is no regular expression: {_words(exc)}"
                ) from exc
        return patterns

    def match(self, name: str) -> bool:
        """Whether a topic's name belongs to the set."""
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


def _words(error: Exception) -> str:
    told = error.args[0] if error.args else "it cannot be read"
    return told.decode() if isinstance(told, bytes) else str(told)

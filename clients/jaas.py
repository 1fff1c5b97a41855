"""The value of `sasl.jaas.config`: one login module and its options."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<word>[^\s"'=;/]+)|(?P<sign>[=;])""",
    re.DOTALL,
)
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module of Java's JAAS and its options."""

    name: str
    """The class name without its package."""
    options: Mapping[str, str] = field(repr=False)
    """Not in the repr: passwords are among them."""


def parse_jaas(text: str) -> LoginModule:
    """Parse a text such as `some.LoginModule required a="b" c="d";`.

    Follows Kafka's class `JaasConfig`: exactly one module, ended by a semicolon. Raises
    ValueError with a message that quotes no value.
    """
    *tokens, end = _tokens(text) or [("sign", "")]
    if len(tokens) < 2 or tokens[1][1].lower() not in _FLAGS:
        raise ValueError("it must begin with the login module's class and `required`")
    if end != ("sign", ";"):
        raise ValueError("it must end with a semicolon")
    options = {}
    rest = tokens[2:]
    for place in range(0, len(rest), 3):
        kinds = [kind for kind, _ in rest[place : place + 3]]
        if len(kinds) < 3 or rest[place + 1] != ("sign", "=") or "sign" in kinds[::2]:
            raise ValueError(
                'write its options as name="value", separated by blanks, in one module'
            )
        options[rest[place][1]] = rest[place + 2][1]
    return LoginModule(tokens[0][1].rpartition(".")[2], options)


def quoted(value: str) -> str:
    """Quote a value for an option of a JAAS text, escaping quotes and backslashes."""
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError("a quote in it is not closed")
        place = found.end()
        kind = found.lastgroup or ""
        if kind == "quoted":
            tokens.append((kind, _unescaped(found.group()[1:-1])))
        elif kind != "blank":
            tokens.append((kind, found.group()))
    return tokens


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _LETTERS.get(found[1], found[1]), text, flags=re.DOTALL)

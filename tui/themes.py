"""Themes, and replacements for characters that a terminal cannot show."""

import re
from collections.abc import Mapping
from typing import Final

from rich.cells import cell_len
from textual.theme import Theme

COLOUR_BLIND = Theme(
    name="plimsoll-colour-blind",
    primary="#56b4e9",
    secondary="#cc79a7",
    accent="#e69f00",
    warning="#f0e442",
    error="#e66100",
    success="#56b4e9",
    foreground="#e8e8e8",
    background="#101418",
    surface="#1a2026",
    panel="#242c34",
    dark=True,
)
"""Sky blue, yellow and vermilion of Okabe and Ito's palette, which also differ in
brightness; none has to be distinguished by red against green."""

ASCII = dict(zip("▏▎▍▌▋▊▉█▕▐▓░│«»", "   ##### #=.|<>", strict=True))
ASCII |= dict(zip("▁▂▃▄▅▆▇▔", "_.:-=+*-", strict=True))
ASCII |= dict(zip("●◆■≤†", "o@*<x", strict=True))
ASCII |= dict(zip("→←↑↓▲▼…·•", "><^v^v~.*", strict=True))
ASCII |= dict.fromkeys("─━═╴╶╸╺", "-") | dict.fromkeys("┃║╷╵╹╻", "|")
ASCII |= dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋", "+")


ARROW: Final = " ->"
"""In place of an arrow between blanks: `>` would read as a comparison."""
_EMOJI: Final = re.compile("(.)\ufe0f")
"""A character drawn as an emoji, which may be wider than the character (UTS 51)."""


def ascii_text(text: str) -> str:
    """Return the text in ASCII, with the same width."""
    if text.isascii():
        return text
    text = text.replace(" → ", ARROW)
    text = _EMOJI.sub(lambda m: m[1] + "?" * (cell_len(m[0]) - cell_len(m[1])), text)
    return "".join(letter if letter.isascii() else _plain(letter) for letter in text)


def _plain(letter: str) -> str:
    return ASCII.get(letter, "?" * cell_len(letter))


def wants_ascii(environment: Mapping[str, str]) -> bool:
    """Whether the locale (POSIX: LC_ALL, then LC_CTYPE, then LANG) is not UTF-8.

    If none is set, as in most containers, UTF-8 is assumed.
    """
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "UTF-8")
    return "utf8" not in locale.lower().replace("-", "")

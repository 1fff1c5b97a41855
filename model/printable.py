"""Text of unknown origin, made safe to print: one rule for every terminal and file.

Names of racks, messages of brokers, recordings and files may hold control characters,
which a terminal obeys, or characters that reorder or hide what stands beside them.
Printable is what `str.isprintable` says: letters, figures, marks, symbols, blanks.
"""

from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
"""Stands for one unprintable character where widths must not change; one cell wide."""


def printable(text: str, keep: str = "") -> str:
    """The text with unprintable characters as Python writes them: `\\x1b`, `\\u202e`.

    Characters of `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def masked(text: str) -> str:
    """Replace each unprintable character by one; the length stays the same."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else REPLACEMENT for c in text)

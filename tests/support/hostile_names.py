"""Names that an attacker would choose: one for each kind of terminal attack."""

from typing import Final

HOSTILE: Final = {
    "C0": "a\a\b\rb",
    "delete": "a\x7fb",
    "C1": "a\x85\x90b",
    "8-bit CSI": "a\x9b2Jb",
    "8-bit OSC": "a\x9d0;b\x9c",
    "CSI": "a\x1b[2J\x1b[31mb",
    "title": "a\x1b]0;owned\ab",
    "link": "a\x1b]8;;http://evil.invalid\x1b\\b\x1b]8;;\x1b\\",
    "clipboard": "a\x1b]52;c;cm0gLXJmIH4=\ab",
    "device control": "a\x1bP$q\x1b\\b",
    "bidi override": "a\u202eb\u202c\u2066c\u2069",
    "bidi mark": "a\u200e\u200fb",
    "zero width": "a\u200b\u200c\u200d\ufeffb",
    "line separator": "a\u2028\u2029b",
    "tags": "a\U000e0001\U000e0041\U000e007fb",
    "new line": "a\nplimsoll: all is well\nb",
    "markup": "a[bold red]b[/] [/nothing] [@click=app.quit]c[/] [link=x]",
}
"""By the kind of attack."""

SURROGATE: Final = "a\ud800b"
"""Half of a surrogate pair, which UTF-8 cannot encode and JSON escapes can."""


def unprintable(text: str) -> set[str]:
    """Characters that must not reach a terminal; line feeds separate lines."""
    return {c for c in text if not c.isprintable() and c != "\n"}

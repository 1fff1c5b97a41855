"""Report phrases that CONTRIBUTING's vocabulary replaces: `make check` runs this.

Read are docstrings, comments and the strings of Python files, names of tests, and
Markdown outside code. Each finding names file, line, column, phrase and replacement.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
FOLDERS: Final = (
    "model",
    "clients",
    "solver",
    "collector",
    "executor",
    "lab",
    "control",
    "tui",
    "tests",
    "benchmarks",
    "fixtures",
    "docs",
)
OWN: Final = ("CONTRIBUTING.md", "docs/dialect.py", "tests/docs/test_dialect.py", "docs/decisions/")
"""Path prefixes that quote the phrases: this list, its test, and past decisions."""

PHRASES: Final[dict[str, str]] = {
    r"gone on with|go(?:es|ing)? on with|went on with": "resume, continue",
    r"of before\b": "previous",
    r"anew\b": "again",
    r"lea(?:ves?|ving) away": "omit",
    r"st(?:an|oo)ds? down|standing down": "suspend",
    r"under way": "in progress",
    r"foreseen(?!_)|foresees?\b|foretold|foretells?": "estimated, forecast",
    r"off level|off the level": "imbalanced, deviation from the average",
    r"unevenness": "imbalance",
    r"(?:told|known|said) by": "say who reports what",
    r"(?:is|are) (?:told|said)(?= *[.,;:]|$)": "say who reports what",
    r"(?:what|that|which) nobody|nobody (?:has|looks|asked|waits)": "name the subject",
    r"somebody": "someone",
    r"dear(?:er|est)\b": "expensive",
    r"carr(?:y|ies|ied) out": "execute, run",
    r"hours to come": "forecast hours",
    r"(?<!there )is no (?:TOML|JSON|CSV|UTF|text|file|number|plan|line|list|table"
    r"|sample|journal|path|absolute|regular|size|rate|time span|window|resource"
    r"|topic|broker)\b": "is not a, is not valid",
    r"what (?:is|runs|was) [a-z]+ (?:is|stays|goes|was) [a-z]+": "name the subject",
    r"cut off\b(?= (?:run|runs|and another))": "interrupted",
    r"let (?:what runs )?finish": "wait for in-flight moves",
    r"before the eyes": "visible",
    r"in thought\b": "what-if",
    r"knock(?:s|ing|ed)?\b": "reachability check",
    r"(?:of|holds|reads) what is no\b|what is no [a-z]+ (?:is|are|has)\b": "invalid",
    r"is (?:had|heard) (?:by|from|of|as)\b": "receive",
    r"which is told\b|as (?:it|they) (?:is|are) told": "say who reports what",
    r"who (?:waits|asks|consents|stands apart)\b": "name the subject",
}
"""Expressions without case and what to write instead; words begin at a boundary."""
NAMES: Final[dict[str, str]] = {
    r"test (?:what|who)\b(?! if\b)": "name the subject",
    r"(?:nobody|whoever|somebodys?)\b": "name the subject",
    r"(?:told|said|heard)\b": "report, name",
    r"in words\b": "with a reason, in a sentence",
    r"goe?s? on\b": "continue",
    r"giants?\b": "large partitions",
    r"knee\b": "best trade-off",
    r"level(?:led)? (?:cluster|alone|within)|(?:be|is|are|not|near) level(?:led)?\b": ("balanced"),
    r"stock (?:tool|file|json)s?\b": "Kafka's tools, Kafka reassignment JSON",
}
"""Further expressions for names of tests, which state the expected behaviour."""


class Finding(NamedTuple):
    """One phrase at one place."""

    path: str
    line: int
    """From 1."""
    column: int
    """From 1."""
    phrase: str
    instead: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place}: {self.phrase!r}: write {self.instead}"


class _Search:
    """Finds phrases of a vocabulary in text."""

    def __init__(self, phrases: dict[str, str]) -> None:
        self._each = tuple(
            (re.compile(rf"\b(?:{pattern})", re.IGNORECASE), instead)
            for pattern, instead in phrases.items()
        )
        self._any = re.compile("|".join(e.pattern for e, _ in self._each), re.I)

    def __call__(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        """Each phrase with its replacement; blanks in the text may be line breaks."""
        flat = re.sub(r"\s", " ", text)
        if self._any.search(flat) is not None:
            for expression, instead in self._each:
                for match in expression.finditer(flat):
                    yield match, instead


_IN_TEXT: Final = _Search(PHRASES)
_IN_NAMES: Final = _Search(PHRASES | NAMES)
_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->", re.DOTALL)
_TEST_NAME: Final = re.compile(r"\bdef (test_\w+)")


def in_text(text: str, path: str, line: int = 1, column: int = 1) -> Iterator[Finding]:
    """The phrases of a text that begins at a line and column."""
    for match, instead in _IN_TEXT(text):
        before = text[: match.start()]
        row = before.count("\n")
        at = match.start() - (before.rfind("\n") + 1 if row else 1 - column)
        yield Finding(path, line + row, at + 1, match[0], instead)


def in_python(source: str, path: str) -> Iterator[Finding]:
    """The phrases in strings, comments and names of tests; values alone are data."""
    previous = ""
    for kind, text, (row, column), _, _ in _tokens(source):
        if kind == tokenize.COMMENT:
            yield from in_text(text, path, row, column + 1)
        elif kind in _STRINGS and len(text.split()) >= _WORDS:
            yield from in_text(_unwrapped(text), path, row, column + 1)
        if kind in _STRINGS:
            yield from _across(previous, _unquoted(text), path, row)
            previous = _unquoted(text)
        elif kind not in _BETWEEN:
            previous = ""
    for name in _TEST_NAME.finditer(source):
        row = source.count("\n", 0, name.start()) + 1
        for match, instead in _IN_NAMES(name[1].replace("_", " ")):
            yield Finding(path, row, 5 + match.start(), match[0], instead)


def _across(before: str, after: str, path: str, line: int) -> Iterator[Finding]:
    """The phrases over the seam of two adjacent string literals."""
    if before:
        for match, instead in _IN_TEXT(_unwrapped(before + after)):
            if match.start() < len(before) < match.end():
                yield Finding(path, line, 1, match[0], instead)


def _unquoted(literal: str) -> str:
    return re.sub(r"^\w{0,2}[\"']+|[\"']+$", "", literal)


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(source).readline)


_STRINGS: Final = frozenset({tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)})
_BETWEEN: Final = frozenset(
    {tokenize.NL, tokenize.COMMENT}
    | {getattr(tokenize, f"FSTRING_{end}", tokenize.NL) for end in ("START", "END")}
)

_WORDS: Final = 4
"""Shorter strings are the spelling of events and fields in files, not sentences."""


def _unwrapped(text: str) -> str:
    """The text with code between backticks blanked, in the same places."""
    return _CODE.sub(lambda code: re.sub(r"\S", "~", code[0]), text)


def in_markdown(source: str, path: str) -> Iterator[Finding]:
    """The phrases outside code, links and generated notices."""
    return in_text(_unwrapped(source), path)


def in_files(root: Path, passed_over: Iterable[str]) -> Iterator[Finding]:
    """The phrases of every Python and Markdown file of the project."""
    prefixes = tuple(passed_over)
    files = [p for f in FOLDERS for p in (root / f).rglob("*") if p.suffix in _READ]
    for path in sorted((*files, *root.glob("*.md"))):
        name = path.relative_to(root).as_posix()
        if not name.startswith(prefixes):
            read = _READ[path.suffix]
            yield from read(path.read_text(encoding="utf-8"), name)


_READ: Final = {".py": in_python, ".md": in_markdown}


def main() -> int:
    """Print every finding; 1 if there are any."""
    findings = sorted(in_files(ROOT, OWN))
    for finding in findings:
        print(finding)  # noqa: T201  # the answer of a command
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Parts of Markdown files: links, anchors, prose, inline code and code blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^ *```(\w*)$")


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    language: str
    line: int
    """Of the fence."""
    text: str


def pages() -> list[Path]:
    """Every Markdown file that is part of the documentation."""
    return sorted(
        [
            *ROOT.glob("*.md"),
            *(ROOT / "docs").rglob("*.md"),
            *(ROOT / "benchmarks").glob("*.md"),
            *(ROOT / "fixtures").glob("*.md"),
        ]
    )


def name(page: Path) -> str:
    """The path within the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[Block]:
    """The fenced code blocks, without their indentation."""
    language: str | None = None
    begin, lines = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if fence and language is None:
            language, begin, lines = fence[1], number, []
        elif fence and language is not None:
            yield Block(language, begin, "\n".join(lines))
            language = None
        elif language is not None:
            lines.append(line)


def prose(text: str) -> list[tuple[int, str]]:
    """The lines outside of code blocks, with their numbers."""
    result, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            result.append((number, line))
    return result


def code_spans(text: str) -> Iterator[tuple[int, str]]:
    """Inline code with its line; spans do not cross lines here."""
    for number, line in prose(text):
        yield from ((number, span) for span in re.findall("`([^`]+)`", line))


def links(text: str) -> Iterator[tuple[int, str]]:
    """Targets of links and pictures with their lines."""
    for number, line in prose(text):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub("`[^`]*`", "", line)):
            yield number, target


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    result: set[str] = set()
    for _, line in prose(text):
        heading = re.match("#+ (.*)", line)
        if heading:
            message = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            slug = re.sub(r"[^\w\- ]", "", message).replace(" ", "-")
            tries = [slug, *(f"{slug}-{n}" for n in range(1, 50))]
            result.add(next(t for t in tries if t not in result))
    return result

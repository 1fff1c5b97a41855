"""Markdown tables, parts of which can be measured again."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.machine import pace

Section = tuple[str, str, Callable[[], str]]
"""Title, words, and what measures it."""


def measure_sections(table: Path, head: str, sections: Mapping[str, Section]) -> None:
    """Measure all, or the one of `--only`; each is kept as soon as it is done."""
    parser = argparse.ArgumentParser(description=head)
    parser.add_argument("--only", choices=sections)
    only = parser.parse_args().only
    texts = _known(table)
    for title, words, measure in [sections[only]] if only else sections.values():
        texts[title] = f"## {title}\n\n{words} {pace()}\n\n{measure()}"
        titles = [title for title, _, _ in sections.values() if title in texts]
        table.write_text(f"{head}\n\n" + "\n".join(texts[title] for title in titles))
    print(table.read_text())


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _known(table: Path) -> dict[str, str]:
    """The sections of a table as it is, by title."""
    if not table.exists():
        return {}
    parts = re.split(r"^(?=## )", table.read_text(), flags=re.MULTILINE)[1:]
    return {part[3:].partition("\n")[0]: part.rstrip("\n") + "\n" for part in parts}

"""What makes a picture unreadable in a strict viewer, so that none such is written."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

SVG: Final = "{http://www.w3.org/2000/svg}"
IDENTIFIER: Final = re.compile(r"-?[A-Za-z_][A-Za-z0-9_-]*")
"""The ASCII part of CSS 2.2, section 4.1.3."""
FILL: Final = re.compile(r"fill:\s*(#[0-9A-Fa-f]+)")
BASELINE: Final = 5.0
"""How far above the baseline of a text the middle of its letters is."""
RULE: Final = re.compile(r"\.([^\s{]+)\s*\{([^}]*)\}")


def write_picture(file: Path, svg: str) -> None:
    """Write a picture, unless it has a fault; then nothing is written, and the process ends."""
    if found := faults(svg):
        sys.exit(f"{file} is not written: {'; '.join(found)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(svg, "utf-8")
    sys.stderr.write(f"{file}\n")


def faults(svg: str) -> list[str]:
    """Invalid names of classes, texts without a colour, and texts in the colour behind them."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own file
    known = dict(RULE.findall(root.findtext(f".//{SVG}style", "")))
    invalid = {name for name in (*_names(root), *known) if not IDENTIFIER.fullmatch(name)}
    return [
        *(f"{name!r} is no CSS identifier" for name in sorted(invalid)),
        *(f"{words!r} has no colour" for words in _colourless(root, known)),
        *(f"{words!r} has the colour behind it" for words in _hidden(root, known)),
    ]


def _names(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        yield from element.get("class", "").split()
        if (name := element.get("id")) is not None:
            yield name


def _colourless(root: ElementTree.Element, known: dict[str, str]) -> Iterator[str]:
    for text in root.iter(f"{SVG}text"):
        if not text.get("fill") and "fill" not in known.get(text.get("class", ""), ""):
            yield _words(text)


def _hidden(root: ElementTree.Element, known: dict[str, str]) -> Iterator[str]:
    fills = {name: match[1] for name, rule in known.items() if (match := FILL.search(rule))}
    rects = [r for r in root.iter(f"{SVG}rect") if (r.get("fill") or "").startswith("#")]
    for text in root.iter(f"{SVG}text"):
        colour = text.get("fill") or fills.get(text.get("class", ""), "")
        x, y = _number(text, "x") + 1, _number(text, "y") - BASELINE
        behind = [
            r.get("fill", "")
            for r in rects
            if _number(r, "x") <= x < _number(r, "x") + _number(r, "width")
            and _number(r, "y") <= y < _number(r, "y") + _number(r, "height")
        ]
        if _words(text) and behind and behind[-1].lower() == colour.lower():
            yield _words(text)


def _words(text: ElementTree.Element) -> str:
    return "".join(text.itertext()).replace("\xa0", " ").strip()


def _number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, "0").removesuffix("%"))

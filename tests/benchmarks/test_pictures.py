"""Pictures for docs/ show their text in every viewer, not only in lenient ones."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.paths import ROOT

PICTURES = ROOT / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
IDENTIFIER = re.compile(r"-?[A-Za-z_][A-Za-z0-9_-]*")
"""The ASCII part of CSS 2.2, section 4.1.3."""
FILL = re.compile(r"fill:\s*(#[0-9A-Fa-f]+)")
BASELINE = 5.0
"""How far above the baseline of a text the middle of its letters is."""
PLOTS = {"simulate"}
"""Drawn without classes and ids."""
RULE = re.compile(r"\.([^\s{]+)\s*\{([^}]*)\}")


def pictures() -> list[Path]:
    return sorted(PICTURES.rglob("*.svg"))


def read(file: Path) -> ElementTree.Element:
    return ElementTree.parse(file).getroot()  # noqa: S314 - our own file


def names(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter():
        yield from element.get("class", "").split()
        if (name := element.get("id")) is not None:
            yield name


def rules(root: ElementTree.Element) -> dict[str, str]:
    return dict(RULE.findall(root.findtext(f".//{SVG}style", "")))


def test_there_are_pictures() -> None:
    assert len(pictures()) >= 20


@pytest.mark.parametrize("file", pictures(), ids=lambda file: file.stem)
def test_each_name_is_a_css_identifier(file: Path) -> None:
    root = read(file)
    result = {*names(root), *rules(root)}
    assert result or file.stem in PLOTS
    assert [name for name in result if not IDENTIFIER.fullmatch(name)] == []


@pytest.mark.parametrize("file", pictures(), ids=lambda file: file.stem)
def test_each_text_has_its_own_colour(file: Path) -> None:
    root = read(file)
    known = rules(root)
    for text in root.iter(f"{SVG}text"):
        assert text.get("fill") or "fill" in known[text.get("class", "")]


def _number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, "0").removesuffix("%"))


def hidden(root: ElementTree.Element) -> list[str]:
    """The texts drawn in the colour of the rectangle behind them."""
    known = rules(root)
    fills = {name: match[1] for name, rule in known.items() if (match := FILL.search(rule))}
    rects = [r for r in root.iter(f"{SVG}rect") if (r.get("fill") or "").startswith("#")]
    found = []
    for text in root.iter(f"{SVG}text"):
        words = "".join(text.itertext()).replace("\xa0", " ").strip()
        colour = text.get("fill") or fills.get(text.get("class", ""), "")
        x, y = _number(text, "x") + 1, _number(text, "y") - BASELINE
        behind = [
            r.get("fill", "")
            for r in rects
            if _number(r, "x") <= x < _number(r, "x") + _number(r, "width")
            and _number(r, "y") <= y < _number(r, "y") + _number(r, "height")
        ]
        if words and behind and behind[-1].lower() == colour.lower():
            found.append(words)
    return found


@pytest.mark.parametrize("file", pictures(), ids=lambda file: file.stem)
def test_no_text_has_the_colour_behind_it(file: Path) -> None:
    assert hidden(read(file)) == []


def test_a_text_in_the_colour_behind_it_is_found() -> None:
    root = ElementTree.fromstring(  # noqa: S314 - our own text
        '<svg xmlns="http://www.w3.org/2000/svg"><style>.a { fill: #222222 }</style>'
        '<rect fill="#222222" x="0" y="0" width="90" height="24"/>'
        '<rect fill="#444444" x="50" y="0" width="40" height="24"/>'
        '<text class="a" x="0" y="20">hidden</text><text class="a" x="60" y="20">seen</text></svg>'
    )
    assert hidden(root) == ["hidden"]

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
    assert result
    assert [name for name in result if not IDENTIFIER.fullmatch(name)] == []


@pytest.mark.parametrize("file", pictures(), ids=lambda file: file.stem)
def test_each_text_has_its_own_colour(file: Path) -> None:
    root = read(file)
    known = rules(root)
    for text in root.iter(f"{SVG}text"):
        assert text.get("fill") or "fill" in known[text.get("class", "")]

"""The generated pages of the reference are those that the program would write."""

import re
from pathlib import Path

import pytest

from docs.generate import DOCS, pages

PAGES = {str(path.relative_to(DOCS.parent)): path for path in pages()}


@pytest.fixture(scope="module")
def generated() -> dict[Path, str]:
    return pages()


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str, generated: dict[Path, str]) -> None:
    path = PAGES[name]
    if path.read_text("utf-8") != generated[path]:
        pytest.fail(f"{name} is out of date. Run `make reference` and commit it.")


def test_every_schema_belongs_to_a_type() -> None:
    published = set((DOCS / "schemas").glob("*.json"))
    assert published <= set(pages())


def test_every_setting_is_described() -> None:
    page = (DOCS / "reference" / "settings.md").read_text("utf-8")
    assert re.findall(r"^- `(\w+)`: \*", page, re.MULTILINE) == []

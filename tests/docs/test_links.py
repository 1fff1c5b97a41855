"""Links of the documentation lead somewhere, and its lines are short."""

import re
from pathlib import Path

import pytest

from tests.support.markdown import ROOT, anchors, code_spans, links, name, pages, prose

PAGES = pages()
LONGEST = 120
TOP_LEVEL = "model|clients|solver|collector|executor|lab|control|tui|docs|benchmarks|tests"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text("utf-8")
    for line, target in links(text):
        if re.match("[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}:{line}: there is no {path}"
        if anchor:
            known = anchors(file.read_text("utf-8"))
            assert anchor in known, f"{name(page)}:{line}: no heading #{anchor} in {path}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_in_code_exist(page: Path) -> None:
    for line, span in code_spans(page.read_text("utf-8")):
        if re.fullmatch(rf"({TOP_LEVEL})/[\w./-]+", span):
            assert (ROOT / span).exists(), f"{name(page)}:{line}: there is no {span}"


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.parent.name not in ("benchmarks", "decisions")], ids=name
)
def test_lines_of_prose_are_short(page: Path) -> None:
    long = [
        f"{name(page)}:{number} has {len(line)} characters"
        for number, line in prose(page.read_text("utf-8"))
        if len(line) > LONGEST and " " in line.strip() and line.lstrip()[0] != "|"
    ]
    assert long == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    linked = {
        (docs / target.partition("#")[0]).resolve()
        for _, target in links((docs / "index.md").read_text("utf-8"))
    }
    written = {p for p in docs.rglob("*.md") if p.parent.name != "decisions"}
    assert written - linked == {docs / "index.md"}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 100

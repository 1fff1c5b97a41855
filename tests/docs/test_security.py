"""Each promise in SECURITY.md names the code that keeps it, and tests that back it."""

import ast
import re

import pytest

from tests.support.paths import ROOT

ROWS = [
    line.strip("| ").split(" | ")
    for line in (ROOT / "SECURITY.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


def test_there_are_promises() -> None:
    assert len(ROWS) >= 14


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_promise_names_code_and_tests_that_exist(row: list[str]) -> None:
    _, places, tests = row
    for place in re.findall("`([^`]+)`", places):
        assert (ROOT / place).exists(), place
    named = re.findall("`([^`]+)`", tests)
    assert named
    for name in named:
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        assert function in {getattr(node, "name", "") for node in tree.body}, name

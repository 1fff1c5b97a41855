"""The output that the tutorial shows is what its commands print."""

import shlex
from pathlib import Path

import pytest

from tests.support.cli_offline import plimsoll
from tests.support.markdown import ROOT, blocks

PAGE = ROOT / "docs" / "tutorial" / "first-plan.md"

SHOWN = ("generate", "plan")
"""Commands whose output the tutorial shows; others are skipped to save time."""


@pytest.mark.search
def test_the_tutorial_shows_what_its_commands_print(tmp_path: Path) -> None:
    known = list(blocks(PAGE.read_text("utf-8")))
    printed = ""
    for line in "\n".join(b.text for b in known if b.language == "").splitlines():
        words = shlex.split(line)
        if words[1] in SHOWN:
            run = plimsoll(tmp_path, *words[1:])
            assert run.returncode == 0, f"{line}: {run.stderr}"
            printed += run.stdout
    shown = [s for b in known if b.language == "text" for s in b.text.splitlines()]
    assert shown
    missing = [s for s in shown if s not in printed.splitlines()]
    assert not missing, f"update {PAGE}: the commands no longer print these lines"

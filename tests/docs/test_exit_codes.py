"""The page about exit codes lists every code."""

import re

from control.cli.exit_codes import Exit
from docs.generate import DOCS


def test_every_exit_code_is_documented() -> None:
    page = (DOCS / "reference" / "exit-codes.md").read_text("utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert listed == {int(code) for code in Exit}

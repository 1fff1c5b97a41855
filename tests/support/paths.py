"""Paths of the repository's own files."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CASES: Final = ROOT / "tests" / "cases"
FIXTURES: Final = ROOT / "fixtures"

"""After `lab.precompile`, plans of all kinds compile nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

NAMES = ("3x60", "10x500-hot", "9x500-rf3-unequal", "9x500-rf3-near-level", "12x500-rf3-drain")
PLAN = """
import sys
from benchmarks.instances import build, goals_of
from benchmarks.shapes import shape_of
from model.goals.goals import SolveLimits
from solver.solve import solve
for name in sys.argv[1:]:
    shape = shape_of(name)
    solve(build(shape, 7), goals_of(shape), SolveLimits(work=1.0))
"""


@pytest.mark.slow
def test_plans_compile_nothing_after_it(tmp_path: Path) -> None:
    for command in (["-m", "lab.precompile"], ["-c", PLAN, *NAMES]):
        found = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert found.stderr == ""

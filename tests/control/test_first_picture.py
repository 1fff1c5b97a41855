"""What is not loaded before the screen's first picture."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"pyspark", "ortools", "numba", "kafka", "boto3", "pyarrow", "pandas", "confluent_kafka"}
LIVE = """
from control.compose import front_end, loop
with loop(Settings(bootstrap_server="127.0.0.1:9", state_dir=Path("state")), mode=Mode.APPROVE):
    front_end()
"""
DEMO = """
import control.cli.commands.demo, tui.app
from control.demo.simulated_demo import SimulatedDemoOptions, simulated
order = SimulatedDemoOptions(mode=Mode.APPROVE, brokers=4, seed=7, now_s=1_700_000_000.0)
with simulated(Settings(), order):
"""


@pytest.mark.parametrize("code", [LIVE, DEMO], ids=["live", "demo"])
def test_the_screen_does_not_wait_for_heavy_imports(code: str, tmp_path: Path) -> None:
    # Loops are not started: they load what they need in a thread of their own.
    before = (
        "import sys\n"
        "from pathlib import Path\n"
        "from control.loop.loop import Loop\n"
        "from control.loop.view import Mode\n"
        "from control.settings.settings import Settings\n"
        "Loop.__enter__ = Loop.__exit__ = lambda *_: None\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", f"{before}{code}    print(*({HEAVY!r} & {{*sys.modules}}))"],
        capture_output=True,
        check=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.stdout.split() == []

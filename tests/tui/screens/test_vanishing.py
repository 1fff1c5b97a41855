"""A terminal that disappears during a run: moves complete, nothing is left."""

import os
from pathlib import Path

from tests.support.tui.terminals import LONG_S, in_terminal, read_until

SCRIPT = """
import sys
from pathlib import Path
from control.settings.settings import Settings
from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.view import Mode, Phase
from tui.app import run

order = SimulatedDemoOptions(
    mode=Mode.APPROVE, brokers=12, seed=7, now_s=1_700_000_000.0, speed=30.0
)
code = 0
with simulated(Settings(), order) as loop:
    loop.wait(lambda view: view.phase is Phase.PLAN_READY, 170.0)
    loop.approve(loop.view.plan.hash, by="ann")
    try:
        run(loop)
    except KeyboardInterrupt:
        code = 130
last = loop.reports[-1]
moves = [f"{move.state}" for move in last.moves]
Path(sys.argv[1]).write_text("\\n".join([last.state, last.reason, *moves]))
sys.exit(code)
"""


def test_a_run_ends_in_order_and_no_process_is_left(tmp_path: Path) -> None:
    output = tmp_path / "told"
    with in_terminal(SCRIPT, str(output), COLUMNS="100", LINES="30") as (child, master):
        read_until(master, b"RUNNING")
        os.close(master)
        assert child.wait(LONG_S) == 130
    state, reason, *moves = output.read_text().splitlines()
    assert (state, reason) == ("stopped", "stopped by the operator")
    assert "issued" not in moves
    assert "done" in moves or set(moves) == {"planned"}

"""The demo without a broker: the real loop, planner and executor over a simulation."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from control.loop import Loop
from control.settings import Settings
from control.simulated import SimulatedOrder, simulated
from control.view import LoopView, Mode, Phase
from model.run import RunState

ROOT = Path(__file__).parents[2]
LONG_S = 120.0
MAIN = "from control.cli import main"


def order(mode: Mode = Mode.APPROVE) -> SimulatedOrder:
    return SimulatedOrder(mode=mode, brokers=4, seed=7, now_s=1_700_000_000.0)


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with simulated(Settings(), order()) as loop:
        yield loop


def _wait(loop: Loop, fits: Callable[[LoopView], bool]) -> LoopView:
    assert loop.wait(fits, LONG_S), (loop.view.phase, loop.view.message, loop.error)
    return loop.view


def _approve(loop: Loop) -> None:
    plan = _wait(loop, lambda v: v.phase is Phase.PLAN_READY).plan
    assert plan is not None
    loop.approve(plan.hash, by="ann")


def test_the_screen_over_it_waits_for_nothing_heavy() -> None:
    heavy = {"pyspark", "ortools", "kafka", "boto3", "pyarrow", "confluent_kafka"}
    code = (
        "import sys, control.simulated, control.commands.simulated, tui.app; "
        f"print(*({heavy!r} & {{*sys.modules}}))"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True
    )
    assert run.stdout.split() == []


def test_a_plan_is_approved_paused_stopped_and_the_next_one_is_made(
    loop: Loop,
) -> None:
    _approve(loop)
    steering = loop.steering
    steering.pause()
    paused = _wait(loop, lambda v: v.run is not None and v.run.state is RunState.PAUSED)
    assert paused.run is not None
    assert paused.run.reason == "paused by the operator"
    steering.go_on()
    steering.stop()
    _wait(loop, lambda _: bool(loop.reports))
    assert loop.reports[0].state is RunState.STOPPED
    _wait(loop, lambda v: v.phase is Phase.PLAN_READY)


def test_its_clock_goes_on_faster_than_ours(loop: Loop) -> None:
    ours, its = time.time(), loop.clock()
    _wait(loop, lambda _: loop.clock() > its + 6.0)
    assert loop.clock() - its > time.time() - ours


def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with simulated(Settings(), order()) as loop:
        assert list(tmp_path.iterdir())
        _wait(loop, lambda v: v.snapshot is not None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--simulated", "--port", "9092"], "a simulated cluster has no ports"),
        (["demo", "--brokers", "5"], "the local cluster has three brokers"),
        (["demo", "--simulated", "--brokers", "61"], "less than or equal to 60"),
        (["--play", "missing.jsonl"], "cannot read the recording missing.jsonl"),
        (["--play", "README.md"], "README.md, line 1, is not the start"),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(
    arguments: list[str], words: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", f"{MAIN}; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 2
    assert words in run.stderr
    assert "Traceback" not in run.stderr

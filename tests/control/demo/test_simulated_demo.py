"""The demo without a broker: the real loop, planner and executor over a simulation."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode, Phase
from control.settings.settings import Settings
from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.task_request import NamedBrokers
from model.ids import BrokerId
from model.run import MoveState, RunReport, RunState
from model.snapshot.snapshot import BrokerState
from tests.support.paths import ROOT

LONG_S = 300.0
MAIN = "from control.cli.main import main"


def order(mode: Mode = Mode.APPROVE) -> SimulatedDemoOptions:
    return SimulatedDemoOptions(mode=mode, brokers=4, seed=7, now_s=1_700_000_000.0, speed=60.0)


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


def _ended(loop: Loop, runs: int) -> RunReport:
    _wait(loop, lambda _: len(loop.reports) >= runs and not loop.running)
    return loop.reports[runs - 1]


def _is_logged(loop: Loop, *parts: str) -> None:
    """Wait for these states in this order."""
    lines = iter([line.text for line in loop.view.log])
    for part in parts:
        assert any(part in line for line in lines), part


def test_a_run_is_paused_stopped_resumed_and_rolled_back(loop: Loop) -> None:
    _approve(loop)
    loop.steering.throttle(200_000_000)
    loop.steering.pause()
    paused = _wait(loop, lambda v: v.run is not None and v.run.state is RunState.PAUSED)
    assert paused.run is not None
    assert paused.run.reason == "paused by the operator"
    # While it is paused, so that it cannot end first, however long this thread is suspended.
    loop.steering.stop()
    stopped = _ended(loop, 1)
    assert stopped.state is RunState.STOPPED
    done = sum(move.state is MoveState.DONE for move in stopped.moves)
    message = f"run {stopped.run_id} stopped: {done} of {len(stopped.moves)} moves; "
    assert any(message in line.text for line in loop.view.log)
    _is_logged(
        loop,
        f"{loop.settings.operator}: change the throttle to 200 MB/s",
        f"{loop.settings.operator}: pause the run",
        f"run {stopped.run_id} paused: paused by the operator",
        f"{loop.settings.operator}: stop the run after in-flight moves",
        message,
    )

    loop.previous_runs.resume("bob")
    resumed = _ended(loop, 2)
    assert (resumed.run_id, resumed.state) == (stopped.run_id, RunState.DONE)

    plan, left = loop.previous_runs.plan_rollback(resumed.run_id)
    assert not left
    loop.previous_runs.roll_back(plan, "ann")
    back = _ended(loop, 3)
    assert (back.plan_hash, back.state) == (plan.hash, RunState.DONE)
    undoing, undone = loop.previous_runs.runs()
    assert (undoing.by, undone.by) == ("ann", "bob")
    assert undoing.plan.limited_by == f"what run {undone.run_id} had moved"
    _wait(loop, lambda v: v.phase is Phase.PLAN_READY)


def test_the_simulated_clock_runs_faster_than_real_time(loop: Loop) -> None:
    # Our clock starts later and stops earlier, however long this thread is suspended.
    its, ours = loop.clock(), time.monotonic()
    _wait(loop, lambda _: loop.clock() > its + 6.0)
    ours_s = time.monotonic() - ours
    assert loop.clock() - its > ours_s


def test_the_demo_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with simulated(Settings(), order()) as loop:
        assert list(tmp_path.iterdir())
        _wait(loop, lambda v: v.snapshot is not None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--simulated", "--port", "9092"], "a simulated cluster has no ports"),
        (["demo", "--simulated", "--kafka", "3.9"], "a simulated cluster has no version"),
        (["demo", "--kafka", "2.8"], "no jars of Kafka 2.8 are pinned; choose 3.7.2, "),
        (["demo", "--kafka", "4"], "no jars of Kafka 4 are pinned; choose 3.7.2, "),
        (["demo", "--simulated", "--plain"], "--plain needs the local cluster"),
        (["demo", "--throttle", "quick"], "'quick' is not a rate"),
        (["demo", "--brokers", "5"], "the local cluster has three brokers"),
        (["demo", "--simulated", "--brokers", "61"], "61 is more than 60"),
        (["--play", "missing.jsonl"], "cannot read the recording missing.jsonl"),
        (["--play", "README.md"], "README.md, line 1, is not the header"),
    ],
)
@pytest.mark.slow
def test_incompatible_options_are_rejected_with_a_reason(
    arguments: list[str], message: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", f"{MAIN}; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_broker_is_removed_and_stays_empty() -> None:
    # Under the demo's own throttle, which must not refuse the plan.
    with simulated(Settings(), order()) as demo:
        view = _wait(demo, lambda v: v.phase is Phase.PLAN_READY)
        tasks = demo.tasks
        assert tasks is not None
        assert view.snapshot is not None
        broker, cluster_id = view.snapshot.header.brokers[-1].id, view.snapshot.header.cluster_id
        found = tasks.proposed(Operation.REMOVE, NamedBrokers((broker,)), view.snapshot, "ann")
        demo.work_on(tasks.request(found, "ann"))
        _wait(demo, lambda _: not tasks.listing(cluster_id).tasks[0].task.is_open)
        assert tasks.listing(cluster_id).tasks[0].task.phase is TaskPhase.DONE
        # The mark outlasts the task, so that no later plan fills the broker again.
        seen = _wait(demo, lambda v: _is_empty(v, broker)).snapshot
        assert seen is not None
        assert seen.broker[broker].state is BrokerState.DRAINING


def _is_empty(view: LoopView, broker: BrokerId) -> bool:
    return view.snapshot is not None and broker not in view.snapshot.partitions.replica_broker

"""What the service counts, and when it counts as alive and ready."""

import dataclasses
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.dependencies import LoopParts
from control.loop.loop import BEAT_S, Loop
from control.loop.policy import SILENCE_S
from control.loop.view import LoopView, Mode, Phase
from control.service.service_state import MISSED_BEATS, CountingHandler, ServiceState
from control.settings.settings import Settings
from model.errors import ClusterUnreachable, RightsMissing
from model.goals.goals import Goals
from model.run import MoveProgress, MoveState, RunProgress, RunState
from tests.support.control.loop_parts import (
    MB,
    CannedObserver,
    RecordingExecutor,
    cluster,
    loop_parts,
    loop_settings,
)
from tests.support.tui.terminals import LONG_S

UNEVEN = cluster([2] * 9, [MB] * 9)
BALANCED = cluster([1, 2, 3], [MB] * 3)
TICK_S = 0.5


class Clock:
    """Seconds, set by tests."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plimsoll")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(clock: Clock) -> ServiceState:
    found = ServiceState(clock=clock, steady=clock)
    found.begin(Goals(), TICK_S)
    return found


def watched(tmp_path: Path, state: ServiceState, parts: LoopParts, mode: Mode) -> Loop:
    """A loop that reports to the state."""
    parts = dataclasses.replace(parts, decided=state.decided, beat=state.beat, failed=state.failed)
    loop = Loop(loop_settings(tmp_path, mode=mode, patient=True), parts)
    loop.subscribe(state.see)
    return loop


def turned(loop: Loop, observer: CannedObserver, times: int = 1) -> None:
    """Let the loop, which has no thread, turn so often."""
    for _ in range(times):
        loop.turn(observer)


def test_decisions_are_counted_when_they_change(tmp_path: Path, state: ServiceState) -> None:
    observer = CannedObserver([BALANCED])
    loop = watched(tmp_path, state, loop_parts(observer, RecordingExecutor()), Mode.AUTO)
    turned(loop, observer, 5)
    assert dict(state.tallies.decisions) == {("rest", ""): 1}
    observer.snapshots[:] = [UNEVEN]
    turned(loop, observer, 2)
    assert state.decision is not None
    assert state.tallies.decisions[state.decision] == 1
    assert state.tallies.decisions.total() == 2
    loop.close()


def test_each_model_of_the_cluster_is_timed(tmp_path: Path, state: ServiceState) -> None:
    observer = CannedObserver([BALANCED])
    parts = dataclasses.replace(loop_parts(observer, None), modelled=state.modelled)
    loop = Loop(loop_settings(tmp_path, mode=Mode.READ_ONLY), parts)
    turned(loop, observer, 3)
    assert len(state.tallies.model_times) == 1
    observer.snapshots[:] = [UNEVEN]
    turned(loop, observer, 2)
    assert len(state.tallies.model_times) == 2
    assert all(seconds >= 0 for seconds in state.tallies.model_times)
    loop.close()


def test_a_result_is_counted_once(tmp_path: Path, state: ServiceState) -> None:
    observer = CannedObserver([UNEVEN])
    loop = watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY)
    with loop:
        assert loop.wait(lambda view: view.phase is Phase.PLAN_READY, LONG_S)
        views = [loop.view, dataclasses.replace(loop.view, at_ms=0)]
    for view in (*views, *views):
        state.see(view)
    assert state.tallies.solves.total() == 1
    assert sum(state.tallies.solve_buckets) == 1
    assert state.tallies.solve_s > 0


def test_errors_are_counted_by_class(tmp_path: Path, state: ServiceState) -> None:
    observer = CannedObserver([BALANCED, ClusterUnreachable("no answer")])
    parts = loop_parts(observer, RecordingExecutor())
    with watched(tmp_path, state, parts, Mode.AUTO) as loop:
        assert loop.wait(lambda view: view.phase is Phase.UNREACHABLE, LONG_S)
    assert dict(state.tallies.errors) == {"ClusterUnreachable": 1}

    def refuse(_plan: object) -> None:
        raise RightsMissing("no right to move")

    observer = CannedObserver([UNEVEN])
    parts = loop_parts(observer, RecordingExecutor(refuse))
    limits = loop_settings(tmp_path).limits.model_copy(update={"confirm": 0.0, "pause": 0.0})
    parts = dataclasses.replace(parts, failed=state.failed)
    settings = loop_settings(tmp_path, mode=Mode.AUTO, limits=limits)
    with Loop(settings, parts) as loop:
        assert loop.wait(lambda _view: loop.failure is not None, LONG_S)
    assert dict(state.tallies.errors) == {"ClusterUnreachable": 1, "RightsMissing": 1}


def test_a_loop_that_waits_to_reconnect_beats(tmp_path: Path) -> None:
    beats = threading.Semaphore(0)
    observer = CannedObserver([ClusterUnreachable("no answer")])
    parts = dataclasses.replace(loop_parts(observer, None), beat=beats.release)
    with Loop(loop_settings(tmp_path, mode=Mode.READ_ONLY, patient=True), parts):
        assert beats.acquire(timeout=LONG_S)
        assert beats.acquire(timeout=LONG_S)
    assert BEAT_S < MISSED_BEATS * TICK_S


def test_a_loop_that_hangs_does_not_beat(tmp_path: Path) -> None:
    hangs, release = threading.Event(), threading.Event()

    class Hanging(CannedObserver):
        def replication(self) -> None:
            hangs.set()
            release.wait(LONG_S)

    beats: list[int] = []
    observer = Hanging([BALANCED])
    parts = dataclasses.replace(loop_parts(observer, None), beat=lambda: beats.append(1))
    loop = Loop(loop_settings(tmp_path, mode=Mode.READ_ONLY), parts)
    with loop:
        assert hangs.wait(LONG_S)
        assert len(beats) == 1
        assert loop._wake.is_set() is False
        loop._wake.set()
        assert len(beats) == 1
        release.set()


def test_alive_until_so_many_beats_are_missed(state: ServiceState, clock: Clock) -> None:
    assert state.hanging() == ""
    clock.now_s += MISSED_BEATS * TICK_S
    assert state.hanging() == ""
    clock.now_s += 1
    assert state.hanging() == "the loop has not turned for 61.0 s"
    state.beat()
    assert state.hanging() == ""


def test_in_flight_moves_at_the_end_do_not_look_like_a_hanging_loop(
    state: ServiceState, clock: Clock
) -> None:
    state.unready = "the service is stopping"
    clock.now_s += 3600
    assert state.hanging() == ""
    assert state.not_ready() == "the service is stopping"


def test_ready_once_loads_are_known_and_while_they_are_fresh(
    tmp_path: Path, state: ServiceState, clock: Clock
) -> None:
    assert state.not_ready() == "the first observation of the cluster is not complete yet"
    observer = CannedObserver([BALANCED], measured=False)
    loop = watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY)
    turned(loop, observer)
    assert state.not_ready() == "the first observation of the cluster is not complete yet"
    observer.measured = True
    turned(loop, observer)
    assert state.not_ready() == ""
    clock.now_s += SILENCE_S + 1
    turned(loop, observer)
    assert state.not_ready() == "no loads have arrived for 2 min 01 s"
    observer.snapshots[:] = [UNEVEN]
    turned(loop, observer)
    assert state.not_ready() == ""
    state.begin(Goals(), TICK_S)
    assert state.not_ready() == "the first observation of the cluster is not complete yet"
    loop.close()


def test_an_unreachable_cluster_is_the_reason(tmp_path: Path, state: ServiceState) -> None:
    observer = CannedObserver([ClusterUnreachable("127.0.0.1:1 does not answer")])
    with watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY) as loop:
        assert loop.wait(lambda view: view.phase is Phase.UNREACHABLE, LONG_S)
        assert "cannot connect: 127.0.0.1:1 does not answer" in state.not_ready()
        assert state.hanging() == ""


def test_messages_of_the_log_are_counted(state: ServiceState) -> None:
    log = logging.Logger("apart")
    log.addHandler(CountingHandler(state))
    log.warning("one")
    log.warning("two")
    log.error("three")
    assert dict(state.tallies.messages) == {"warning": 2, "error": 1}


@pytest.fixture(scope="module")
def after_a_run() -> Iterator[tuple[ServiceState, Loop]]:
    """The state of a service after a run on the simulated cluster."""
    order = SimulatedDemoOptions(
        mode=Mode.AUTO, brokers=4, seed=7, now_s=1_700_000_000.0, speed=60.0
    )
    state = ServiceState()
    with simulated(Settings(), order) as loop:
        state.begin(loop.settings.goals, loop.settings.tick_s)
        loop.subscribe(state.see)
        assert loop.wait(lambda _view: bool(loop.reports) and not loop.running, LONG_S)
        yield state, loop


def test_runs_moves_and_bytes_are_those_of_the_report(
    after_a_run: tuple[ServiceState, Loop],
) -> None:
    """Another run may have begun since."""
    state, loop = after_a_run
    report = loop.reports[0]
    assert report.state is RunState.DONE
    done = [move for move in report.moves if move.state is MoveState.DONE]
    assert len(done) > 0
    assert state.tallies.runs[RunState.DONE.value] >= 1
    assert state.tallies.moves[MoveState.DONE.value] >= len(done)
    assert state.tallies.moved_bytes >= sum(move.bytes_copied or 0 for move in done)


def with_run(view: LoopView, run_id: str, state: RunState, *moves: MoveProgress) -> LoopView:
    run = RunProgress(run_id=run_id, plan_hash="f" * 64, state=state, moves=moves, started_at_ms=0)
    return dataclasses.replace(view, run=run)


def test_each_move_and_run_is_counted_once_and_those_of_earlier_processes_not(
    after_a_run: tuple[ServiceState, Loop], state: ServiceState
) -> None:
    view = after_a_run[1].view
    assert view.run is not None
    first, second, *_ = view.run.moves
    old, new = (
        dataclasses.replace(item, state=MoveState.DONE, bytes_copied=size)
        for item, size in ((first, 5), (second, 70))
    )
    ahead = dataclasses.replace(second, state=MoveState.ISSUED)
    stuck = dataclasses.replace(second, state=MoveState.STUCK, bytes_copied=None)
    for run_id, at, moves in (
        ("a", RunState.DONE, (old, new)),
        ("b", RunState.RUNNING, (old, ahead)),
        ("b", RunState.RUNNING, (old, new)),
        ("b", RunState.RUNNING, (old, ahead)),
        ("b", RunState.DONE, (old, new)),
        ("b", RunState.DONE, (old, new)),
        ("c", RunState.CHECKING, ()),
        ("c", RunState.RUNNING, (ahead,)),
        ("c", RunState.FAILED, (stuck,)),
    ):
        state.see(with_run(view, run_id, at, *moves))
        assert state.run_active == (at in (RunState.RUNNING, RunState.CHECKING))
    assert dict(state.tallies.runs) == {"done": 1, "failed": 1}
    assert dict(state.tallies.moves) == {"done": 1, "stuck": 1}
    assert state.tallies.moved_bytes == 70

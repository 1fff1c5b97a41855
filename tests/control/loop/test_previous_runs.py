"""Previous runs on a simulated cluster: listed, resumed and rolled back."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from control.loop.previous_runs import PreviousRuns
from control.loop.run_thread import RunEvents, Runner
from control.loop.view import LoopView
from executor.executor import Executor
from executor.journal.lock import sole_writer
from executor.timing import RunLimits
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.run import RunReport, RunState
from model.snapshot.snapshot import Snapshot
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import Killed, SimulatedRun
from tests.support.tui.loop_views import skewed, solving

BEFORE = {0: (1, 2), 1: (1, 2), 2: (2, 1)}
AFTER = {0: (3, 2), 1: (4, 2), 2: (2, 5)}


def _view() -> LoopView:
    header = skewed().header.model_copy(update={"cluster_id": CLUSTER_ID})
    return replace(solving(), snapshot=Snapshot(header, skewed().partitions))


@dataclass
class FakeLoop:
    """Lets runs begin, and keeps what they and their list report."""

    view: LoopView = field(default_factory=_view)
    busy: bool = False
    messages: list[str] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)
    errors: list[PlimsollError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def begin(self, message: str, start: Callable[[], None], _plan_hash: str) -> None:
        if self.busy:
            raise GuardrailRefused("a run is in progress")
        self.messages.append(message)
        start()

    @property
    def events(self) -> RunEvents:
        return RunEvents(
            progressed=lambda _: None,
            ended=self.reports.append,
            failed=self.errors.append,
            task_ended=lambda _: None,
            cleaned_up=lambda _done, _error: None,
        )

    def previous_runs(
        self, connect: Callable[[], Executor] | None, folder: Path
    ) -> tuple[PreviousRuns, Runner]:
        runner = Runner(connect, self.events, journal_dir=folder, moves_in_flight=4)
        previous = PreviousRuns(runner, folder, begin=self.begin, warn=self.warnings.append)
        return previous, runner


def _site(folder: Path) -> SimulatedRun:
    one_by_one = RunLimits(moves_in_flight=1)
    return SimulatedRun(folder=folder, before=BEFORE, after=AFTER, limits=one_by_one)


def _interrupted(folder: Path) -> SimulatedRun:
    """A run whose process died after it had sent the second request."""
    at = _site(folder)
    at.kill_at(1, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    return at


def _previous(at: SimulatedRun, loop: FakeLoop) -> tuple[PreviousRuns, Runner]:
    return loop.previous_runs(at.executor, at.folder)


def _joined(runner: Runner, loop: FakeLoop) -> RunReport:
    runner.join()
    assert not loop.errors
    return loop.reports[-1]


def test_an_interrupted_run_is_found_with_the_first_view(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, _ = _previous(at, loop)
    previous(loop.view)
    assert previous.interrupted is not None
    assert previous.interrupted.state is RunState.INTERRUPTED


def test_a_run_of_another_process_is_not_interrupted(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, _ = _previous(at, loop)
    with sole_writer(tmp_path, CLUSTER_ID):
        previous(loop.view)
        (run,) = previous.runs()
        assert run.state is RunState.RUNNING
    assert previous.interrupted is None
    (run,) = previous.runs()
    assert run.state is RunState.INTERRUPTED


def test_a_run_that_another_process_has_finished_is_no_longer_interrupted(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, _ = _previous(at, loop)
    previous(loop.view)
    assert previous.interrupted is not None
    other_loop = FakeLoop()
    other, runner = _previous(at, other_loop)
    other(other_loop.view)
    other.resume("eve")
    assert _joined(runner, other_loop).state is RunState.DONE
    previous(loop.view)
    assert previous.interrupted is not None
    previous.look_again()
    previous(loop.view)
    assert previous.interrupted is None


def test_settings_left_in_force_are_reported_once(tmp_path: Path) -> None:
    at, loop = _site(tmp_path), FakeLoop()
    at.limits = RunLimits(throttle_bytes_per_s=50_000_000)
    at.kill_at(6, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    previous, _ = _previous(at, loop)
    previous(loop.view)
    previous(loop.view)
    (message,) = loop.warnings
    assert "has not restored all settings: a throttle (leader." in message
    assert "plimsoll cleanup --allow-changes" in message


def test_complete_runs_and_other_clusters_are_not_interrupted(tmp_path: Path) -> None:
    at, loop = _site(tmp_path), FakeLoop()
    at.run()
    previous, _ = _previous(at, loop)
    previous(loop.view)
    assert previous.interrupted is None
    other = _interrupted(tmp_path / "other")
    previous, _ = _previous(other, elsewhere := FakeLoop(view=solving()))
    previous(elsewhere.view)
    assert previous.interrupted is None


def test_a_resumed_run_is_recorded_under_the_name_of_the_operator(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, runner = _previous(at, loop)
    previous(loop.view)
    previous.resume("ann")
    assert _joined(runner, loop).state is RunState.DONE
    assert {n: r for n, (r, _) in at.placement.items()} == AFTER
    assert previous.interrupted is None
    (run,) = previous.runs()
    assert (run.by, run.state) == ("ann", RunState.DONE)


def test_a_rollback_executes_exactly_the_plan_shown(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, runner = _previous(at, loop)
    previous(loop.view)
    assert previous.interrupted is not None
    at.cluster.advance(600.0)
    undone = previous.interrupted.run_id
    plan, left = previous.plan_rollback(undone)
    assert not left
    previous.roll_back(plan, "ann")
    report = _joined(runner, loop)
    assert (report.state, report.plan_hash) == (RunState.DONE, plan.hash)
    assert loop.messages == [
        f"rolling back what run {undone} had moved: plan {plan.hash[:12]} approved by ann"
    ]
    assert {n: r for n, (r, _) in at.placement.items()} == BEFORE
    assert at.is_clean


def test_the_reason_a_rollback_is_refused_is_logged(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, _ = _previous(at, loop)
    with pytest.raises(ConfigError) as refused:
        previous.plan_rollback("20260101T000000000-00000000")
    (message,) = loop.warnings
    assert str(refused.value) in message


def test_no_run_begins_while_another_is_in_progress(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop(busy=True)
    previous, runner = _previous(at, loop)
    previous(loop.view)
    with pytest.raises(GuardrailRefused, match="a run is in progress"):
        previous.resume("ann")
    assert previous.interrupted is not None
    assert not runner.running


def test_read_only_allows_only_listing(tmp_path: Path) -> None:
    at, loop = _interrupted(tmp_path), FakeLoop()
    previous, _ = loop.previous_runs(None, at.folder)
    previous(loop.view)
    assert previous.interrupted is not None
    (run,) = previous.runs()
    for attempt in (
        lambda: previous.resume("ann"),
        lambda: previous.plan_rollback(run.run_id),
        lambda: previous.roll_back(run.plan, "ann"),
    ):
        with pytest.raises(GuardrailRefused, match="--allow-changes"):
            attempt()


def test_runs_are_listed_newest_first_with_their_final_state(tmp_path: Path) -> None:
    at, loop = _site(tmp_path), FakeLoop()
    at.run()
    at.cluster.advance(600.0)
    at.reset_steering()
    at.roll_back()
    previous, _ = _previous(at, loop)
    previous(loop.view)
    newest, oldest = previous.runs()
    assert newest.started_at_ms > oldest.started_at_ms
    assert newest.plan.limited_by == f"what run {oldest.run_id} had moved"
    assert [newest.state, oldest.state] == [RunState.DONE, RunState.DONE]

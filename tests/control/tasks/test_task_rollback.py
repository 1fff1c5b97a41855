"""Rollbacks of tasks from the screen, which the loop executes."""

from pathlib import Path
from typing import cast

import pytest

from control.loop.dependencies import PlanExecutor
from control.loop.run_thread import RunEvents, Runner
from control.tasks.task_rollback import TaskAwareExecutor
from executor.run.rollback_plan import restores
from model.errors import GuardrailRefused, PlimsollError
from model.run import RunReport, RunState
from model.snapshot.snapshot import BrokerState
from tests.support.control.simulated_tasks import SimulatedTask

PLACES = [(4, 1), (1, 4), (2, 3)]


def runner_of(at: SimulatedTask, ended: list[RunReport | PlimsollError]) -> Runner:
    """What executes rollbacks for the screen."""

    def connect() -> PlanExecutor:
        journals = at.folder / "journal"
        found = TaskAwareExecutor(
            at.executor(), at.files, journals, now_ms=lambda: 1, say=at.said.append
        )
        return cast("PlanExecutor", found)

    events = RunEvents(
        progressed=lambda _progress: None,
        ended=ended.append,
        failed=ended.append,
        task_ended=lambda _how: None,
        cleaned_up=lambda _done, _failure: None,
    )
    return Runner(connect, events, journal_dir=at.folder / "journal", moves_in_flight=2)


def test_a_rollback_from_the_screen_lifts_the_mark_of_its_task(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    ended: list[RunReport | PlimsollError] = []
    at.work()
    runner = runner_of(at, ended)
    (run,) = at.executor().runs(tmp_path / "journal", "simulated")
    plan, left = runner.plan_rollback(run.run_id)
    assert (left, restores(plan)) == ([], True)
    assert at.states == {4: BrokerState.DRAINING}
    runner.roll_back(plan, "bob")
    runner.join()
    (report,) = ended
    assert isinstance(report, RunReport)
    assert report.state is RunState.DONE
    assert (at.states, at.cordons) == ({}, {})
    (task,) = at.files.all()
    assert task.note == f"run {run.run_id} was rolled back by bob"


def test_a_plan_that_undoes_nothing_leaves_marks_alone(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    ended: list[RunReport | PlimsollError] = []
    task = at.work()
    plan = at.files.read_plan(task, task.plans[0].plan_hash)
    runner = runner_of(at, ended)
    runner.start(plan, "bob")
    runner.join()
    (failure,) = ended
    assert isinstance(failure, PlimsollError)
    assert at.states == {4: BrokerState.DRAINING}


def test_the_run_of_an_open_task_is_not_rolled_back_from_the_screen(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    at.faults.denied.add("reassign")
    with pytest.raises(PlimsollError):
        at.work()
    at.faults.denied.clear()
    (run,) = at.executor().runs(tmp_path / "journal", "simulated")
    with pytest.raises(GuardrailRefused, match="give it up with plimsoll task cancel remove-4-"):
        runner_of(at, []).plan_rollback(run.run_id)

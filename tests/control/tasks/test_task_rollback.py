"""Rollbacks of tasks from the screen, which the loop executes."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from control.loop.dependencies import PlanExecutor
from control.loop.run_thread import RunEvents, Runner
from control.tasks.broker_task import Operation
from control.tasks.task_rollback import TaskAwareExecutor
from executor.executor import Executor
from executor.journal.lease import Lease
from executor.run.operator_control import Steering
from executor.run.rollback_plan import restores
from model.errors import (
    ClusterUnreachable,
    ExecutionStopped,
    GuardrailRefused,
    PlimsollError,
    RightsMissing,
)
from model.run import RunReport, RunState
from model.snapshot.snapshot import BrokerState
from tests.support.control.simulated_tasks import SimulatedTask
from tests.support.executor.s3_server import CALL_S, place

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


def rolled_back(
    at: SimulatedTask, steering: Steering | None = None, approved: Callable[[], None] = lambda: None
) -> RunReport:
    """Roll back the newest run, as the command does; approved: called once the plan is made."""
    journals = at.folder / "journal"
    executor = TaskAwareExecutor(
        at.executor(), at.files, journals, now_ms=lambda: 1, say=at.said.append
    )
    plan, _ = executor.plan_rollback(journals, None)
    approved()
    steering = steering or Steering(by="bob")
    return executor.execute(plan, journal_dir=journals, observe=lambda _: None, steering=steering)


def kept(at: SimulatedTask) -> list[str]:
    """Sentences on marks that stay."""
    return [said for said in at.said if said.startswith("nothing has moved")]


@pytest.mark.parametrize("operation", [Operation.REMOVE, Operation.DEMOTE])
def test_marks_stay_where_the_run_of_a_rollback_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    """The cluster went away: marks and cordon were lost, nothing had moved back."""
    at = SimulatedTask(folder=tmp_path, places=PLACES, operation=operation)
    at.work()
    before = (at.states, at.cordons, at.held)
    unreachable = ClusterUnreachable("no broker answers")

    def gone(*_args: object) -> RunReport:
        raise unreachable

    with monkeypatch.context() as patched:
        # After the cordon, and before the journal of the run.
        patched.setattr(Executor, "_run", gone)
        with pytest.raises(ClusterUnreachable):
            rolled_back(at)
    assert (at.states, at.cordons, at.held) == before
    (said,) = kept(at)
    assert "once" not in said
    assert rolled_back(at).state is RunState.DONE
    assert (at.states, at.cordons) == ({}, {})


def test_a_cordon_that_is_not_set_again_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    at.work()

    def leave(executor: Executor, *_args: object) -> RunReport:
        at.faults.away = True
        raise ClusterUnreachable(str(executor.cluster()))

    monkeypatch.setattr(Executor, "_run", leave)
    with pytest.raises(ClusterUnreachable):
        rolled_back(at)
    assert at.states == {4: BrokerState.DRAINING}
    assert any("broker 4 not cordoned again: " in said for said in at.said)


def test_rights_that_are_missing_before_the_run_leave_nothing_to_resume(tmp_path: Path) -> None:
    """It advised to resume a run that did not exist."""
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    at.work()
    with pytest.raises(RightsMissing):
        rolled_back(at, approved=lambda: at.faults.denied.add("reassignments"))
    assert at.states == {4: BrokerState.DRAINING}
    (said,) = kept(at)
    assert said.endswith("plimsoll broker include 4 ends that")


def test_marks_stay_where_a_rollback_is_stopped_while_it_waits_for_the_lease(
    tmp_path: Path, endpoint: str
) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES, store=place(endpoint))
    at.work()
    assert at.host is not None
    lease = Lease(at.host.bucket, at.cluster.timing, call_s=CALL_S, holder="b")
    steering = Steering(by="bob")
    steering.stop()
    with lease.held("simulated", Event()), pytest.raises(ExecutionStopped, match="the lease"):
        rolled_back(at, steering)
    assert (at.states, at.cordons) == ({4: BrokerState.DRAINING}, {4: "*"})
    assert len(kept(at)) == 1


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

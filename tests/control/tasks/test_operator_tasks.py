"""Tasks that a person at a screen resumes and cancels."""

from pathlib import Path

import pytest

from control.tasks.broker_task import TaskPhase
from control.tasks.operator_tasks import OperatorTasks
from executor.run.operator_control import Steering
from model.errors import ConfigError, GuardrailRefused
from model.run import MoveState, RunProgress
from tests.control.tasks.test_continued_tasks import CLUSTER, PLACES, killed, site, tasks_of
from tests.support.control.simulated_tasks import SimulatedTask


def unapproved(folder: Path) -> SimulatedTask:
    """A removal with a plan that waits for approval."""
    at = SimulatedTask(folder=folder, places=PLACES, approve=lambda _task, _plan: "")
    assert at.work().phase is TaskPhase.PLANNED
    return at


def test_a_killed_task_is_resumed_by_a_person(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (listed,) = tasks.listing(CLUSTER).tasks
    task_id = listed.task.task_id
    assert tasks.waiting_plan(task_id) is None
    found = tasks.resumed(task_id, "bob")
    assert (found.title, found.by) == (f"task {task_id} (remove broker 4)", "bob")
    assert "is done" in found.work(site(at))
    assert 4 not in at.held
    # Who approved the request has approved its later plans.
    assert {plan.approved_by for plan in at.files.read(task_id).plans} == {"ada"}
    with pytest.raises(ConfigError, match="is done; nothing is left to resume"):
        tasks.resumed(task_id, "bob")


def test_exactly_the_plan_that_a_person_approved_is_executed(tmp_path: Path) -> None:
    at = unapproved(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    plan = tasks.waiting_plan(task.task_id)
    assert plan is not None
    before = at.held
    assert "is planned" in tasks.resumed(task.task_id, "bob", "another").work(site(at))
    assert "is planned" in tasks.resumed(task.task_id, "bob").work(site(at))
    assert at.held == before
    assert "is done" in tasks.resumed(task.task_id, "bob", plan.hash).work(site(at))
    first, *_ = at.files.read(task.task_id).plans
    assert (first.plan_hash, first.approved_by) == (plan.hash, "bob")
    assert 4 not in at.held


def test_the_run_that_a_person_stops_waits_for_a_person(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    steering = Steering()

    def stop(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED, MoveState.DONE):
            steering.stop()

    at.on_progress = stop
    assert "is moving" in tasks.resumed(task.task_id, "bob").work(site(at, steering))
    assert at.files.read(task.task_id).stopped_by == "bob"
    at.on_progress = lambda _progress: None
    assert "is done" in tasks.resumed(task.task_id, "eve").work(site(at))


def test_a_task_is_cancelled_once(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    assert at.states
    tasks.cancel(task.task_id, "bob")
    assert (at.files.read(task.task_id).note, at.states) == ("by bob", {})
    with pytest.raises(ConfigError, match="is cancelled; nothing is left to cancel"):
        tasks.cancel(task.task_id, "bob")


def test_a_task_that_a_process_works_on_is_not_resumed(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    with (
        at.files.working_on(task.task_id),
        pytest.raises(GuardrailRefused, match=rf"works on task {task.task_id}; wait until"),
    ):
        tasks.resumed(task.task_id, "bob")


def test_a_task_whose_plan_is_missing_says_so(tmp_path: Path) -> None:
    at = unapproved(tmp_path)
    (task,) = at.files.all()
    assert task.plan is not None
    at.files.plan_path(task.task_id, task.plan.plan_hash).unlink()
    with pytest.raises(ConfigError, match=r"\.plan"):
        OperatorTasks(tasks_of(at)).waiting_plan(task.task_id)

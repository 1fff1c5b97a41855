"""Tasks that a person at a screen requests, resumes and cancels."""

from pathlib import Path

import pytest

from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.operator_tasks import OperatorTasks
from executor.run.operator_control import Steering
from model.errors import ConfigError, GuardrailRefused
from model.ids import BrokerId
from model.run import MoveState, RunProgress
from model.snapshot.snapshot import BrokerState
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


# ---- requests


def test_exactly_the_plan_that_was_shown_is_stored_and_executed(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    proposed = tasks.proposed(Operation.REMOVE, BrokerId(4), at.snapshot(), "bob")
    assert at.files.all() == []
    assert at.states == {}
    stored = tasks.request(proposed, "bob")
    task = at.files.read(stored.task.task_id)
    assert (task.phase, task.words(), task.by) == (TaskPhase.APPROVED, "remove broker 4", "bob")
    assert [p.plan_hash for p in task.plans] == [proposed.found.plan.hash]
    assert "is done" in stored.work(site(at))
    assert 4 not in at.held
    assert at.states == {4: BrokerState.DRAINING}
    assert at.files.read(task.task_id).plans[0].closed


def test_a_request_that_was_stored_survives_its_process(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    tasks.request(tasks.proposed(Operation.REMOVE, BrokerId(4), at.snapshot(), "bob"), "bob")
    assert at.continued().phase is TaskPhase.DONE
    assert 4 not in at.held


def test_impossible_requests_are_refused_and_store_nothing(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    with pytest.raises(GuardrailRefused, match="was not demoted; nothing is to be undone"):
        tasks.proposed(Operation.UNDEMOTE, BrokerId(4), at.snapshot(), "bob")
    with pytest.raises(ConfigError, match="9"):
        tasks.proposed(Operation.REMOVE, BrokerId(9), at.snapshot(), "bob")
    assert at.files.all() == []
    proposed = tasks.proposed(Operation.REMOVE, BrokerId(4), at.snapshot(), "bob")
    task = tasks.request(proposed, "bob").task
    with pytest.raises(GuardrailRefused, match=rf"task {task.task_id} does that already"):
        tasks.proposed(Operation.REMOVE, BrokerId(4), at.snapshot(), "eve")
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.proposed(Operation.DEMOTE, BrokerId(4), at.snapshot(), "eve")
    # What was shown before another request is not stored after it.
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.request(proposed, "eve")
    assert len(at.files.all()) == 1


def test_brokers_are_excluded_and_included(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    tasks.mark(CLUSTER, BrokerId(3), "bob", excluded=True)
    assert at.states == {3: BrokerState.EXCLUDED}
    tasks.mark(CLUSTER, BrokerId(3), "bob", excluded=False)
    assert at.states == {}
    task = at.request()
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.mark(CLUSTER, BrokerId(4), "bob", excluded=True)

"""Tasks that `--auto` continues, and those that it leaves alone."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from control.loop.dependencies import TaskSite, WorkInterrupted
from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.continued_tasks import FIRST_RETRY_S, ContinuedTasks
from control.tasks.operator_tasks import OperatorTasks
from control.tasks.task_request import UNSIGNED
from control.tasks.task_runner import TaskRunner
from control.tasks.task_steps import RAN
from executor.run.operator_control import Steering
from lab.simulated_cluster.cluster_state import SimulatedBroker
from model.errors import GuardrailRefused, PlimsollError
from model.goals.goals import Budgets, Goals
from model.ids import BrokerId
from model.run import MoveState, RunProgress
from model.snapshot.snapshot import Snapshot
from tests.support.control.simulated_tasks import SimulatedTask
from tests.support.executor.simulated_runs import Killed

PLACES = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4)]
CLUSTER = "simulated"


def tasks_of(at: SimulatedTask) -> ContinuedTasks:
    return ContinuedTasks(
        files=at.files,
        connect=lambda: nullcontext(at.executor()),
        journal_dir=at.folder / "journal",
        solve=at.parts().solve,
        goals=at.goals,
        clock=lambda: at.cluster.now_s,
        steady=at.cluster.timing.steady_s,
    )


def site(at: SimulatedTask, steering: Steering | None = None) -> TaskSite:
    return TaskSite(
        snapshot=at.snapshot(),
        observe=at.snapshot,
        steering=steering or Steering(),
        watch=at.on_progress,
        say=at.said.append,
        moves_in_flight=2,
    )


def killed(folder: Path) -> SimulatedTask:
    """A removal whose process died as its second move was requested."""
    at = SimulatedTask(folder=folder, places=PLACES)
    at.folder.mkdir(exist_ok=True)

    def die(progress: RunProgress) -> None:
        if progress.count(MoveState.DONE):
            raise Killed

    at.on_progress = die
    with pytest.raises(Killed):
        at.work()
    at.on_progress = lambda _progress: None
    return at


def test_a_killed_task_is_continued_to_its_end_without_a_person(tmp_path: Path) -> None:
    at = killed(tmp_path)
    assert 4 in at.held
    tasks = tasks_of(at)
    assert tasks.next("another cluster") is None
    found = tasks.next(CLUSTER)
    assert found is not None
    (task,) = at.files.all()
    assert (found.title, found.by) == (f"task {task.task_id} (remove broker 4)", "ada")
    assert "is done" in found.work(site(at))
    assert 4 not in at.held
    assert tasks.next(CLUSTER) is None
    (task,) = at.files.all()
    assert task.phase is TaskPhase.DONE
    assert {plan.approved_by for plan in task.plans} == {"ada"}


def test_no_task_is_tried_where_plans_need_a_signature(tmp_path: Path) -> None:
    at = killed(tmp_path)
    (task,) = at.files.all()
    tasks = tasks_of(at)
    tasks.barred = UNSIGNED
    for _ in range(2):
        with pytest.raises(GuardrailRefused) as refused:
            tasks.next(CLUSTER)
        assert str(refused.value).startswith(f"task {task.task_id} (remove broker 4) is not cont")
        assert "sign it with plimsoll sign" in str(refused.value)
    with pytest.raises(GuardrailRefused, match="plans need a signature"):
        OperatorTasks(tasks).resumed(task.task_id, "bob")
    assert at.files.all() == [task]
    assert tasks.next("another cluster") is None


def test_a_task_without_an_approved_plan_waits_for_a_person(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES, approve=lambda _task, _plan: "")
    assert at.work().phase is TaskPhase.PLANNED
    assert tasks_of(at).next(CLUSTER) is None


@pytest.mark.parametrize("names", [False, True], ids=["its operator", "a client of the service"])
def test_a_task_that_a_person_stopped_waits_for_them(tmp_path: Path, names: bool) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    at.operator = "" if names else "ada"

    def stop(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED):
            at.steering.stop("ada" if names else "")

    at.on_progress = stop
    task = at.work()
    assert (task.phase, task.stopped_by) == (TaskPhase.MOVING, "ada")
    assert tasks_of(at).next(CLUSTER) is None
    # Resuming it by hand makes it one that is continued again.
    at.steering = Steering()

    def die(_progress: RunProgress) -> None:
        raise Killed

    at.on_progress = die
    with pytest.raises(Killed):
        at.work()
    assert at.files.all()[0].stopped_by == ""
    at.on_progress = lambda _progress: None
    assert tasks_of(at).next(CLUSTER) is not None


def test_a_task_that_a_process_works_on_is_left_to_it(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = tasks_of(at)
    with at.files.working_on(at.files.all()[0].task_id):
        assert tasks.next(CLUSTER) is None
    assert tasks.next(CLUSTER) is not None


BUDGETS = Goals(budgets=Budgets(replica_moves=2))
"""Removing broker 4 takes two plans."""


def test_a_task_interrupted_between_two_runs_waits_for_a_person(tmp_path: Path) -> None:
    """Ctrl-C was noted while a run was in progress alone, and `--auto` continued the task."""
    at = SimulatedTask(folder=tmp_path, places=PLACES, goals=BUDGETS)
    taken = iter([at.snapshot()])

    def observe() -> Snapshot:
        for snapshot in taken:
            return snapshot
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TaskRunner(at.request(), replace(at.parts(), observe=observe)).run()
    (task,) = at.files.all()
    assert (task.phase, len(task.plans), task.stopped_by) == (TaskPhase.MOVING, 1, "ada")
    assert tasks_of(at).next(CLUSTER) is None
    task = at.work(task)
    assert (task.phase, task.stopped_by) == (TaskPhase.DONE, "")


def test_a_task_stopped_with_the_last_moves_of_a_run_makes_no_further_plan(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES, goals=BUDGETS)

    def stop(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED, MoveState.DONE) == len(progress.moves):
            at.steering.stop()

    at.on_progress = stop
    task = at.work()
    assert [plan.closed for plan in task.plans] == [RAN]
    assert (task.phase, task.stopped_by) == (TaskPhase.MOVING, "ada")
    assert tasks_of(at).next(CLUSTER) is None
    at.steering, at.on_progress = Steering(), lambda _progress: None
    assert at.work(task).phase is TaskPhase.DONE
    assert 4 not in at.held


def test_the_end_of_the_loop_leaves_a_task_to_be_continued(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = tasks_of(at)
    found, steering = tasks.next(CLUSTER), Steering()
    assert found is not None
    steering.leave()
    assert "is moving" in found.work(site(at, steering))
    again = tasks.next(CLUSTER)
    assert again is not None
    assert "is done" in again.work(site(at))


def test_an_interrupted_wait_for_loads_leaves_a_task_open(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = tasks_of(at)
    found = tasks.next(CLUSTER)
    assert found is not None

    def create(progress: RunProgress) -> None:
        if progress.count(MoveState.DONE) == len(progress.moves):
            at.on_progress = lambda _progress: None
            created = at.partition(9, (4, 1))
            at.cluster.partitions[created.id] = created

    def interrupted() -> Snapshot:
        raise WorkInterrupted

    # It is on the broker after the run, so another plan is needed, and loads for it.
    at.on_progress = create
    assert "is moving" in found.work(replace(site(at), observe=interrupted, watch=create))
    again = tasks.next(CLUSTER)
    assert again is not None
    assert "is done" in again.work(site(at))
    assert 4 not in at.held


def test_a_task_that_fails_is_tried_again_later(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = tasks_of(at)
    found = tasks.next(CLUSTER)
    assert found is not None
    at.faults.refusals["reassign"] = "not now"
    at.faults.away = True
    with pytest.raises(PlimsollError):
        found.work(site(at))
    at.faults.away = False
    at.faults.refusals.clear()
    assert tasks.next(CLUSTER) is None
    at.cluster.timing.pause(FIRST_RETRY_S)
    again = tasks.next(CLUSTER)
    assert again is not None
    assert "is done" in again.work(site(at))


@pytest.mark.parametrize("operation", [Operation.ADD, Operation.REPLACE])
def test_a_task_on_a_broker_that_is_gone_says_so(tmp_path: Path, operation: Operation) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES, operation=operation)
    at.cluster.brokers[BrokerId(5)] = SimulatedBroker(id=BrokerId(5), rack="a")
    at.remove, at.onto = ((5,), None) if operation is Operation.ADD else ((4,), 5)
    at.faults.denied.add("reassign")
    with pytest.raises(PlimsollError):
        at.work()
    at.faults.denied.clear()
    del at.cluster.brokers[BrokerId(5)]
    tasks = tasks_of(at)
    found = tasks.next(CLUSTER)
    assert found is not None
    gone = "broker 5 is not in the cluster any longer; start it, or cancel the task"
    with pytest.raises(GuardrailRefused, match=gone):
        found.work(site(at))
    assert tasks.next(CLUSTER) is None
    (task,) = at.files.all()
    assert (task.phase, task.note) == (TaskPhase.FAILED, gone)


def test_a_task_that_fails_by_an_error_of_plimsolls_own_is_not_tried_at_once(
    tmp_path: Path,
) -> None:
    at = killed(tmp_path)
    tasks = tasks_of(at)
    found = tasks.next(CLUSTER)
    assert found is not None

    def broken(_progress: RunProgress) -> None:
        raise KeyError(5)

    with pytest.raises(KeyError):
        found.work(replace(site(at), watch=broken))
    assert tasks.next(CLUSTER) is None
    (task,) = at.files.all()
    assert (task.phase, task.note) == (TaskPhase.FAILED, "internal error: KeyError(5)")
    at.cluster.timing.pause(FIRST_RETRY_S)
    again = tasks.next(CLUSTER)
    assert again is not None
    assert "is done" in again.work(site(at))


def test_damaged_task_files_do_not_keep_others_from_being_continued(tmp_path: Path) -> None:
    at = killed(tmp_path)
    (at.files.folder / "remove-9.json").write_text("{")
    assert tasks_of(at).next(CLUSTER) is not None

"""Which tasks are deleted."""

from functools import partial
from pathlib import Path

import pytest

from control.tasks.broker_marks import BrokerMark, change_marks
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase, TaskPlan, TaskProgress
from control.tasks.task_files import TaskFiles
from control.tasks.task_retention import needed_runs
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState

NOW_MS = 1_800_000_000_000
MOST = 2


@pytest.fixture
def files(tmp_path: Path) -> TaskFiles:
    return TaskFiles(tmp_path, most_over=MOST)


def add(files: TaskFiles, number: int, *, over: bool = True) -> BrokerTask:
    """A task on one broker, requested `number` seconds later than the first."""
    brokers = (BrokerId(number),)
    task = files.add("c", Operation.REMOVE, brokers, "ada", NOW_MS + 1000 * number)
    if not over:
        return task
    return files.change(task.task_id, lambda t: t.entered(TaskPhase.DONE, NOW_MS, ""))


def ids(files: TaskFiles) -> list[str]:
    return [task.task_id for task in files.all()]


def test_the_oldest_that_are_over_go_with_all_their_files(files: TaskFiles) -> None:
    first = add(files, 1)
    (files.folder / f"{first.task_id}.0123456789ab.plan").write_text("{}")
    with files.working_on(first.task_id):
        pass
    later = [add(files, number).task_id for number in (2, 3)]
    newest = add(files, 4, over=False)
    assert ids(files) == [*later, newest.task_id]
    assert not [path for path in files.folder.iterdir() if first.task_id in path.name]


def test_open_marked_and_unreadable_tasks_stay(files: TaskFiles) -> None:
    opened = add(files, 1, over=False)
    marking = add(files, 2)
    mark = BrokerMark(
        cluster_id="c",
        broker=BrokerId(2),
        state=BrokerState.EXCLUDED,
        at_ms=NOW_MS,
        by="ada",
        reason="",
        task_id=marking.task_id,
    )
    change_marks(files.state_dir, lambda marks: (*marks, mark))
    torn = add(files, 3)
    files.path(torn.task_id).write_text("{")
    later = [add(files, number).task_id for number in range(4, 4 + MOST)]
    add(files, 9, over=False)
    left = {path.stem for path in files.paths()}
    assert {opened.task_id, marking.task_id, torn.task_id, *later} <= left


def test_runs_of_open_tasks_are_named(files: TaskFiles) -> None:
    for number, over in ((1, True), (2, False)):
        progress = TaskProgress(
            at_ms=NOW_MS,
            run_id=f"run-{number}",
            moves_done=0,
            moves=1,
            bytes_copied=0,
            bytes_to_copy=None,
            seconds_left=None,
        )
        task = add(files, number, over=False)
        at = {"progress": progress}
        files.change(task.task_id, partial(BrokerTask.model_copy, update=at))
        if over:
            files.change(task.task_id, lambda t: t.entered(TaskPhase.DONE, NOW_MS, ""))
    assert needed_runs(files, files.state_dir / "journal") == {"run-2"}


def mark(broker: int, task: BrokerTask) -> BrokerMark:
    return BrokerMark(
        cluster_id="c",
        broker=BrokerId(broker),
        state=BrokerState.MAINTENANCE,
        at_ms=NOW_MS,
        by="ada",
        reason="",
        task_id=task.task_id,
    )


def demotion(files: TaskFiles, operation: Operation, second: int, plan: str = "") -> BrokerTask:
    """A demotion of broker 4, or its end, that is done and has had a plan."""
    task = files.add("c", operation, (BrokerId(4),), "ada", NOW_MS + 1000 * second)
    entry = TaskPlan(
        plan_hash=plan.ljust(64, "0"), moves=1, bytes_to_copy=0, least_bytes=None, replicas=1
    )

    def done(of: BrokerTask) -> BrokerTask:
        of = of.planned(entry, NOW_MS, "") if plan else of
        return of.entered(TaskPhase.DONE, NOW_MS, "")

    return files.change(task.task_id, done)


def test_a_demotion_and_its_runs_stay_until_its_leaders_have_returned(files: TaskFiles) -> None:
    """Also where the mark of a later maintenance has taken the place of its own."""
    journals = files.state_dir / "journal"
    journals.mkdir()
    run_id = "r00000001-20270115T080000000-0a1b2c3d"
    for name in (run_id, "r00000002-20270115T080000000-11111111"):
        (journals / f"{name}.jsonl").touch()
    demoted = demotion(files, Operation.DEMOTE, 1, "0a1b2c3d")
    kept = demotion(files, Operation.MAINTENANCE, 2)
    change_marks(files.state_dir, lambda _: (mark(4, kept),))
    for number in range(5, 6 + MOST):
        add(files, number)
    assert {demoted.task_id, kept.task_id} <= {*ids(files)}
    assert needed_runs(files, journals) == {run_id}
    demotion(files, Operation.MAINTENANCE_OFF, 9)
    change_marks(files.state_dir, lambda _: ())
    assert needed_runs(files, journals) == set()
    add(files, 10)
    assert not {demoted.task_id, kept.task_id} & {*ids(files)}

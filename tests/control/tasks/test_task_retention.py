"""Which tasks are deleted."""

from functools import partial
from pathlib import Path

import pytest

from control.tasks.broker_marks import BrokerMark, change_marks
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase, TaskProgress
from control.tasks.task_files import TaskFiles
from control.tasks.task_retention import run_ids_of_open_tasks
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
    assert run_ids_of_open_tasks(files) == {"run-2"}

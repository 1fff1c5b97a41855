"""Open tasks as status and why name them."""

from pathlib import Path

from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.task_files import TaskFiles
from control.tasks.task_notes import open_task_notes
from model.ids import BrokerId


def test_open_tasks_of_a_cluster_are_named(tmp_path: Path) -> None:
    assert open_task_notes(TaskFiles(tmp_path)) == []
    files = TaskFiles(tmp_path)
    here = files.add("here", Operation.REMOVE, (BrokerId(4),), "ada", 1)
    there = files.add("there", Operation.REMOVE, (BrokerId(5), BrokerId(6)), "ada", 2)
    (note,) = open_task_notes(TaskFiles(tmp_path), "there")
    assert note.startswith(f"Task {there.task_id} is open: remove brokers 5, 6, requested.")
    assert "None of its plans is approved yet; plimsoll task resume" in note
    assert len(open_task_notes(TaskFiles(tmp_path))) == 2
    files.change(here.task_id, lambda t: t.entered(TaskPhase.CANCELLED, 3))
    assert open_task_notes(TaskFiles(tmp_path), "here") == []


def test_a_damaged_file_is_named_and_ends_nothing(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    path = files.path(files.add("here", Operation.REMOVE, (BrokerId(4),), "ada", 1).task_id)
    path.write_text(path.read_text()[:40])
    other = files.add("here", Operation.REMOVE, (BrokerId(5),), "ada", 2)
    note, open_task = open_task_notes(TaskFiles(tmp_path), "here")
    assert str(path) in note
    assert other.task_id in open_task

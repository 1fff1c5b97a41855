"""Files of tasks: written in one step, with a checksum, and never guessed at."""

import json
import os
from pathlib import Path

import pytest

from control.tasks.broker_task import SCHEMA_VERSION, BrokerTask, Operation, TaskPhase
from control.tasks.task_files import TaskCancelled, TaskFiles
from model.errors import ConfigError
from model.ids import BrokerId

NOW_MS = 1_800_000_000_000


def add(files: TaskFiles, *brokers: int, cluster: str = "c") -> BrokerTask:
    return files.add(cluster, Operation.REMOVE, tuple(map(BrokerId, brokers)), "ada", NOW_MS)


def test_a_task_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4, 5)
    assert task.task_id == "remove-4-5-20270115T080000"
    assert files.read(task.task_id) == task
    assert files.all() == [task]
    changed = files.change(task.task_id, lambda t: t.entered(TaskPhase.MOVING, 2, "now"))
    assert files.read(task.task_id) == changed
    assert changed.phase is TaskPhase.MOVING


def test_ids_are_unique_and_short(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    assert add(files, 4).task_id != add(files, 4).task_id
    many = add(files, *range(50)).task_id
    assert many == "remove-0-1-2-3-and-46-20270115T080000"


def test_a_task_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    assert files.named("remove-4") == task
    with pytest.raises(ConfigError, match="no task 'add'; known: remove-4-"):
        files.named("add")
    add(files, 45)
    with pytest.raises(ConfigError, match="it holds none; a task lies in the state folder that it"):
        TaskFiles(tmp_path / "another").named("remove-4")
    with pytest.raises(ConfigError, match="2 tasks begin with 'remove-4': remove-4"):
        files.named("remove-4")


def test_a_folder_in_place_of_a_task_says_what_to_do(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    files.path(task.task_id).unlink()
    files.path(task.task_id).mkdir()
    with pytest.raises(ConfigError, match=r"Is a directory\. Restore it, .* request the"):
        files.read(task.task_id)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda text: text[: len(text) // 2], "cut off. Restore it, or .* request the task again"),
        (lambda text: text.replace('"brokers":[4]', '"brokers":[3]'), "checksum does not fit"),
        (lambda text: text.replace(f'"{SCHEMA_VERSION}"', '"2.0"'), "use a newer plimsoll"),
        (lambda text: "", "is not a plimsoll.task file"),
        (lambda text: text.replace("plimsoll.task", "plimsoll.plan"), "not a plimsoll.task file"),
        (lambda text: "[]", "does not contain a JSON object"),
    ],
    ids=["torn", "edited", "newer", "empty", "another kind", "no object"],
)
def test_a_file_that_cannot_be_trusted_is_named(tmp_path: Path, harm: object, words: str) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    path = files.path(task.task_id)
    path.write_text(harm(path.read_text()))  # type: ignore[operator]
    for read in (lambda: files.read(task.task_id), files.all, lambda: files.named("remove")):
        with pytest.raises(ConfigError, match=words) as failed:
            read()
        assert str(path) in str(failed.value)


def test_a_pipe_in_place_of_a_task_is_named(tmp_path: Path) -> None:
    """Reading it waited for a writer without end."""
    files = TaskFiles(tmp_path)
    add(files, 4)
    pipe = files.path("remove-5")
    os.mkfifo(pipe)
    (task,), (why,) = files.readable()
    assert task.brokers == (4,)
    assert f"{pipe}: not a regular file" in why


def test_a_renamed_file_is_not_another_task(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    files.path(task.task_id).rename(files.path("remove-5"))
    with pytest.raises(ConfigError, match="give the file its own name again"):
        files.read("remove-5")


def test_fields_of_a_newer_minor_version_are_ignored(tmp_path: Path) -> None:
    from control.tasks.sealed_files import checksum_of

    files = TaskFiles(tmp_path)
    task = add(files, 4)
    path = files.path(task.task_id)
    document = json.loads(path.read_text()) | {"schema_version": "1.9", "colour": "red"}
    path.write_text(json.dumps(document | {"checksum": checksum_of(document)}))
    assert files.read(task.task_id).brokers == (4,)


def test_tasks_of_other_clusters_are_kept_apart(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    here, there = add(files, 4), add(files, 4, cluster="other")
    assert files.of("c") == [here]
    assert files.of("other") == [there]


def test_a_cancelled_task_is_changed_no_further(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    files.change(task.task_id, lambda t: t.entered(TaskPhase.CANCELLED, 2, "by bob"))
    with pytest.raises(TaskCancelled, match="was cancelled: by bob"):
        files.change(task.task_id, lambda t: t.entered(TaskPhase.MOVING, 3))
    assert files.is_cancelled(task.task_id)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("a file")
    with pytest.raises(ConfigError, match="is not writable"):
        add(TaskFiles(tmp_path), 4)

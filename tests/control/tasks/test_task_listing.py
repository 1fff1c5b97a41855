"""Tasks as a screen lists them: who works on each, and files that cannot be read."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.task_files import TaskFiles
from control.tasks.task_listing import OWN, TaskListing, task_listing
from model.errors import GuardrailRefused
from model.ids import BrokerId

NOW_MS = 1_800_000_000_000
HOLD = """
import sys
from pathlib import Path
from control.tasks.task_files import TaskFiles
with TaskFiles(Path(sys.argv[1])).working_on(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def add(files: TaskFiles, broker: int, *, cluster: str = "c", ms: int = NOW_MS) -> BrokerTask:
    return files.add(cluster, Operation.REMOVE, (BrokerId(broker),), "ada", ms)


def ids(found: TaskListing) -> list[str]:
    return [of.task.task_id for of in found.tasks]


def test_open_tasks_come_first_and_the_newest_of_them_on_top(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    old, over, new = (add(files, b, ms=NOW_MS + 60_000 * b) for b in (1, 2, 3))
    add(files, 4, cluster="another")
    files.change(over.task_id, lambda t: t.entered(TaskPhase.CANCELLED, NOW_MS, "by ada"))
    assert ids(task_listing(files, "c")) == [new.task_id, old.task_id, over.task_id]


def test_without_a_folder_there_are_no_tasks(tmp_path: Path) -> None:
    assert task_listing(TaskFiles(tmp_path), "c") == TaskListing()
    assert not (tmp_path / "tasks").exists()


def test_a_task_names_the_process_that_works_on_it(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    with files.working_on(task.task_id):
        assert [of.worker for of in task_listing(files, "c").tasks] == [OWN]
    assert [of.worker for of in task_listing(files, "c").tasks] == [""]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(tmp_path), task.task_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        (found,) = task_listing(files, "c").tasks
        assert found.worker == f"plimsoll {other.pid} on {os.uname().nodename}"
        other.communicate()
    assert [of.worker for of in task_listing(files, "c").tasks] == [""]


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"two\nlines", b"x" * 1000])
def test_a_lock_that_names_no_process_is_held_by_this_host(tmp_path: Path, text: bytes) -> None:
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    with files.working_on(task.task_id):
        (tmp_path / "tasks" / f".{task.task_id}.lock").write_bytes(text)
        assert files.worker_of(task.task_id) == "plimsoll on this host"


def test_listing_does_not_keep_a_worker_from_its_task(tmp_path: Path) -> None:
    """A listing holds the lock of each open task for a moment."""
    files = TaskFiles(tmp_path)
    task = add(files, 4)
    over = threading.Event()

    def list_on() -> None:
        while not over.is_set():
            files.worker_of(task.task_id)

    readers = [threading.Thread(target=list_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(100):
            with files.working_on(task.task_id):
                pass
    finally:
        over.set()
        for reader in readers:
            reader.join()
    with (
        files.working_on(task.task_id),
        pytest.raises(GuardrailRefused, match="another plimsoll works on task"),
        files.working_on(task.task_id),
    ):
        pass


def test_files_that_cannot_be_read_are_named_and_hide_no_task(tmp_path: Path) -> None:
    files = TaskFiles(tmp_path)
    kept, newer = add(files, 4), add(files, 5)
    text = files.path(newer.task_id).read_text(encoding="utf-8")
    written = text.replace(f'"{newer.schema_version}"', '"2.0"')
    files.path(newer.task_id).write_text(written, encoding="utf-8")
    (files.folder / "remove-9.json").write_text(text[:80], encoding="utf-8")
    found = task_listing(files, "c")
    assert ids(found) == [kept.task_id]
    assert [(of.name, of.newer) for of in found.unreadable] == [
        (f"{newer.task_id}.json", True),
        ("remove-9.json", False),
    ]
    assert "use a newer plimsoll" in found.unreadable[0].reason
    assert "is not a plimsoll.task file" in found.unreadable[1].reason

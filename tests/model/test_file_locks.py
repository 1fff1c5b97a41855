"""Locks on files: bounded waits, and whatever else has a file's name."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from model.file_locks import locked_file, plain_file

STOPPED = """
import fcntl, os, signal, sys
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    (path.parent / "other").touch()
    path.symlink_to(path.parent / "other")


OTHERS = [os.mkfifo, make_folder, make_link]


@pytest.mark.parametrize("make", OTHERS)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND | os.O_CREAT])
def test_pipes_folders_and_links_are_neither_opened_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], None], flags: int
) -> None:
    path = tmp_path / "lock"
    make(path)
    with pytest.raises(OSError, match="lock is not a regular file; move it away"):
        plain_file(path, flags)
    with pytest.raises(OSError, match="not a regular file"):
        locked_file(path)


def test_a_stopped_process_with_the_lock_is_waited_for_only_so_long(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", STOPPED, str(path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        try:
            assert locked_file(path) is None
            assert locked_file(path, wait_s=0.1) is None
        finally:
            process.kill()
    file = locked_file(path, wait_s=60.0)
    assert file is not None
    file.close()


def test_a_lock_that_is_released_in_time_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    holder = path.open("ab")
    fcntl.flock(holder, fcntl.LOCK_EX)
    monkeypatch.setattr("time.sleep", lambda _seconds: holder.close())
    file = locked_file(path, wait_s=60.0)
    assert file is not None
    file.close()


def test_new_files_belong_to_the_user_alone(tmp_path: Path) -> None:
    os.close(plain_file(tmp_path / "lock", os.O_RDWR | os.O_CREAT))
    assert (tmp_path / "lock").stat().st_mode & 0o077 == 0

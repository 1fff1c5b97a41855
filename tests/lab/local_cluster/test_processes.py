"""Children of a lab end with it, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from lab.local_cluster.processes import Processes
from model.errors import ExecutionStopped

PARENT = """
import signal, sys
from pathlib import Path
from lab.local_cluster.processes import Processes
processes = Processes(Path(sys.argv[1]))
print(processes.spawn("sleeper", ["sleep", "600"]).pid, flush=True)
signal.pause()
"""
DEADLINE_S = 300.0


def eventually(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + DEADLINE_S
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def start_parent(folder: Path) -> tuple[subprocess.Popen[str], int]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        return parent, int(parent.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_lab_leaves_no_process_and_no_folder(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "lab"
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        parent, child = start_parent(folder)
        assert is_alive(child)
        parent.send_signal(number)
        parent.wait()
        assert eventually(lambda: not is_alive(child))
        assert eventually(lambda: not folder.exists())
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_reaper_survives_the_signals_of_a_terminal(tmp_path: Path) -> None:
    """Its parent is killed after the signals, and it still cleans up."""
    folder = tmp_path / "lab"
    parent, child = start_parent(folder)
    reapers = psutil.Process(parent.pid).children()
    (reaper,) = [one for one in reapers if one.pid != child]
    assert eventually(lambda: "reaper.py" in " ".join(reaper.cmdline()))
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # All of them: a test run under nohup has SIGHUP ignored from the beginning.
    assert eventually(lambda: all(ignores(reaper.pid, n) for n in numbers))
    for number in numbers:
        reaper.send_signal(number)
    parent.kill()
    parent.wait()
    assert eventually(lambda: not is_alive(child) and not folder.exists())


def ignores(pid: int, number: signal.Signals) -> bool:
    """Whether a process ignores a signal, according to Linux; elsewhere assumed."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return bool(int(lines["SigIgn"], 16) >> (number - 1) & 1)


def test_a_child_leads_a_session_of_its_own(tmp_path: Path) -> None:
    """So it does not get the terminal's Ctrl-C."""
    processes = Processes(tmp_path / "lab")
    try:
        child = processes.spawn("sleeper", ["sleep", "600"])
        assert os.getsid(child.pid) == child.pid
        assert processes.pids == {"sleeper": child.pid}
    finally:
        processes.close()
    assert processes.pids == {}


def test_closing_twice_is_the_same_as_once(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "lab")
    pid = processes.spawn("sleeper", ["sleep", "600"]).pid
    processes.close()
    processes.close()
    assert not psutil.pid_exists(pid)
    assert not (tmp_path / "lab").exists()


def test_nothing_starts_after_closing(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "lab")
    processes.close()
    with pytest.raises(ExecutionStopped):
        processes.spawn("sleeper", ["sleep", "600"])


def test_logs_outlive_the_lab_on_request(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "lab")
    processes.spawn("talker", ["sh", "-c", "echo one; echo two >&2"]).wait()
    assert processes.log_tail("talker", lines=1) == "two"
    assert processes.log_tail("never started") == ""
    processes.keep_logs(tmp_path / "kept")
    processes.close()
    assert (tmp_path / "kept" / "talker.log").read_text() == "one\ntwo\n"


def test_a_name_in_use_is_refused_and_free_after_closing(tmp_path: Path) -> None:
    """Otherwise the first child would be forgotten."""
    processes = Processes(tmp_path / "lab")
    try:
        first = processes.spawn("sleeper", ["sleep", "600"])
        with pytest.raises(ValueError, match="sleeper is already running"):
            processes.spawn("sleeper", ["sleep", "600"])
        processes.kill("sleeper")
        second = processes.spawn("sleeper", ["sleep", "600"])
        assert processes.pids == {"sleeper": second.pid} != {"sleeper": first.pid}
    finally:
        processes.close()

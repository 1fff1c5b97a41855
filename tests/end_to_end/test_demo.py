"""`plimsoll demo --headless` from start to end, with nothing left behind."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.support.cli_offline import PLIMSOLL
from tests.support.cli_on_cluster import Shell


def started(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A demo whose temporary files are in a separate folder."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    environment = Shell(tmp_path, "").environment | {"TMPDIR": str(tmp_path / "tmp")}
    del environment["PLIMSOLL_BOOTSTRAP_SERVER"]
    with (tmp_path / "stderr.txt").open("w") as stderr:
        return subprocess.Popen(
            [PLIMSOLL, "demo", "--headless", *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
        )


def left_behind(folder: Path) -> list[str]:
    """Processes with the folder in their arguments or environment."""
    result = []
    for process in psutil.process_iter():
        try:
            messages = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(folder) in w for w in messages):
            result.append(" ".join(process.cmdline()))
    return result


def assert_nothing_left(tmp_path: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        files = list((tmp_path / "tmp").iterdir())
        if not files and not left_behind(tmp_path / "tmp"):
            return
        time.sleep(0.2)
    assert (files, left_behind(tmp_path / "tmp")) == ([], [])


@pytest.mark.kafka
@pytest.mark.spark
def test_the_headless_demo_balances_the_cluster_and_reports(tmp_path: Path) -> None:
    demo = started(tmp_path, "--quiet-s", "10", "-o", "json")
    out, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, (tmp_path / "stderr.txt").read_text()
    report = json.loads(out)
    assert report["level_within"] <= 0.10
    assert report["acknowledged"] == report["read"] > 0
    assert (report["lost"], report["duplicated"], report["later_moves"]) == (0, 0, 0)
    assert report["bound"] <= report["objective"] < report["objective_before"]
    assert report["tier_segments"][0] > 0
    assert all(m["duration_s"] > 0 for m in report["run"]["moves"])
    assert_nothing_left(tmp_path)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize(
    ("when", "number"),
    [("brokers", signal.SIGINT), ("running", signal.SIGTERM), ("measuring", signal.SIGKILL)],
)
def test_a_demo_ended_at_any_moment_leaves_nothing(
    tmp_path: Path, when: str, number: signal.Signals
) -> None:
    demo = started(tmp_path)
    deadline = time.monotonic() + 300
    while when not in (tmp_path / "stderr.txt").read_text():
        assert time.monotonic() < deadline
        assert demo.poll() is None, (tmp_path / "stderr.txt").read_text()
        time.sleep(0.05)
    demo.send_signal(number)
    demo.communicate(timeout=300)
    assert demo.returncode in (130, -signal.SIGKILL)
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()
    assert_nothing_left(tmp_path)

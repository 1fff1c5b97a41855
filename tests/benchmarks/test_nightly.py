"""The nightly lane: every part runs, and one that fails fails the lane."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks import nightly
from benchmarks.nightly import Part
from tests.support.cli_on_cluster import wait_until
from tests.support.paths import ROOT

ALL = nightly.parts(777, seeds=333, fuzz_minutes=0.55, soak_minutes=61)


def python(name: str, code: str) -> Part:
    return Part(name=name, command=(sys.executable, "-c", code))


def test_a_part_that_fails_or_hangs_keeps_no_other_from_running(tmp_path: Path) -> None:
    parts = [
        python("fails", "raise SystemExit(3)"),
        python("writes", f"open({str(tmp_path / 'x')!r}, 'w')"),
    ]
    ended = list(nightly.run(parts))
    assert [(of.part.name, of.failure) for of in ended] == [
        ("fails", "exit code 3"),
        ("writes", ""),
    ]
    assert (tmp_path / "x").exists()
    table = nightly.report(ended)
    assert "| fails | exit code 3 | " in table
    assert "| writes | passed | " in table


def test_a_part_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    hangs = f"sleep 3600 & echo $! > {shlex.quote(str(tmp_path / 'pid'))}; wait"
    ended, *_ = nightly.run([Part(name="hangs", command=("sh", "-c", hangs))], limit_s=4.0)
    assert ended.failure == "ended after 4.00 s"
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to notice."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_the_exit_code_tells_whether_all_passed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = (python("good", "print('ran')"), python("bad", "raise SystemExit(1)"))
    monkeypatch.setattr(nightly, "parts", lambda *_, **__: parts)
    monkeypatch.chdir(ROOT)
    for names, code in ((["good", "bad"], 1), (["good"], 0)):
        given = [word for name in names for word in ("--only", name)]
        monkeypatch.setattr(sys, "argv", ["nightly", *given])
        assert nightly.main() == code
    assert capfd.readouterr().out.count("| good | passed |") == 2


def test_an_unknown_part_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nightly", "--only", "fyre"])
    with pytest.raises(SystemExit, match="2"):
        nightly.main()
    parts = "fire, bugs, fuzz, soak, slow, versions"
    assert f"no part fyre; there are {parts}" in capsys.readouterr().err


@pytest.mark.parametrize("part", ALL, ids=lambda part: part.name)
def test_each_part_is_a_target_of_make(part: Part) -> None:
    make, *how = part.command
    command, env = [make, "-n", *how], nightly.environment()
    shown = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    for word in how[1:]:
        assert word.partition("=")[2] in shown.stdout


def test_options_of_make_nightly_are_not_those_of_its_parts(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--only\\ bugs")
    show = python("shows", "import os; print('flags:', os.environ.get('MAKEFLAGS'))")
    assert [of.failure for of in nightly.run([show])] == [""]
    assert "flags: None" in capfd.readouterr().out
    assert "MAKEFLAGS" in os.environ

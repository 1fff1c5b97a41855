"""Run `plimsoll` like a user, in a folder and without a cluster."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from control.cli.main import app

PLIMSOLL = Path(sys.executable).with_name("plimsoll")
RUN_S = 900.0
"""The planner's loops may have to be compiled first."""


def usual(folder: Path) -> dict[str, str]:
    """Variables that confine a command to its folder."""
    return {
        "PLIMSOLL_STATE_DIR": str(folder / "state"),
        "PLIMSOLL_CACHE_DIR": str(folder / "cache"),
        "PLIMSOLL_TIMEOUT_S": "2",
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


def enter(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let commands in this process use only the folder, as the current one."""
    for name in [n for n in os.environ if n.startswith("PLIMSOLL_")]:
        monkeypatch.delenv(name)
    for name, value in usual(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)


def plimsoll(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
    return subprocess.run(
        [PLIMSOLL, *arguments],
        cwd=folder,
        env=known | usual(folder) | environment,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        stdin=subprocess.DEVNULL,
    )


def in_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which has loaded its libraries already."""
    run = CliRunner().invoke(app, arguments)
    return subprocess.CompletedProcess(arguments, run.exit_code, run.stdout, run.stderr)


def refused(run: subprocess.CompletedProcess[str], code: int, message: str) -> None:
    """Assert one sentence on stderr, nothing on stdout, and no traceback."""
    assert run.returncode == code, run.stderr
    assert message in run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert len(run.stderr.splitlines()) == 1

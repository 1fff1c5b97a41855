"""Commands in this process, on a simulated cluster instead of a real one."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from control import compose
from control.cli import input_source, task_work
from control.cli.invocation import Origin
from control.cli.main import app
from control.settings.settings import Settings
from executor.executor import Executor
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.snapshot.file import read_snapshot
from tests.support import cli_offline
from tests.support.control.simulated_tasks import SimulatedTask

PLACES = [(4, 1), (1, 4), (2, 3), (4, 2), (3, 4)]


def commanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedTask:
    """A cluster that commands reach."""
    folder = tmp_path / "state"
    folder.mkdir()
    found = SimulatedTask(folder=folder, places=PLACES)
    reached(found, tmp_path, monkeypatch)
    return found


def reached(found: SimulatedTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands reach this cluster; `tmp_path` has its state folder, `state`."""
    cli_offline.enter(monkeypatch, tmp_path)
    monkeypatch.setenv("PLIMSOLL_BOOTSTRAP_SERVER", "127.0.0.1:1")

    def executor(settings: Settings, plan_file: Path | None = None) -> Executor:
        admin = SimulatedAdmin(found.cluster, found.faults)
        required = compose.required_signature(settings, plan_file)
        return Executor(admin, timing=found.cluster.timing, required=required)

    def snapshot_of(_settings: object, origin: Origin, *, early: bool = False) -> object:
        del early
        return found.snapshot() if origin.snapshot is None else read_snapshot(origin.snapshot)

    monkeypatch.setattr(compose, "executor", executor)
    monkeypatch.setattr(input_source, "snapshot_of", snapshot_of)
    monkeypatch.setattr(task_work, "snapshot_of", snapshot_of)


def plimsoll(*arguments: str, code: int = 0) -> Result:
    run = CliRunner().invoke(app, list(arguments))
    assert run.exit_code == code, run.output
    return run


def answer(*arguments: str, code: int = 0) -> Any:
    return json.loads(plimsoll(*arguments, "-o", "json", code=code).stdout)

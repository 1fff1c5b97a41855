"""`run --auto --once` over a loop in process."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from control import compose
from control.cli.main import app
from control.loop.loop import Loop
from control.loop.view import Mode
from control.settings.auto_limits import EAGER
from control.settings.schedule_table import MaintenanceWindow, ScheduleTable
from tests.support.control.loop_parts import (
    MB,
    START_MS,
    CannedObserver,
    RecordingExecutor,
    cluster,
    loop_parts,
    loop_settings,
)

DAILY = MaintenanceWindow(start="0 2 * * *", duration=3600.0)
"""Closed at the time of the snapshots."""


def test_once_does_not_wait_for_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler's call hung until it opened."""
    executor = RecordingExecutor()

    def loop(*_: object, **_options: Any) -> Loop:
        parts = loop_parts(
            CannedObserver([cluster([2] * 8, [MB] * 8)]),
            executor,
            clock=lambda: START_MS / 1000,
            steady=lambda: START_MS / 1000,
        )
        schedule = ScheduleTable(windows=(DAILY,))
        return Loop(loop_settings(tmp_path, mode=Mode.AUTO, limits=EAGER, schedule=schedule), parts)

    monkeypatch.setattr(compose, "loop", loop)
    monkeypatch.chdir(tmp_path)
    asked = "run --auto --once --limits eager --allow-changes -b 127.0.0.1:1"
    run = CliRunner().invoke(app, asked.split())
    assert run.exit_code == 5, run.output
    assert "outside the maintenance windows; the next run may start" in run.output
    assert "--once does not wait for that" in run.output
    assert executor.plans == []

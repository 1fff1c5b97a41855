"""A simulated cluster for commands."""

from pathlib import Path

import pytest

from tests.support.control.command_cluster import commanded
from tests.support.control.simulated_tasks import SimulatedTask


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedTask:
    """A cluster that commands reach instead of a real one."""
    return commanded(tmp_path, monkeypatch)

"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.local_cluster.processes import Processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Where a test starts its load; all of it ends with the test."""
    started = Processes(tmp_path / "load")
    yield started
    started.close()

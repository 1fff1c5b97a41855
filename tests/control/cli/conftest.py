"""Fixtures of the command line's tests."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def _own_logs() -> Iterator[None]:
    """Restore the loggers' handlers afterwards."""
    root = logging.getLogger("plimsoll")
    before = root.handlers[:], root.level, root.propagate
    yield
    for handler in {*root.handlers} - {*before[0]}:
        handler.close()
    root.handlers[:], root.level, root.propagate = before

"""Fixtures of all tests of the screen."""

import pytest


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use colours as in a terminal, regardless of the environment."""
    monkeypatch.delenv("NO_COLOR", raising=False)

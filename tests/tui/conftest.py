"""What all tests of the screen need."""

import pytest


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours as in a terminal, whatever the environment asks for."""
    monkeypatch.delenv("NO_COLOR", raising=False)

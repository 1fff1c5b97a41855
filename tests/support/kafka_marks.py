"""Marks for tests on real brokers."""

from typing import Final

import pytest

FAILING_BROKERS: Final = [
    pytest.mark.kafka,
    # A connection that fails leaves kafka-python's socket to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
"""Brokers die or hang, or their connections are harmed."""

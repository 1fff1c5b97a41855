"""Wait for something that other threads or processes do."""

import time
from collections.abc import Callable

PATIENCE_S = 300.0


def eventually(done: Callable[[], bool], what: str = "") -> None:
    """Wait until `done` is true; fail with `what` after `PATIENCE_S` seconds."""
    end_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end_s, what
        time.sleep(0.02)

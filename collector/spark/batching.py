"""Samples on their way to Spark: few at a time at first, then several together."""

from collections.abc import Callable
from typing import Final, Protocol

import pyarrow as pa

EAGER_SAMPLES: Final = 20
"""As many samples go to Spark one by one, so that the first loads come soon."""
SETTLED_SAMPLES: Final = 3
"""Later as many go together: a micro-batch costs Spark 0.3 s of a core."""


class Sink(Protocol):
    """Where samples go on their way to Spark."""

    def write(self, samples: pa.Table) -> None:
        """Store one sample of all partitions, schema `SAMPLES`."""

    def close(self) -> None:
        """Release files or connections."""


class SampleBatch:
    """Hands samples to a sink, one by one at first and in a hurry, else several together.

    hurried: whether a load has just changed, so that each sample matters.
    """

    def __init__(self, sink: Sink, hurried: Callable[[], bool] = lambda: False) -> None:
        self._sink, self._hurried = sink, hurried
        self._written = 0
        self._waiting: list[pa.Table] = []

    def add(self, samples: pa.Table) -> int:
        """Write now or later; returns how many rows were written.

        Raises as the sink does. The rows are lost then, and the next samples go one
        by one again, so that each shows whether the sink has recovered.
        """
        self._waiting.append(samples)
        settled = self._written >= EAGER_SAMPLES and not self._hurried()
        if settled and len(self._waiting) < SETTLED_SAMPLES:
            return 0
        together, self._waiting = pa.concat_tables(self._waiting), []
        written, self._written = self._written, 0
        self._sink.write(together)
        self._written = written + 1
        return len(together)

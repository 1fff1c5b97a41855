"""Samples on their way to Spark: few at a time at first, then several together."""

from typing import Final, Protocol

import pyarrow as pa

EAGER_SAMPLES: Final = 20
"""As many samples go to Spark one by one, so that the first loads come soon."""
SETTLED_SAMPLES: Final = 3
"""Later as many go together: a micro-batch costs Spark 0.3 s of a core."""


class Sink(Protocol):
    """Where samples go on their way to Spark."""

    def write(self, samples: pa.Table) -> None:
        """Keep one sample of all partitions."""

    def close(self) -> None:
        """Let go of what is open."""


class SampleBatch:
    """Hands samples to a sink, one by one at first, then several together."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._count = 0
        self._waiting: list[pa.Table] = []

    def add(self, samples: pa.Table) -> None:
        """Write now or later."""
        self._count += 1
        self._waiting.append(samples)
        eager = self._count <= EAGER_SAMPLES
        if eager or len(self._waiting) >= SETTLED_SAMPLES:
            together, self._waiting = pa.concat_tables(self._waiting), []
            self._sink.write(together)

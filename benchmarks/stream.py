"""Measures the streaming job: `python -P -m benchmarks.stream`, into `stream.md`.

The job is the one that `plimsoll` runs, fed with samples of made-up partitions as fast
as it takes them: what a batch costs does not depend on the time between two.
"""

import argparse
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from benchmarks.machine import processor
from benchmarks.processes import Tree
from benchmarks.sections import table
from clients.jvm.java import find_java
from collector.history.vector_files import VectorFiles
from collector.samples import SAMPLES
from collector.spark.session import Spark
from collector.spark.stream import Job, LoadStream, SpoolSource
from collector.spark.vectors import Window
from collector.spool import Spool
from model.units import bytes_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE: Final = Path(__file__).with_name("stream.md")
PARTITIONS: Final = 20_000
TOPIC: Final = 100
"""Partitions of one topic."""
EVERY_MS: Final = 10_000
WINDOW: Final = Window(window_ms=6 * EVERY_MS)
WARM: Final = 20
"""Batches that are not counted: code is compiled, the window is filled."""
BEGUN_MS: Final = 1_700_000_000_000


def sample(number: int, partitions: int) -> pa.Table:
    """One sample of all partitions; each takes records at a rate of its own."""
    ids = np.arange(partitions)
    latest = (number + 1) * (1000 + ids % 977)
    columns = {
        "topic": [f"topic-{i // TOPIC}" for i in ids],
        "partition": ids % TOPIC,
        "time_ms": np.full(partitions, BEGUN_MS + number * EVERY_MS),
        "broker": ids % 10,
        "flags": np.zeros(partitions),
        "groups": np.ones(partitions),
        "latest": latest,
        "earliest_local": np.zeros(partitions),
        "earliest": np.zeros(partitions),
        "local_bytes": 1000 * latest,
        "total_bytes": 1000 * latest,
        "group_offsets": latest - 10,
    }
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in SAMPLES]
    return pa.table(arrays, schema=SAMPLES)


class Fed:
    """A job that gets one sample after the other, each when the one before is done."""

    def __init__(self, folder: Path, batches: int) -> None:
        self._folder = folder
        self._batches = batches
        self._spool = Spool(folder / "spool")
        self._written_s = 0.0
        self._done = threading.Event()
        self.tree = Tree()
        self.batch_s: list[float] = []
        """From a sample in the spool to its vectors, of each batch."""
        self.cpu_s: list[float] = []
        """Of all processes, at the end of each batch."""
        self.memory: list[tuple[int, int]] = []
        """Now and then: batch, and bytes."""
        self.first_s: float | None = None
        """When the first vectors came, by the clock of `time.monotonic`."""

    def run(self, session: "SparkSession") -> Self:
        """Feed all batches; returns at the end."""
        for number in range(3):
            self._spool.write(sample(number, PARTITIONS))
        job = Job(
            source=SpoolSource(self._folder / "spool"),
            checkpoint=self._folder / "checkpoint",
            window=WINDOW,
            interval_s=0,
        )
        history = VectorFiles(self._folder / "history", every_ms=WINDOW.window_ms)
        stream = LoadStream(session, job, history, self._take)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(stream.run)
            running.add_done_callback(lambda _: self._done.set())
            self._done.wait()
            stream.stop()
        running.result()
        return self

    def _take(self, _samples: pa.Table, vectors: pa.Table) -> None:
        now_s = time.monotonic()
        assert len(vectors) == PARTITIONS
        if self.first_s is None:
            self.first_s = now_s
        else:
            self.batch_s.append(now_s - self._written_s)
            self.cpu_s.append(self.tree.cpu_s())
        done = len(self.batch_s)
        if done % 50 == WARM:
            self.memory.append((done, self.tree.pss_bytes()))
        if done == self._batches:
            self._done.set()
            return
        self._spool.write(sample(done + 3, PARTITIONS))
        self._written_s = time.monotonic()


def measure(folder: Path, batches: int) -> str:
    """The table."""
    java, begun_s = find_java(), time.monotonic()
    with closing(Spark(java, master="local[2]", log_file=folder / "spark.log")) as one:
        fed = Fed(folder, batches).run(one.start())
    counted = fed.batch_s[WARM:]
    cpu_s = (fed.cpu_s[-1] - fed.cpu_s[WARM - 1]) / len(counted)
    (early, before), (late, after) = fed.memory[0], fed.memory[-1]
    rows = [
        ["from nothing to the first vectors", f"{(fed.first_s or 0) - begun_s:.1f} s"],
        [
            "one batch, median / 99 % / worst",
            f"{statistics.median(counted):.2f} / {np.percentile(counted, 99):.2f} / "
            f"{max(counted):.2f} s",
        ],
        ["CPU of all processes per batch", f"{cpu_s:.2f} s"],
        [
            f"of one core, a batch each {EVERY_MS // 1000} s",
            f"{100 * cpu_s / (EVERY_MS / 1000):.1f} %",
        ],
        [
            f"memory of all processes after {early} and {late} batches",
            f"{bytes_text(before)}, {bytes_text(after)}",
        ],
    ]
    return table(["what", "measured"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=520)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
        text = measure(Path(folder), given.batches)
    TABLE.write_text(
        f"The streaming job on samples of {PARTITIONS:,} partitions of "
        f"{PARTITIONS // TOPIC} topics, six samples to a window; the process that "
        f"generates the samples is included. `make bench-stream`, {processor()}."
        "\n\n" + text
    )
    print(TABLE.read_text())


if __name__ == "__main__":
    main()

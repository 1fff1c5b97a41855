"""Files of a synthetic cluster: a recorded state and its history."""

import datetime as dt
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from collector.assemble import assemble
from collector.recorded_state import Recorder, canonical, writing
from collector.samples import SAMPLES
from collector.spark.vectors import VECTORS, concatenate, load_vectors
from collector.state_replay import placement_of
from lab.synthetic.load_curves import DAY_MS
from lab.synthetic.observe import END_MS, HISTORY, WINDOW, Order, SyntheticCluster
from model.snapshot.snapshot import Snapshot

HISTORY_FOLDER: Final = "history"
SAMPLED_EVERY_MS: Final = 3000
BATCH_SAMPLES: Final = 3
_ROWS: Final = 1_000_000
"""Approximate rows in memory, which are written at once."""


def write_synthetic(out: Path, order: Order) -> Snapshot:
    """Write the folder and return its snapshot; equal orders give equal bytes.

    In addition to a recorded state (docs/reference/files.md) it has `history/`: load vectors in the
    layout of the collector's own history, one file per day.

    Raises ConfigError: the folder exists or cannot be written.
    """
    with Recorder(out) as recorder, writing(out):
        made = SyntheticCluster(order)
        _write_history(recorder.folder / HISTORY_FOLDER, made, order)
        samples, vectors = SAMPLES.empty_table(), VECTORS.empty_table()
        for batch in _batches(made):
            samples = concatenate([samples, batch], SAMPLES)
            vectors = canonical(load_vectors(samples, WINDOW))
            recorder.add(batch, vectors)
        placement = placement_of(made.mean)
        snapshot = assemble(placement, vectors, window_s=WINDOW.window_ms / 1000)
        recorder.finish(snapshot, WINDOW)
    return snapshot


def _batches(made: SyntheticCluster) -> Iterator[pa.Table]:
    """Samples of the newest window, in two batches."""
    count = WINDOW.window_ms // SAMPLED_EVERY_MS + 1
    times = [END_MS - SAMPLED_EVERY_MS * (count - 1 - i) for i in range(count)]
    for first in range(0, count, BATCH_SAMPLES):
        of_batch = times[first : first + BATCH_SAMPLES]
        yield concatenate([made.samples(t) for t in of_batch], SAMPLES)


def _write_history(folder: Path, made: SyntheticCluster, order: Order) -> None:
    """Write `date=YYYY-MM-DD/synthetic-<day>.parquet`; days since the epoch, UTC."""
    steps = order.days * DAY_MS // order.step_ms
    times = [END_MS - order.step_ms * i for i in reversed(range(steps))]
    for day, of_day in itertools.groupby(times, lambda t: t // DAY_MS):
        date = dt.datetime.fromtimestamp(day * DAY_MS / 1000, dt.UTC).date()
        path = folder / f"date={date.isoformat()}" / f"synthetic-{day}.parquet"
        path.parent.mkdir(parents=True)
        _write_day(path, made, list(of_day))


def _write_day(path: Path, made: SyntheticCluster, times: list[int]) -> None:
    at_once = max(1, _ROWS // len(made.mean))
    with pq.ParquetWriter(
        path,
        HISTORY,
        compression="zstd",
        store_schema=False,
        use_dictionary=[f.name for f in HISTORY if f.type != pa.float64()],
        use_byte_stream_split=[f.name for f in HISTORY if f.type == pa.float64()],
    ) as out:
        for first in range(0, len(times), at_once):
            of_group = times[first : first + at_once]
            out.write_table(concatenate([made.vectors(t) for t in of_group], HISTORY))

"""Streaming jobs over the spool in a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from collector.history.vector_files import VectorFiles
from collector.spark.stream import Job, LoadStream, SpoolSource, TopicSource
from collector.spark.vectors import Window
from tests.support.collector.sample_rows import WINDOW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spool_stream(
    session: "SparkSession",
    folder: Path,
    take: Callable[[pa.Table, pa.Table], None] = lambda *_: None,
    source: SpoolSource | TopicSource | None = None,
    window: Window = WINDOW,
) -> LoadStream:
    """Checkpoint and history lie in the folder, too; its `spool` is the default source."""
    job = Job(
        source=source or SpoolSource(folder / "spool"),
        checkpoint=folder / "checkpoint",
        window=window,
        interval_s=0.1,
    )
    return LoadStream(session, job, VectorFiles(folder / "history", every_ms=1), take)

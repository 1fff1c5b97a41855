"""A process that watches a spool with Spark and may be killed at any time.

Arguments: master, Python of the workers, folder, the second at which it waits in a
batch (-1: none), and the last second, after which it repeats everything undisturbed.
"""

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clients.jvm.java import find_java
from collector.spark.session import Spark
from collector.spark.stream import SpoolSource
from tests.support.collector.sample_rows import START_MS
from tests.support.collector.spool_streams import spool_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def second_of(vectors: pa.Table) -> int:
    newest_ms: int = pc.max(vectors["time_ms"]).as_py()
    return (newest_ms - START_MS) // 1000


def watch(session: "SparkSession", spool: Path, folder: Path, hold: int, last: int) -> None:
    """Write the published vectors of each batch until the last second."""
    (folder / "out").mkdir(parents=True, exist_ok=True)
    ended = threading.Event()

    def take(_samples: pa.Table, vectors: pa.Table) -> None:
        second = second_of(vectors)
        part = folder / "part.parquet"
        pq.write_table(vectors, part)
        part.replace(folder / "out" / f"{second}.parquet")
        if second == hold:
            time.sleep(3600)
        if second == last:
            ended.set()

    stream = spool_stream(session, folder, take, SpoolSource(spool))
    thread = threading.Thread(target=stream.run, daemon=True)
    thread.start()
    while thread.is_alive() and not ended.wait(0.1):
        pass
    stream.stop()
    thread.join()


def main(master: str, python: str, folder: Path, hold: int, last: int) -> None:
    spark = Spark(
        find_java(),
        master=master,
        properties={**SMALL, "spark.pyspark.python": python},
        log_file=folder / "log" / "spark.log",
    )
    try:
        session = spark.start()
        watch(session, folder / "spool", folder / "watched", hold, last)
        watch(session, folder / "spool", folder / "undisturbed", -1, last)
    finally:
        spark.close()


if __name__ == "__main__":
    master, python, folder, hold, last = sys.argv[1:]
    main(master, python, Path(folder), int(hold), int(last))

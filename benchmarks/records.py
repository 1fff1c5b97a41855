"""How fast raw AutoMQ records become hours of loads: `make bench-records`.

Writes `records.md`. With --only, the other sections of the table stay as they are.
DuckDB and polars have no way to decode such records.
"""

import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer

from benchmarks.machine import processor
from benchmarks.processes import Tree
from benchmarks.sections import Section, measure_sections, table
from clients.jvm.jars import SPARK_KAFKA_PINS, default_cache_dir, fetch, read_pins
from clients.jvm.java import find_java
from collector.history.hours import HOUR_MS, HOURS, NEEDED, hourly
from collector.history.store import spark_type
from collector.reports import automq_metrics
from collector.spark.session import Spark
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE: Final = Path(__file__).with_name("records.md")
PARTITIONS: Final = 20_000
TOPICS: Final = 2_000
HOURS_OF: Final = 8
EACH: Final = 1_200_000
"""Records of an hour: each partition once a minute."""
FIRST_MS: Final = 472_222 * HOUR_MS
SLICE: Final = 20_000
RUNS: Final = 3
TOPIC: Final = "backlog"
_QUANTITIES: Final = {"net_in": "bytes_in", "net_out": "bytes_out", "disk": "size_bytes"}
Batches = Iterator[pa.RecordBatch]


def hour(number: int) -> Iterator[bytes]:
    """All records of an hour, as AutoMQ's reporters write them."""
    begin_ms = FIRST_MS + number * HOUR_MS
    loads = np.random.default_rng(number).exponential(1e6, EACH).tolist()
    for at, load in enumerate(loads):
        minute, place = divmod(at, PARTITIONS)
        topic = b"team-%d.events.v1" % (place % TOPICS)
        head = struct.pack(">bbqiii", 0, 0, begin_ms + 60_000 * minute, 1, 0, len(topic))
        figures = struct.pack(">i" + 3 * "bd", 3, 0, load, 1, 2 * load, 2, 1e9)
        yield head + topic + struct.pack(">i", place // TOPICS) + figures


def aggregated(records: list[pa.Array]) -> pa.Table:
    """Schema `HOURS`, by the pipeline's own kernels."""
    tables = []
    for part in records:
        found, _ = automq_metrics.decode(part)
        nothing = pa.nulls(len(found), pa.float32())
        columns = [
            found[_QUANTITIES[field.name]].cast(pa.float32())
            if field.name in _QUANTITIES
            else found[field.name]
            if field.name in found.column_names
            else nothing
            for field in NEEDED
        ]
        tables.append(pa.table(columns, schema=NEEDED))
    return hourly(pa.concat_tables(tables))


def _slices(values: pa.ChunkedArray) -> list[pa.Array]:
    """Small enough for the processor's cache."""
    return [chunk.slice(at, SLICE) for chunk in values.chunks for at in range(0, len(chunk), SLICE)]


def _of_rows(batches: Batches) -> Batches:
    found = [batch.column("value") for batch in batches]
    if found:
        yield from aggregated(found).to_batches()


def _of_files(batches: Batches) -> Batches:
    for batch in batches:
        for path in batch.column("path").to_pylist():
            values = pq.ParquetFile(path).read(["value"])["value"]
            yield from aggregated(_slices(values)).to_batches()


def files(session: "SparkSession", folder: Path) -> "DataFrame":
    """Workers read the files, as they do when days are compacted."""
    paths = pa.table({"path": sorted(map(str, folder.glob("*.parquet")))})
    frame = session.createDataFrame(paths).repartition(HOURS_OF)
    return frame.mapInArrow(_of_files, spark_type(HOURS))


def rows(session: "SparkSession", folder: Path) -> "DataFrame":
    """Spark reads the files and hands the rows to its workers."""
    frame = session.read.parquet(folder.as_uri())
    return frame.mapInArrow(_of_rows, spark_type(HOURS))


def measured(name: str, frame: Callable[[], "DataFrame"], out: Path) -> list[str]:
    """A line of the table, after one run that warms up."""
    walls, cpus, tree = [], [], Tree()
    for _ in range(RUNS + 1):
        begun_s, before_s = time.perf_counter(), tree.cpu_s()
        frame().write.mode("overwrite").parquet(out.as_uri())
        walls.append(time.perf_counter() - begun_s)
        cpus.append(tree.cpu_s() - before_s)
    made = sum(pq.read_metadata(p).num_rows for p in out.glob("*.parquet"))
    assert made == HOURS_OF * PARTITIONS, made
    wall_s, cpu_s = (statistics.median(found[1:]) for found in (walls, cpus))
    count = HOURS_OF * EACH
    return [name, *(f"{x:.1f}" for x in (wall_s, count / wall_s / 1e6, count / cpu_s / 1e6))]


_HEADERS: Final = ("by", "wall s", "million records/s", "million/CPU s")


def parquet() -> str:
    """Records in files, one file an hour."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as home:
        folder = Path(home) / "records"
        folder.mkdir()
        for number in range(HOURS_OF):
            records = pa.array(list(hour(number)), pa.binary())
            pq.write_table(pa.table({"value": records}), folder / f"{number}.parquet")
        spark = Spark(find_java(), master="local[2]", log_file=Path(home) / "spark.log")
        with closing(spark):
            session, out = spark.start(), Path(home) / "out"
            lines = [
                measured("files read by workers", lambda: files(session, folder), out),
                measured("files read by Spark", lambda: rows(session, folder), out),
            ]
    return table(_HEADERS, lines)


def fill(bootstrap: str) -> None:
    """Write all records."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(HOURS_OF):
        for count, record in enumerate(hour(number)):
            producer.produce(TOPIC, record, partition=number)
            if count % SLICE == 0:
                producer.flush()
    producer.flush()


def kafka() -> str:
    """Records in a topic, one of its partitions an hour."""
    plan = LocalPlan(tier=False)
    with (
        tempfile.TemporaryDirectory(prefix="plimsoll-") as home,
        LocalCluster(default_cache_dir(), plan) as cluster,
    ):
        cluster.create_topic(TOPIC, [[1 + n % 3] for n in range(HOURS_OF)])
        fill(cluster.bootstrap)
        jars = fetch(read_pins(SPARK_KAFKA_PINS, "spark-kafka"), default_cache_dir())
        log_file = Path(home) / "spark.log"
        spark = Spark(find_java(), master="local[2]", jars=jars, log_file=log_file)
        options = {
            "kafka.bootstrap.servers": cluster.bootstrap,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
        }
        with closing(spark):
            session = spark.start()

            def read() -> "DataFrame":
                frame = session.read.format("kafka").options(**options).load()
                return frame.select("value").mapInArrow(_of_rows, spark_type(HOURS))

            line = measured("topic read by Spark", read, Path(home) / "out")
    return table(_HEADERS, [line])


SECTIONS: Final[dict[str, Section]] = {
    "parquet": ("Records in Parquet", "One file per hour.", parquet),
    "kafka": (
        "A backlog in Kafka",
        "Eight partitions on three local brokers, which share the two cores.",
        kafka,
    ),
}


def main() -> None:
    words = (
        f"{HOURS_OF * EACH:,} records of AutoMQ's reporters, {HOURS_OF} hours of "
        f"{PARTITIONS:,} partitions, decoded and compacted into mean, exact p95, "
        "maximum and count of bytes in, bytes out and size by partition and hour, "
        f"written as Parquet. Spark local[2], medians of {RUNS} runs after a warm-up; "
        f"`make bench-records`, {processor()}."
    )
    measure_sections(TABLE, words, SECTIONS)


if __name__ == "__main__":
    main()

"""How fast loads become statistics by hour of the week: `make bench-pipeline`.

Writes `pipeline.md`: Spark with plimsoll's kernels in two of its workers, and polars and DuckDB
doing the same with two threads, in the same run. What is asked stands in benchmarks/README.md.
"""

import argparse
import os
import shutil
import statistics as st
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.machine import processor
from benchmarks.processes import Tree
from clients.jvm.java import find_java
from collector.history.statistics import dense, statistics
from collector.spark.session import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE: Final = Path(__file__).with_name("pipeline.md")
VALUES: Final = (1_000_000, 10_000_000, 100_000_000)
METRICS: Final = ("net_in", "net_out", "cpu", "requests")
"""Columns beside partition and hour: four values a row."""
WEEKS: Final = 7
"""Rows of each partition and hour of the week."""
WEEK: Final = 168
RUNS: Final = 5
FILES: Final = 8
THREADS: Final = 2
ROWS_PER_TASK: Final = 1_500_000
_MIB: Final = 2**20

RESULT: Final = pa.schema(
    [
        pa.field("pid", pa.int32()),
        pa.field("hour", pa.int32()),
        *(pa.field(f"{m}_{s}", pa.float32()) for m in METRICS for s in ("mean", "p95")),
        *(pa.field(f"{m}_max", pa.float32()) for m in METRICS),
        *(pa.field(f"{m}_samples", pa.int32()) for m in METRICS),
    ]
)
_SPARK: Final = ", ".join(f"{f.name} {'int' if f.type == pa.int32() else 'float'}" for f in RESULT)


@dataclass(frozen=True, slots=True)
class Measured:
    """One way of doing it: medians of its runs."""

    name: str
    wall_s: float
    cpu_s: float
    driver_mib: float
    """Most that the driver's Python and JVM held together; 0 where there is none."""


def write(folder: Path, values: int) -> None:
    """Rows of partitions and hours; each file has all hours of a range of partitions.

    Within a file they stand by time, as loads come.
    """
    folder.mkdir()
    hours = np.arange(WEEK * WEEKS, dtype=np.int32) % WEEK
    partitions = max(FILES, values // len(METRICS) // (WEEK * WEEKS))
    random = np.random.default_rng(7)
    for number, pids in enumerate(np.array_split(np.arange(partitions), FILES)):
        rows = len(pids) * WEEK * WEEKS
        columns: dict[str, Any] = {
            "pid": np.tile(pids, WEEK * WEEKS).astype(np.int32),
            "hour": np.repeat(hours, len(pids)),
        }
        for metric in METRICS:
            columns[metric] = random.exponential(1e6, rows).astype(np.float32)
        pq.write_table(pa.table(columns), folder / f"part-{number}.parquet")


def weekly(rows: pa.Table) -> pa.Table:
    """Schema `RESULT`, of all rows of some partitions."""
    pid = rows["pid"].to_numpy().astype(np.int64)
    cells, group = dense(pid * WEEK + rows["hour"].to_numpy())
    columns: dict[str, Any] = {
        "pid": (cells // WEEK).astype(np.int32),
        "hour": (cells % WEEK).astype(np.int32),
    }
    for metric in METRICS:
        found = statistics(group, rows[metric].to_numpy(), len(cells))
        columns |= {f"{metric}_{s}": values for s, values in found.items()}
    return pa.table([columns[f.name] for f in RESULT], schema=RESULT)


Batches = Iterator[pa.RecordBatch]


def _worker(batches: Batches) -> Batches:
    found = list(batches)
    if found:
        yield from weekly(pa.Table.from_batches(found)).to_batches()


def by_spark(session: "SparkSession", source: Path, out: Path) -> None:
    """As history does it: rows meet by partition, then the kernel."""
    frame = session.read.parquet(source.as_uri())
    tasks = max(THREADS, 1 + rows_in(source) // ROWS_PER_TASK)
    frame = frame.repartition(tasks, "pid").mapInArrow(_worker, _SPARK)
    frame.write.mode("overwrite").parquet(out.as_uri())


def by_spark_in_place(session: "SparkSession", source: Path, out: Path) -> None:
    """Files that hold all rows of their partitions need not be exchanged."""
    frame = session.read.parquet(source.as_uri()).mapInArrow(_worker, _SPARK)
    frame.write.mode("overwrite").parquet(out.as_uri())


def _reader(batches: Batches) -> Batches:
    for batch in batches:
        for path in batch.column("path").to_pylist():
            yield from weekly(pq.ParquetFile(path).read()).to_batches()


def by_spark_reading(session: "SparkSession", source: Path, out: Path) -> None:
    """As days are compacted: workers are given files, and read them themselves."""
    paths = pa.table({"path": sorted(map(str, source.glob("*.parquet")))})
    frame = session.createDataFrame(paths).repartition(THREADS)
    frame.mapInArrow(_reader, _SPARK).write.mode("overwrite").parquet(out.as_uri())


def by_duckdb(source: Path, out: Path) -> None:
    import duckdb

    columns = ", ".join(
        f"avg({m}) {m}_mean, quantile_disc({m}, 0.95) {m}_p95, max({m}) {m}_max, "
        f"count({m}) {m}_samples"
        for m in METRICS
    )
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute(
            f"COPY (SELECT pid, hour, {columns} FROM '{source}/*.parquet' "  # noqa: S608
            f"GROUP BY pid, hour) TO '{out}' (FORMAT parquet)"
        )


def by_polars(source: Path, out: Path) -> None:
    import polars as pl

    columns = [
        expression
        for m in METRICS
        for expression in (
            pl.col(m).mean().alias(f"{m}_mean"),
            pl.col(m).quantile(0.95, "nearest").alias(f"{m}_p95"),
            pl.col(m).max().alias(f"{m}_max"),
            pl.col(m).count().alias(f"{m}_samples"),
        )
    ]
    frame = pl.scan_parquet(f"{source}/*.parquet").group_by("pid", "hour")
    frame.agg(columns).sink_parquet(out)


def rows_in(source: Path) -> int:
    return sum(pq.read_metadata(p).num_rows for p in source.glob("*.parquet"))


class Watch:
    """CPU seconds of a process and its children, and the memory of some of them."""

    def __init__(self, driver: Sequence[psutil.Process]) -> None:
        self._driver = driver
        self.most_mib = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._tree = Tree()
        self._cpu_s = self._tree.cpu_s()
        self._begun_s = time.perf_counter()
        self._thread.start()

    def stop(self) -> tuple[float, float]:
        """Wall and CPU seconds."""
        wall_s = time.perf_counter() - self._begun_s
        cpu_s = self._tree.cpu_s() - self._cpu_s
        self._end.set()
        self._thread.join()
        return wall_s, cpu_s

    def _look(self) -> None:
        while True:
            held = sum(p.memory_info().rss for p in self._driver) / _MIB
            self.most_mib = max(self.most_mib, held)
            if self._end.wait(0.05):
                return


def measure(
    name: str, work: Callable[[], None], driver: Sequence[psutil.Process], runs: int
) -> Measured:
    """After one run that warms up."""
    work()
    walls, cpus, most = [], [], 0.0
    for _ in range(runs):
        watch = Watch(driver)
        try:
            work()
        finally:
            wall_s, cpu_s = watch.stop()
        walls.append(wall_s)
        cpus.append(cpu_s)
        most = max(most, watch.most_mib)
    return Measured(name, st.median(walls), st.median(cpus), most)


def check(left: Path, right: Path) -> None:
    """Both gave the same statistics."""
    tables = [
        pa.concat_tables(
            pq.ParquetFile(p).read().select(RESULT.names).cast(RESULT)
            for p in sorted(path.glob("*.parquet") if path.is_dir() else [path])
        ).sort_by([("pid", "ascending"), ("hour", "ascending")])
        for path in (left, right)
    ]
    for field in RESULT:
        found, wanted = (np.asarray(t[field.name], np.float64) for t in tables)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=field.name)


def rounds(
    session: "SparkSession", driver: Sequence[psutil.Process], home: Path, values: int
) -> list[Measured]:
    """All ways at one size."""
    source = home / f"values-{values}"
    write(source, values)
    runs = RUNS if values <= 10_000_000 else 2
    ways: dict[str, Callable[[Path], None]] = {
        "Spark": partial(by_spark, session, source),
        "Spark, no exchange": partial(by_spark_in_place, session, source),
        "Spark, files read by workers": partial(by_spark_reading, session, source),
        "DuckDB": partial(by_duckdb, source),
        "polars": partial(by_polars, source),
    }
    found = []
    for name, way in ways.items():
        out = home / f"out-{name.replace(', ', '-').replace(' ', '-')}"
        processes = driver if name.startswith("Spark") else ()
        found.append(measure(name, partial(way, out), processes, runs))
    for other in ("Spark-no-exchange", "Spark-files-read-by-workers", "DuckDB"):
        check(home / "out-Spark", home / f"out-{other}")
    shutil.rmtree(source)
    return found


def lines(values: int, found: Sequence[Measured]) -> Iterator[str]:
    wall_s = {m.name: m.wall_s for m in found}
    for m in found:
        memory = f"{m.driver_mib:,.0f}" if m.driver_mib else ""
        yield (
            f"| {values:,} | {m.name} | {m.wall_s:.2f} | {values / m.wall_s / 1e6:.1f} "
            f"| {values / m.cpu_s / 1e6:.1f} | {wall_s['DuckDB'] / m.wall_s:.2f} "
            f"| {memory} |\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--values", default=",".join(map(str, VALUES)))
    sizes = [int(v) for v in parser.parse_args().values.split(",")]
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import duckdb
    import polars as pl

    text = [
        f"Values in Parquet to mean, exact p95, maximum and count by partition and "
        f"hour of the week, written as Parquet; {len(METRICS)} values per row, "
        f"{WEEKS} rows per group. Medians of {RUNS} runs (2 of the largest) after a "
        f"warm-up; `make bench-pipeline`, {processor()}, Spark local[{THREADS}], "
        f"DuckDB {duckdb.__version__} and polars {pl.__version__} with {THREADS} "
        "threads.\n\n",
        "| values | by | wall s | million/s | million/CPU s | times DuckDB's speed "
        "| driver MiB |\n",
        "|---|---|---|---|---|---|---|\n",
    ]
    with tempfile.TemporaryDirectory(prefix="plimsoll-pipeline-") as folder:
        home = Path(folder)
        log_file = home / "spark.log"
        spark = Spark(find_java(), master=f"local[{THREADS}]", log_file=log_file)
        try:
            session = spark.start()
            driver = [psutil.Process(), psutil.Process(spark.pid)]
            for values in sizes:
                text += lines(values, rounds(session, driver, home, values))
                sys.stderr.write("".join(text[-5:]))
        finally:
            spark.close()
    TABLE.write_text("".join(text))


if __name__ == "__main__":
    main()

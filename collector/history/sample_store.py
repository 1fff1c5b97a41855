"""What Cruise Control kept of a cluster's past, as hours.

Its sample store is a topic with one record per partition and sampling interval
(`PartitionMetricSample` and `KafkaSampleStore` of cruise-control). Spark's Python
workers run `decode`, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.history.hours import HOURS, NEEDED, QUANTITIES, hourly
from collector.history.store import spark_type
from collector.packing import Batches
from collector.records import Positions, Raw, Sieve, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS: Final = 64
"""A topic of 200 million records is three million each."""

_OLD: Final = ("cpu", "disk", "net_in", "net_out")
_NEW: Final = ("produced", "fetched", "records_in", "copied_in", "copied_out")
_FIGURES: Final = (_OLD, _OLD + _NEW)
"""By version, in the order of the record."""
_FIRST: Final = 5
"""Version and broker come before the figures,"""
_LAST: Final = 12
"""time and partition after them, then the topic."""
_UNITS: Final = {"net_in": 1024.0, "net_out": 1024.0, "disk": 1024.0**2}


def decode(records: pa.Array) -> tuple[pa.Table, dict[str, int]]:
    """A binary array to the schema `NEEDED`, and how many records are none, by reason.

    Reasons: short, version, value, topic. CPU is left out: it is a share of cores that
    no record tells.
    """
    raw = Raw.of(records)
    sieve = Sieve()
    start, length = sieve.keep(raw.length > 0, "short", raw.start, raw.length)
    version = raw.data[start]
    good = version < len(_FIGURES)
    start, length, version = sieve.keep(good, "version", start, length, version)
    tables = [
        _version(raw, sieve, number, start[of], length[of])
        for number in range(len(_FIGURES))
        for of in [np.flatnonzero(version == number)]
    ]
    return pa.concat_tables(tables), sieve.skipped


def _version(
    raw: Raw, sieve: Sieve, version: int, start: Positions, length: Positions
) -> pa.Table:
    names = _FIGURES[version]
    time_at = _FIRST + 8 * len(names)
    head = time_at + _LAST
    start, length = sieve.keep(length >= head, "short", start, length)
    at = start[:, None] + _FIRST + 8 * np.arange(len(names))
    values = raw.read(">f8", at)
    partition = raw.read(">i4", start + head - 4)
    good = ((values >= 0) & (values < np.inf)).all(axis=1) & (partition >= 0)
    start, length, partition, values = sieve.keep(
        good, "value", start, length, partition, values
    )
    topic, named = texts(raw, start + head, length - head)
    start, partition, values = sieve.keep(named, "topic", start, partition, values)
    time_ms = raw.read(">i8", start + time_at)
    figures = dict(zip(names, values.T, strict=True))
    columns = [topic.filter(pa.array(named)), partition, time_ms]
    return pa.table([*columns, *_quantities(figures, len(start))], schema=NEEDED)


def _quantities(
    figures: dict[str, NDArray[np.float64]], rows: int
) -> list[NDArray[np.float32]]:
    found = {name: figures[name] * unit for name, unit in _UNITS.items()}
    if "produced" in figures:
        found["requests"] = figures["produced"] + figures["fetched"]
        found["records_in"] = figures["records_in"]
    nothing = np.full(rows, np.nan)
    return [found.get(name, nothing).astype(np.float32) for name in QUANTITIES]


def hours_of(records: "DataFrame", begin_ms: int, end_ms: int) -> "DataFrame":
    """Schema `HOURS`, of records (column `value`) of a span of time."""
    loads = records.mapInArrow(_decoder(begin_ms, end_ms), spark_type(NEEDED))
    together = loads.repartition(TASKS, "topic", "partition")
    return together.mapInArrow(_hourly, spark_type(HOURS))


def _decoder(begin_ms: int, end_ms: int) -> Callable[[Batches], Batches]:
    def convert(batches: Batches) -> Batches:
        for batch in batches:
            found, _ = decode(batch.column("value"))
            time_ms = found["time_ms"].to_numpy()
            inside = (time_ms >= begin_ms) & (time_ms < end_ms)
            yield from found.filter(pa.array(inside)).to_batches()

    return convert


def _hourly(batches: Batches) -> Batches:
    found = list(batches)
    if found:
        yield from hourly(pa.Table.from_batches(found)).to_batches()

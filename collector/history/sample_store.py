"""What Cruise Control kept of a cluster's past, as hours.

Its sample store is a topic with one record per partition and sampling interval
(`PartitionMetricSample` and `KafkaSampleStore` of cruise-control). Spark's Python
workers run `decode`, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.history.hours import HOURS, NEEDED, QUANTITIES, hourly
from collector.history.store import spark_type
from collector.record_columns import Decoded, Positions, RawRecords, RecordFilter, texts
from collector.spark.arrow_transfer import Batches, whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS: Final = 64
"""A topic of 200 million records is three million each."""

_OLD: Final = ("cpu", "disk", "net_in", "net_out")
_NEW: Final = ("produced", "fetched", "records_in", "copied_in", "copied_out")
_LAYOUTS: Final = tuple(
    np.dtype(
        [
            ("version", "u1"),
            ("broker", ">i4"),
            *((name, ">f8") for name in names),
            ("time_ms", ">i8"),
            ("partition", ">i4"),
        ]
    )
    for names in (_OLD, _OLD + _NEW)
)
"""By version; the topic follows."""
_UNITS: Final = {"net_in": 1024.0, "net_out": 1024.0, "disk": 1024.0**2}


def decode(records: pa.Array) -> Decoded:
    """Decode a binary array to `NEEDED`.

    Invalid records are counted by reason: short, version, value, topic. CPU is left out: it
    is a share of cores whose number no record has.
    """
    raw = RawRecords.of(records)
    sieve = RecordFilter()
    start, length = sieve.keep(raw.length > 0, "short", raw.start, raw.length)
    version = raw.data[start]
    good = version < len(_LAYOUTS)
    start, length, version = sieve.keep(good, "version", start, length, version)
    tables = [
        _rows(raw, sieve, layout, start[of], length[of])
        for number, layout in enumerate(_LAYOUTS)
        for of in [np.flatnonzero(version == number)]
    ]
    return Decoded(pa.concat_tables(tables), sieve.skipped)


def _rows(
    raw: RawRecords,
    sieve: RecordFilter,
    layout: np.dtype[np.void],
    start: Positions,
    length: Positions,
) -> pa.Table:
    size = layout.itemsize
    start, length = sieve.keep(length >= size, "short", start, length)
    fixed = raw.read(layout, start)
    good = fixed["partition"] >= 0
    for name in layout.names[2:-2]:  # type: ignore[index]  # has fields
        good &= (fixed[name] >= 0) & (fixed[name] < np.inf)
    fixed, start, length = sieve.keep(good, "value", fixed, start, length)
    topic, named = texts(raw, start + size, length - size)
    (fixed,) = sieve.keep(named, "topic", fixed)
    time_ms, partition = fixed["time_ms"].astype("i8"), fixed["partition"].astype("i4")
    columns = [topic.filter(pa.array(named)), partition, time_ms]
    return pa.table([*columns, *_quantities(fixed)], schema=NEEDED)


def _quantities(fixed: NDArray[Any]) -> list[NDArray[np.float32]]:
    found = {name: fixed[name] * unit for name, unit in _UNITS.items()}
    if fixed.dtype == _LAYOUTS[1]:
        found["requests"] = fixed["produced"] + fixed["fetched"]
        found["records_in"] = fixed["records_in"]
    nothing = np.full(len(fixed), np.nan)
    return [found.get(name, nothing).astype(np.float32) for name in QUANTITIES]


def hours_of(records: "DataFrame", begin_ms: int, end_ms: int) -> "DataFrame":
    """Compute hourly statistics, schema `HOURS`, from raw records, column `value`.

    begin_ms, end_ms: the span of record times to use, milliseconds since the epoch.
    """
    loads = records.mapInArrow(_decoder(begin_ms, end_ms), spark_type(NEEDED))
    together = loads.repartition(TASKS, "topic", "partition")
    return together.mapInArrow(whole(hourly), spark_type(HOURS))


def _decoder(begin_ms: int, end_ms: int) -> Callable[[Batches], Batches]:
    def convert(batches: Batches) -> Batches:
        for batch in batches:
            found, _ = decode(batch.column("value"))
            time_ms = pc.field("time_ms")
            yield from found.filter((time_ms >= begin_ms) & (time_ms < end_ms)).to_batches()

    return convert

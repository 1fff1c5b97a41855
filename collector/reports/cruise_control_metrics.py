"""Records of Cruise Control's `__CruiseControlMetrics` as columns.

One record per figure, of a broker, a topic or a partition (`MetricSerde` and
`RawMetricType` of cruise-control-metrics-reporter). Spark's Python workers run this,
so nothing but numpy and pyarrow is imported here.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.records import Positions, Raw, Sieve, texts

VERSION: Final = 0
BROKER, TOPIC, PARTITION = 0, 1, 2
_HEAD_BYTES: Final = 15
"""Class, version, metric, time, broker."""
_KNOWN: Final = 63
"""Metric ids are below this."""

METRICS: Final = pa.schema(
    [
        pa.field("scope", pa.int8()),
        pa.field("metric", pa.int16()),
        pa.field("time_ms", pa.int64()),
        pa.field("broker", pa.int32()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("value", pa.float64()),
    ]
)
"""One row per record.

scope: BROKER, TOPIC or PARTITION. metric: Cruise Control's id. topic: with underscores
for dots; null where the figure is a broker's. partition: -1 where it is not a
partition's. value: in the unit of the metric.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What became of a batch of records."""

    metrics: pa.Table
    """Schema `METRICS`, by scope, then in the order of the records."""
    skipped: dict[str, int]
    """Records left out, by reason: short, class, version, metric, value, topic."""


def decode(records: pa.Array) -> Decoded:
    """Metrics out of a binary array; what is none is counted and left out."""
    raw = Raw.of(records)
    sieve = Sieve()
    start, end = sieve.keep(
        raw.length >= _HEAD_BYTES, "short", raw.start, raw.start + raw.length
    )
    scope = raw.data[start]
    start, end, scope = sieve.keep(scope <= PARTITION, "class", start, end, scope)
    good = raw.data[start + 1] == VERSION
    start, end, scope = sieve.keep(good, "version", start, end, scope)
    good = raw.data[start + 2] < _KNOWN
    start, end, scope = sieve.keep(good, "metric", start, end, scope)
    tables = [
        _scope(raw, sieve, number, start[of], end[of])
        for number in (BROKER, TOPIC, PARTITION)
        for of in [np.flatnonzero(scope == number)]
    ]
    return Decoded(metrics=pa.concat_tables(tables), skipped=sieve.skipped)


def _scope(
    raw: Raw, sieve: Sieve, scope: int, start: Positions, end: Positions
) -> pa.Table:
    """Rows of one scope: a broker's have no topic, a topic's no partition."""
    head = start + _HEAD_BYTES
    length = np.zeros_like(start)
    if scope != BROKER:
        head, start, end = sieve.keep(head + 4 <= end, "short", head + 4, start, end)
        length = raw.read(">i4", head - 4)
    numbered = 4 if scope == PARTITION else 0
    fits = (length >= 0) & (length <= end - head - (numbered + 8))
    start, head, length = sieve.keep(fits, "short", start, head, length)
    value_at = head + length + numbered
    value = raw.read(">f8", value_at)
    partition = np.full(len(start), -1, np.int32)
    good = (value >= 0) & (value < np.inf)
    if scope == PARTITION:
        partition = raw.read(">i4", value_at - 4)
        good &= partition >= 0
    start, head, length, partition, value = sieve.keep(
        good, "value", start, head, length, partition, value
    )
    topic = pa.nulls(len(start), pa.string())
    if scope != BROKER:
        topic, named = texts(raw, head, length)
        topic = topic.filter(pa.array(named))
        start, partition, value = sieve.keep(named, "topic", start, partition, value)
    return _table(raw, scope, start, topic, partition, value)


def _table(
    raw: Raw,
    scope: int,
    start: Positions,
    topic: pa.Array,
    partition: NDArray[np.int32],
    value: NDArray[np.float64],
) -> pa.Table:
    columns = [
        pa.array(np.full(len(start), scope, np.int8)),
        pa.array(raw.data[start + 2].astype(np.int16)),
        pa.array(raw.read(">i8", start + 3)),
        pa.array(raw.read(">i4", start + 11)),
        topic,
        pa.array(partition),
        pa.array(value),
    ]
    return pa.table(columns, schema=METRICS)

"""Records of Cruise Control's `__CruiseControlMetrics` as columns.

One record per figure, of a broker, a topic or a partition (`MetricSerde` and
`RawMetricType` of cruise-control-metrics-reporter). Spark's Python workers run this,
so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collector.record_columns import Decoded, Positions, RawRecords, RecordFilter, texts

VERSION: Final = 0
BROKER, TOPIC, PARTITION = 0, 1, 2
_HEAD: Final = np.dtype(
    [("scope", "u1"), ("version", "u1"), ("metric", "u1"), ("time_ms", ">i8"), ("broker", ">i4")]
)
_BY: Final = (("metric", "i2"), ("time_ms", "i8"), ("broker", "i4"))
_VALUE: Final = np.dtype([("value", ">f8")])
_TAILS: Final = (_VALUE, _VALUE, np.dtype([("partition", ">i4"), ("value", ">f8")]))
"""What stands behind the topic's name, by scope."""
_LARGEST: Final = 62
"""Of the metric ids."""

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


def decode(records: pa.Array) -> Decoded:
    """Decode a binary array to `METRICS`, by scope, then in the order of the records.

    Format: Cruise Control's `MetricSerde`, version 0. Invalid records are counted by
    reason: short, class, version, metric, value, topic.
    """
    raw = RawRecords.of(records)
    sieve = RecordFilter()
    start, end = sieve.keep(
        raw.length >= _HEAD.itemsize, "short", raw.start, raw.start + raw.length
    )
    head = raw.read(_HEAD, start)
    for field, most, reason in (
        ("scope", PARTITION, "class"),
        ("version", VERSION, "version"),
        ("metric", _LARGEST, "metric"),
    ):
        head, start, end = sieve.keep(head[field] <= most, reason, head, start, end)
    tables = []
    for scope in (BROKER, TOPIC, PARTITION):
        of = np.flatnonzero(head["scope"] == scope)
        by = [head[name][of].astype(kind) for name, kind in _BY]
        at = start[of] + _HEAD.itemsize
        tables.append(_scope(raw, sieve, scope, by, at, end[of]))
    return Decoded(pa.concat_tables(tables), sieve.skipped)


def _scope(
    raw: RawRecords,
    sieve: RecordFilter,
    scope: int,
    by: Sequence[Any],
    at: Positions,
    end: Positions,
) -> pa.Table:
    """Rows of one scope: a broker's have no topic, a topic's no partition.

    by: metric, time and broker. `at` is behind them.
    """
    length = np.zeros(len(at), np.int32)
    if scope != BROKER:
        at, end, *by = sieve.keep(at + 4 <= end, "short", at + 4, end, *by)
        length = raw.read(">i4", at - 4).astype(np.int32)
    kind = _TAILS[scope]
    fits = (length >= 0) & (length <= end - at - kind.itemsize)
    at, length, *by = sieve.keep(fits, "short", at, length, *by)
    tail = raw.read(kind, at + length)
    value = tail["value"].astype(np.float64)
    partition = np.full(len(at), -1, np.int32)
    good = (value >= 0) & (value < np.inf)
    if scope == PARTITION:
        partition = tail["partition"].astype(np.int32)
        good &= partition >= 0
    at, length, partition, value, *by = sieve.keep(good, "value", at, length, partition, value, *by)
    topic = pa.nulls(len(at), pa.string())
    if scope != BROKER:
        topic, named = texts(raw, at, length)
        topic = topic.filter(pa.array(named))
        partition, value, *by = sieve.keep(named, "topic", partition, value, *by)
    metric, time_ms, broker = by
    scopes = np.full(len(value), scope, np.int8)
    columns = [scopes, metric, time_ms, broker, topic, partition, value]
    return pa.table(columns, schema=METRICS)

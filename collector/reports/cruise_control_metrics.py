"""Records of Cruise Control's `__CruiseControlMetrics` as columns, and as reports.

One record per figure, of a broker, a topic or a partition (`MetricSerde` and
`RawMetricType` of cruise-control-metrics-reporter). Spark's Python workers run this,
so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.record_columns import Decoded, Positions, RawRecords, RecordFilter, texts
from collector.reports.report_columns import CRUISE_CONTROL, reports_of

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

_KEYS: Final = ("time_ms", "broker", "topic", "partition")
_FIGURES: Final = {
    0: "bytes_in",
    1: "bytes_out",
    2: "bytes_in",
    3: "bytes_out",
    4: "size_bytes",
    5: "cpu_share",
    6: "replication_in",
}
"""By Cruise Control's metric id: of brokers, topics and partitions."""
_BROKER_REQUESTS: Final = (16, 17)
"""Of producers, and of consumers that fetch."""
_TOPIC_REQUESTS: Final = (13, 14)
"""The same of one topic: a request counts for each of its partitions, and fetches of
followers count, too."""
_TAKEN: Final = (*_FIGURES, *_BROKER_REQUESTS, *_TOPIC_REQUESTS)

METRICS: Final = pa.schema(
    [
        pa.field("metric", pa.int16()),
        pa.field("time_ms", pa.int64()),
        pa.field("broker", pa.int32()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("value", pa.float64()),
    ]
)
"""One row per record.

metric: Cruise Control's id. topic: with underscores
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
    columns = [metric, time_ms, broker, topic, partition, value]
    return pa.table(columns, schema=METRICS)


def decode_reports(records: pa.Array) -> Decoded:
    """Decode a binary array of records to `REPORTS`; invalid ones are counted as by `decode`."""
    metrics, skipped = decode(records)
    return Decoded(reports_from(metrics), skipped)


def reports_from(metrics: pa.Table) -> pa.Table:
    """Convert metrics, schema `METRICS`, to reports, schema `REPORTS`.

    `BROKER_CPU_UTIL` (id 5) is a share, 0 to 1, of the broker's cores: `cpu_share`.
    Metrics of one broker, time and subject become one row: Cruise Control's
    reporter gives every record of a pass the same time. A figure that is there twice is
    averaged. A broker's requests are absent where one of their two parts is.
    """
    wide = _pivoted(metrics)
    means = {number: _floats(wide[_column(number)]) for number in _TAKEN}
    figures: dict[str, Any] = {name: wide[name] for name in _KEYS}
    for number, name in _FIGURES.items():
        figures[name] = np.fmax(figures.get(name, np.nan), means[number])
    produced, fetched = (means[number] for number in _TOPIC_REQUESTS)
    # A topic has no meter for a kind of request it has not received yet.
    of_topic = np.where(np.isnan(produced), fetched, produced + np.nan_to_num(fetched))
    of_broker = means[_BROKER_REQUESTS[0]] + means[_BROKER_REQUESTS[1]]
    figures["requests"] = np.fmax(of_broker, of_topic)
    return reports_of(CRUISE_CONTROL, figures)


def _pivoted(metrics: pa.Table) -> pa.Table:
    """One row per broker, time and subject, with a column for each metric in use."""
    known = pa.array(_TAKEN, metrics.schema.field("metric").type)
    taken = metrics.filter(pc.is_in(metrics["metric"], known))
    for number in _TAKEN:
        own = pc.equal(taken["metric"], number)
        value = pc.if_else(own, taken["value"], pa.scalar(None, pa.float64()))
        taken = taken.append_column(_column(number), value)
    columns = [(_column(number), "mean") for number in _TAKEN]
    return (
        taken.group_by(_KEYS, use_threads=False)
        .aggregate(columns)
        .rename_columns([*_KEYS, *map(_column, _TAKEN)])
    )


def _column(number: int) -> str:
    return f"metric {number}"


def _floats(values: pa.ChunkedArray) -> Any:
    return pc.fill_null(values, np.nan).to_numpy()

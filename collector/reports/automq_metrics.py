"""Records of AutoMQ's `__auto_balancer_metrics` as reports.

One record per open partition and per broker, each with all its figures (AutoMQ's
`AutoBalancerMetrics` and `MetricSerde`; checked against records of 1.7.3). Spark's
Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.record_columns import Decoded, Positions, RawRecords, RecordFilter, texts
from collector.reports.report_columns import AUTOMQ, reports_of

VERSION: Final = 0
_PARTITION, _BROKER = 0, 1
_HEAD: Final = np.dtype(
    [
        ("kind", "u1"),
        ("version", "u1"),
        ("time_ms", ">i8"),
        ("broker", ">i4"),
        ("rack_bytes", ">i4"),
    ]
)
_PLACE: Final = np.dtype([("partition", ">i4"), ("entries", ">i4")])
_ENTRY: Final = np.dtype([("metric", "u1"), ("value", ">f8")])
Floats = NDArray[np.float64]

MOST_ENTRIES: Final = 64
"""AutoMQ knows 7 figures; time is spent on each number of entries that occurs."""

FIGURES: Final = (
    "bytes_in",
    "bytes_out",
    "size_bytes",
    "append_ms",
    "pending_append_ms",
    "pending_fetch_ms",
    "metric_version",
)
"""By AutoMQ's metric id. Rates are bytes per second, smoothed over a minute."""
_REPORTED: Final = FIGURES[:3]
_QUORUM: Final = "__cluster_metadata"
"""Every broker of AutoMQ reports its copy of it, which is no partition of clients."""


def decode(records: pa.Array) -> Decoded:
    """Decode a binary array to `REPORTS`: partitions first, each kind in the records' order.

    A broker's row has no figure, but shows that the broker reports. Invalid records are
    counted by reason: short, class, version, entries, value, topic. Bytes after the last
    entry are ignored: reporters before 1.7 pad their records.
    """
    raw = RawRecords.of(records)
    sieve = RecordFilter()
    start, end = sieve.keep(
        raw.length >= _HEAD.itemsize, "short", raw.start, raw.start + raw.length
    )
    head = raw.read(_HEAD, start)
    head, start, end = sieve.keep(head["kind"] <= _BROKER, "class", head, start, end)
    good = head["version"] == VERSION
    head, start, end = sieve.keep(good, "version", head, start, end)
    rack, at = head["rack_bytes"].astype(np.int32), start + _HEAD.itemsize
    # A length of any size must not overflow.
    fits = (rack >= 0) & (rack <= end - at - 4)
    head, at, end, rack = sieve.keep(fits, "short", head, at, end, rack)
    at = at + rack
    tables = []
    for kind, part in ((_PARTITION, _partitions), (_BROKER, _brokers)):
        of = np.flatnonzero(head["kind"] == kind)
        by = [head[name][of].astype(t) for name, t in (("time_ms", "i8"), ("broker", "i4"))]
        tables.append(part(raw, sieve, by, at[of], end[of]))
    reports = pa.concat_tables(tables)
    of_clients = pc.not_equal(pc.fill_null(reports["topic"], ""), _QUORUM)
    return Decoded(reports.filter(of_clients), sieve.skipped)


def _partitions(
    raw: RawRecords, sieve: RecordFilter, by: Sequence[Any], at: Positions, end: Positions
) -> pa.Table:
    """Rows of partitions; `by`: time and broker; the topic's length is at `at`."""
    length = raw.read(">i4", at).astype(np.int32)
    at = at + 4
    fits = (length >= 0) & (length <= end - at - _PLACE.itemsize)
    at, end, length, *by = sieve.keep(fits, "short", at, end, length, *by)
    place = raw.read(_PLACE, at + length)
    partition, entries = (place[n].astype(np.int32) for n in ("partition", "entries"))
    at, end, length, partition, entries, *by = sieve.keep(
        partition >= 0, "value", at, end, length, partition, entries, *by
    )
    behind = at + length + _PLACE.itemsize
    (at, length, partition, *by), figures = _figures(
        raw, sieve, behind, end, entries, (at, length, partition, *by)
    )
    topic, named = texts(raw, at, length)
    topic = topic.filter(pa.array(named))
    partition, *rest = sieve.keep(named, "topic", partition, *by, *figures)
    return _table(rest[:2], topic, partition, rest[2:])


def _brokers(
    raw: RawRecords, sieve: RecordFilter, by: Sequence[Any], at: Positions, end: Positions
) -> pa.Table:
    """Rows of brokers; `at` is where the number of entries is."""
    entries = raw.read(">i4", at).astype(np.int32)
    by, figures = _figures(raw, sieve, at + 4, end, entries, by)
    rows = len(by[0])
    return _table(by, pa.nulls(rows, pa.string()), np.full(rows, -1, np.int32), figures)


def _figures(
    raw: RawRecords,
    sieve: RecordFilter,
    at: Positions,
    end: Positions,
    entries: NDArray[np.int32],
    columns: Sequence[Any],
) -> tuple[list[Any], list[Floats]]:
    """The columns without the records that have no good figures, and the figures.

    `at` is where the first entry is.
    """
    few = entries <= MOST_ENTRIES
    at, end, entries, *columns = sieve.keep(few, "entries", at, end, entries, *columns)
    fits = (entries >= 0) & (entries <= (end - at) // _ENTRY.itemsize)
    at, entries, *columns = sieve.keep(fits, "short", at, entries, *columns)
    values = np.full((len(FIGURES) + 1, len(at)), np.nan)
    good = np.ones(len(at), np.bool_)
    for number in filter(None, np.unique(entries).tolist()):
        rows = np.flatnonzero(entries == number)
        read = raw.read(np.dtype((_ENTRY, number)), at[rows])
        for entry in read.reshape(-1, number).T:
            _take(entry, rows, values, good)
    kept = sieve.keep(good, "value", *columns, *values[: len(_REPORTED)])
    return kept[: len(columns)], kept[len(columns) :]


def _take(entry: NDArray[Any], rows: Positions, values: Floats, good: NDArray[np.bool_]) -> None:
    """Put one entry of each of these rows into (figures + 1, n) values, (n,) good ones.

    Ids that are not known are ignored: their values go into the last row.
    """
    figure = np.minimum(entry["metric"], len(FIGURES))
    value = entry["value"].astype(np.float64)
    values[figure, rows] = value
    good[rows] &= (figure == len(FIGURES)) | ((value >= 0) & (value < np.inf))


def _table(
    by: Sequence[Any], topic: pa.Array, partition: NDArray[np.int32], figures: Sequence[Floats]
) -> pa.Table:
    time_ms, broker = by
    place = {"time_ms": time_ms, "broker": broker, "topic": topic, "partition": partition}
    return reports_of(AUTOMQ, {**place, **dict(zip(_REPORTED, figures, strict=True))})

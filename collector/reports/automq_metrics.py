"""Records of AutoMQ's `__auto_balancer_metrics` as columns.

One record per open partition and per broker, each with all its figures (AutoMQ's
`AutoBalancerMetrics` and `MetricSerde`; checked against records of 1.7.3). Spark's
Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.record_columns import Bytes, Decoded, Positions, RawRecords, RecordFilter, texts

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
"""By AutoMQ's metric id."""

METRICS: Final = pa.schema(
    [
        pa.field("time_ms", pa.int64()),
        pa.field("broker", pa.int32()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.float64()) for name in FIGURES),
    ]
)
"""One row per record.

broker: the reporting one. topic: null in the record of a broker, whose partition is
-1. bytes_in, bytes_out: bytes per second, smoothed over a minute. Figures that a record
does not have are NaN.
"""


def decode(records: pa.Array) -> Decoded:
    """Decode a binary array to `METRICS`: partitions first, each kind in the records' order.

    Invalid records are counted by reason: short, class, version, entries, value, topic.
    Bytes after the last entry are ignored: reporters before 1.7 pad their records.
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
    return Decoded(pa.concat_tables(tables), sieve.skipped)


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
    found = _Figures(len(at))
    numbers = np.flatnonzero(np.bincount(entries, minlength=1)).tolist()
    for number in filter(None, numbers):
        rows = np.flatnonzero(entries == number)
        read = raw.read(np.dtype((_ENTRY, number)), at[rows])
        for entry in read.reshape(-1, number).T:
            found.take(rows, entry["metric"], entry["value"].astype(np.float64))
    good = sieve.keep(found.good, "value", *columns, *found.columns())
    return good[: len(columns)], good[len(columns) :]


class _Figures:
    """Entries of n records on their way into columns."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: dict[int, Floats] = {}
        self.good = np.ones(count, np.bool_)
        """(n,) False where a value is invalid."""

    def take(self, rows: Positions, ids: Bytes, values: Floats) -> None:
        """One entry of each of these rows; ids that are not known are ignored."""
        fine = (values >= 0) & (values < np.inf)
        for number in range(len(FIGURES)):
            of = ids == number
            if of.all() and len(of) == self._count:
                self._values[number] = values
                self.good &= fine
                return
            if of.any():
                known = self._values.setdefault(number, np.full(self._count, np.nan))
                known[rows[of]] = values[of]
                self.good[rows[of]] &= fine[of]

    def columns(self) -> list[Floats]:
        """(n,) for each of FIGURES."""
        absent = np.full(self._count, np.nan)
        return [self._values.get(number, absent) for number in range(len(FIGURES))]


def _table(
    by: Sequence[Any], topic: pa.Array, partition: NDArray[np.int32], figures: Sequence[Floats]
) -> pa.Table:
    columns = [*by, topic, partition, *figures]
    return pa.table(columns, schema=METRICS)

"""Records of AutoMQ's `__auto_balancer_metrics` as columns.

One record per open partition and per broker, each with all its figures (AutoMQ's
`AutoBalancerMetrics` and `MetricSerde`; checked against records of 1.7.3). Spark's
Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.records import Bytes, Positions, Raw, Sieve, texts

VERSION: Final = 0
_PARTITION, _BROKER = 0, 1
_HEAD_BYTES: Final = 18
"""Class, version, time, broker, length of the rack."""
_ENTRY_BYTES: Final = 9
Floats = NDArray[np.float64]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What became of a batch of records."""

    metrics: pa.Table
    """Schema `METRICS`; the partitions first, each kind in the order of the records."""
    skipped: dict[str, int]
    """Records left out, by reason: short, class, version, value, topic."""


def decode(records: pa.Array) -> Decoded:
    """Metrics out of a binary array; what is none is counted and left out.

    Bytes after the last entry are ignored: reporters before 1.7 pad their records.
    """
    raw = Raw.of(records)
    sieve = Sieve()
    start, end = sieve.keep(
        raw.length >= _HEAD_BYTES, "short", raw.start, raw.start + raw.length
    )
    kind = raw.data[start]
    kind, start, end = sieve.keep(kind <= _BROKER, "class", kind, start, end)
    kind, start, end = sieve.keep(
        raw.data[start + 1] == VERSION, "version", kind, start, end
    )
    rack = raw.read(">i4", start + 14)
    # A length of any size must not overflow.
    fits = (rack >= 0) & (rack <= end - start - (_HEAD_BYTES + 4))
    kind, start, end, rack = sieve.keep(fits, "short", kind, start, end, rack)
    at = start + _HEAD_BYTES + rack
    tables = []
    for wanted, part in ((_PARTITION, _partitions), (_BROKER, _brokers)):
        of = np.flatnonzero(kind == wanted)
        tables.append(part(raw, sieve, start[of], at[of], end[of]))
    return Decoded(metrics=pa.concat_tables(tables), skipped=sieve.skipped)


def _partitions(
    raw: Raw, sieve: Sieve, start: Positions, at: Positions, end: Positions
) -> pa.Table:
    """Rows of partitions; `at` is where the topic's length is."""
    length = raw.read(">i4", at)
    fits = (length >= 0) & (length <= end - at - 12)
    start, at, end, length = sieve.keep(fits, "short", start, at, end, length)
    partition = raw.read(">i4", at + 4 + length)
    good = partition >= 0
    start, at, end, length, partition = sieve.keep(
        good, "value", start, at, end, length, partition
    )
    columns = (start, at + 4, length, partition)
    (start, at, length, partition), figures = _figures(
        raw, sieve, at + 8 + length, end, columns
    )
    topic, named = texts(raw, at, length)
    topic = topic.filter(pa.array(named))
    start, partition, *figures = sieve.keep(named, "topic", start, partition, *figures)
    return _table(raw, start, topic, partition, figures)


def _brokers(
    raw: Raw, sieve: Sieve, start: Positions, at: Positions, end: Positions
) -> pa.Table:
    """Rows of brokers; `at` is where the number of entries is."""
    (start,), figures = _figures(raw, sieve, at, end, (start,))
    nowhere = np.full(len(start), -1, np.int32)
    return _table(raw, start, pa.nulls(len(start), pa.string()), nowhere, figures)


def _figures(
    raw: Raw, sieve: Sieve, at: Positions, end: Positions, columns: Sequence[Any]
) -> tuple[list[Any], list[Floats]]:
    """The columns without the records that have no good figures, and the figures."""
    count = raw.read(">i4", at)
    fits = (count >= 0) & (count <= (end - at - 4) // _ENTRY_BYTES)
    at, count, *columns = sieve.keep(fits, "short", at, count, *columns)
    found = _Figures(len(at))
    for entries in set(count.tolist()):
        rows = np.flatnonzero(count == entries)
        for entry in range(entries):
            where = at[rows] + 4 + _ENTRY_BYTES * entry
            found.take(rows, raw.data[where], raw.read(">f8", where + 1))
    kept = sieve.keep(found.good, "value", *columns, *found.columns())
    return kept[: len(columns)], kept[len(columns) :]


class _Figures:
    """Entries of n records on their way into columns."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: dict[int, Floats] = {}
        self.good = np.ones(count, np.bool_)
        """(n,) False where a value is none."""

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
    raw: Raw,
    start: Positions,
    topic: pa.Array,
    partition: NDArray[np.int32],
    figures: Sequence[Floats],
) -> pa.Table:
    columns = [
        pa.array(raw.read(">i8", start + 2)),
        pa.array(raw.read(">i4", start + 10)),
        topic,
        pa.array(partition),
        *map(pa.array, figures),
    ]
    return pa.table(columns, schema=METRICS)

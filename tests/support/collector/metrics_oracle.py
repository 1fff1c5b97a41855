"""Metrics records read field by field, like their writers' own readers do."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from collector.reports import report_columns
from collector.reports.automq_metrics import FIGURES, MOST_ENTRIES


class Bad(Exception):
    """The reason to omit a record."""


class Reader:
    """Reads one record from start to end."""

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._at = 0

    def take(self, kind: str) -> Any:
        size = struct.calcsize(f">{kind}")
        (result,) = struct.unpack(f">{kind}", self._bytes(size))
        return result

    def text(self) -> bytes:
        return self._bytes(self.take("i"))

    def require_left(self, size: int) -> None:
        require(self._at + size <= len(self._record), "short")

    def _bytes(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._record):
            raise Bad("short")
        result = self._record[self._at : end]
        self._at = end
        return result


def require(good: bool, reason: str) -> None:
    if not good:
        raise Bad(reason)


def name_of(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Bad("topic") from None
    require(bool(text), "topic")
    return text


def is_value(value: float) -> bool:
    return value >= 0 and math.isfinite(value)


def automq(record: bytes) -> dict[str, Any] | None:
    """A report; None for AutoMQ's own log, which is valid and left out."""
    require(len(record) >= 18, "short")
    reader = Reader(record)
    kind, version = reader.take("B"), reader.take("B")
    require(kind <= 1, "class")
    require(version == 0, "version")
    row = {"time_ms": reader.take("q"), "broker": reader.take("i")}
    reader.text()
    topic, partition = None, -1
    if kind == 0:
        topic, partition = reader.text(), reader.take("i")
        reader.require_left(4)
        require(partition >= 0, "value")
    count = reader.take("i")
    require(count <= MOST_ENTRIES, "entries")
    require(count >= 0, "short")
    entries = [(reader.take("B"), reader.take("d")) for _ in range(count)]
    known = {FIGURES[i]: value for i, value in entries if i < len(FIGURES)}
    values = [value for i, value in entries if i < len(FIGURES)]
    require(all(map(is_value, values)), "value")
    named = None if topic is None else name_of(topic)
    if named == "__cluster_metadata":
        return None
    figures = {name: known.get(name, math.nan) for name in report_columns.FIGURES}
    place = {"source": "automq", "topic": named, "partition": partition}
    return row | place | figures


def cruise_control(record: bytes) -> dict[str, Any]:
    require(len(record) >= 15, "short")
    reader = Reader(record)
    scope, version, metric = (reader.take("B") for _ in range(3))
    require(scope <= 2, "class")
    require(version == 0, "version")
    require(metric < 63, "metric")
    row = {"metric": metric, "time_ms": reader.take("q")}
    row["broker"] = reader.take("i")
    topic = reader.text() if scope else None
    partition = reader.take("i") if scope == 2 else -1
    value = reader.take("d")
    require(is_value(value) and (scope < 2 or partition >= 0), "value")
    named = None if topic is None else name_of(topic)
    return row | {"topic": named, "partition": partition, "value": value}


def rows_of(table: pa.Table) -> list[str]:
    """Rows as text, in which NaN is equal to itself, in one order."""
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())


def expected(read: Any, records: Sequence[bytes]) -> tuple[list[str], dict[str, int]]:
    """Rows and reasons, as `rows_of` and a decoder's `skipped`."""
    rows, skipped = [], dict[str, int]()
    for record in records:
        try:
            row = read(record)
            rows += [repr(sorted(row.items()))] if row is not None else []
        except Bad as bad:
            reason = str(bad)
            skipped[reason] = skipped.get(reason, 0) + 1
    return sorted(rows), skipped

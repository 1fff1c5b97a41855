"""How tables go to Spark's Python workers and come back: packed, a few values a batch.

Spark turns each row that it is given into a row of its own and back; a table in one value costs
it nothing. Workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from collector.record_columns import Decoded

Batches = Iterator[pa.RecordBatch]

PACKED: Final = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("records", pa.int64()),
        pa.field("fault", pa.string()),
        pa.field("content", pa.binary()),
    ]
)
"""A row per table, and per reason for which records were left out.

source: whose records. records: how many were read, or left out. content: Arrow's
stream of a table; null beside a fault.
"""
PACKED_COLUMNS: Final = "source string, records long, fault string, content binary"
"""The same in Spark's words."""


@dataclass(slots=True)
class Unpacked:
    """What a batch read of one source."""

    tables: list[pa.Table] = field(default_factory=list)
    records: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of invalid records, by reason."""


def packer(source: str, decode: Callable[[pa.Array], Decoded]) -> Callable[[Batches], Batches]:
    """Return a function of a Python worker that decodes records into `PACKED`.

    source: name under which `unpack` returns the tables.
    """

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            found, skipped = decode(batch.column("value"))
            tables = [{"source": source, "records": batch.num_rows, "content": to_bytes(found)}]
            faults = [
                {"source": source, "records": count, "fault": fault}
                for fault, count in skipped.items()
            ]
            yield pa.RecordBatch.from_pylist([*tables, *faults], schema=PACKED)

    return convert


def unpack(packed: pa.Table) -> dict[str, Unpacked]:
    """Unpack what workers packed: tables and counts of invalid records, by source."""
    found: dict[str, Unpacked] = {}
    for row in packed.to_pylist():
        of = found.setdefault(row["source"], Unpacked())
        if row["fault"] is None:
            of.records += row["records"]
            of.tables.append(from_bytes(row["content"]))
        else:
            of.left_out[row["fault"]] += row["records"]
    return found


def divided(table: pa.Table, column: str, parts: int) -> Iterator[pa.Table]:
    """Split into at most `parts` tables; equal values of `column` stay together."""
    if parts == 1:
        yield table
        return
    codes = table[column].combine_chunks().dictionary_encode().indices.to_numpy()
    for part in range(parts):
        found = table.filter(pa.array(codes % parts == part))
        if len(found):
            yield found


def mapper(change: Callable[[pa.Table], pa.Table]) -> Callable[[Batches], Batches]:
    """Return a function of a Python worker that applies `change` to packed tables.

    The tables are in the column `content`.
    """

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            found = [
                to_bytes(change(from_bytes(content)))
                for content in batch.column("content").to_pylist()
            ]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.binary())], ["content"])

    return convert


def whole(change: Callable[[pa.Table], pa.Table]) -> Callable[[Batches], Batches]:
    """Return a function of a Python worker that applies `change` to all rows of a task."""

    def convert(batches: Batches) -> Batches:
        found = list(batches)
        if found:
            yield from change(pa.Table.from_batches(found)).to_batches()

    return convert


def to_bytes(table: pa.Table) -> bytes:
    """Serialize a table as an Arrow stream; NaN can be compared by its bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def from_bytes(content: bytes) -> pa.Table:
    """Read the table that `to_bytes` serialized."""
    return pa.ipc.open_stream(content).read_all()

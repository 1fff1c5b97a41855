"""plimsoll's own sample record: one partition at one moment. See docs/samples.md.

Spark's Python workers run `decode`, so nothing but numpy and pyarrow is imported here.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

VERSION: Final = 1
ABSENT: Final = -1
"""Stands for a figure that could not be had; never for zero."""
MOVING: Final = 1
"""Flag: a reassignment of the partition is under way."""

_LAYOUT: Final = ">bBqiiiqqqqqqH"
_FIXED: Final = np.dtype(
    [
        ("version", ">i1"),
        ("flags", "u1"),
        ("time_ms", ">i8"),
        ("partition", ">i4"),
        ("broker", ">i4"),
        ("groups", ">i4"),
        ("latest", ">i8"),
        ("earliest_local", ">i8"),
        ("earliest", ">i8"),
        ("local_bytes", ">i8"),
        ("total_bytes", ">i8"),
        ("group_offsets", ">i8"),
        ("topic_bytes", ">u2"),
    ]
)
"""The same as `_LAYOUT`, for many records at once."""
_FIXED_BYTES: Final = _FIXED.itemsize

_MAY_BE_ABSENT: Final = (
    "groups",
    "earliest_local",
    "earliest",
    "local_bytes",
    "total_bytes",
    "group_offsets",
)
_NEEDED: Final = ("time_ms", "partition", "broker", "latest")

SAMPLES: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("time_ms", pa.int64()),
        pa.field("broker", pa.int32()),
        pa.field("flags", pa.int32()),
        pa.field("groups", pa.int32()),
        pa.field("latest", pa.int64()),
        pa.field("earliest_local", pa.int64()),
        pa.field("earliest", pa.int64()),
        pa.field("local_bytes", pa.int64()),
        pa.field("total_bytes", pa.int64()),
        pa.field("group_offsets", pa.int64()),
    ]
)
"""Samples as columns, one row per partition and moment.

broker: the leader that answered. latest, earliest_local, earliest: offsets.
local_bytes: the log in the leader's directories. total_bytes: with the remote tier.
groups: consumer groups that committed; group_offsets: the sum of their commits.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What became of a batch of records."""

    samples: pa.Table
    """Schema `SAMPLES`, in the order of the records."""
    skipped: dict[str, int]
    """Records left out, by reason: short, version, negative, topic."""


def encode(samples: pa.Table) -> list[bytes]:
    """One record per row of a table of the schema `SAMPLES`."""
    fixed = zip(
        *(
            samples[name].to_pylist()
            for name in _FIXED.names[1:-1]  # type: ignore[index]  # has fields
        ),
        strict=True,
    )
    names = [topic.encode() for topic in samples["topic"].to_pylist()]
    return [
        struct.pack(_LAYOUT, VERSION, *figures, len(name)) + name
        for figures, name in zip(fixed, names, strict=True)
    ]


def decode(records: pa.Array) -> Decoded:
    """Samples out of a binary array; what is no sample is counted and left out."""
    data, start, length = _raw(records)
    whole = length >= _FIXED_BYTES
    fixed = _fixed_part(data, start[whole])
    name_start = start[whole] + _FIXED_BYTES
    fits = fixed["topic_bytes"] <= length[whole] - _FIXED_BYTES
    known = fixed["version"] == VERSION
    positive = _positive(fixed)
    faulty = {
        "short": int((~whole).sum() + (known & ~fits).sum()),
        "version": int((~known).sum()),
        "negative": int((known & fits & ~positive).sum()),
    }
    good = known & fits & positive
    topic, named = _topics(data, name_start[good], fixed["topic_bytes"][good])
    faulty["topic"] = int((~named).sum())
    return Decoded(
        samples=_table(fixed[good][named], topic.filter(pa.array(named))),
        skipped={reason: count for reason, count in faulty.items() if count},
    )


def _raw(
    records: pa.Array,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of all records, and where each starts and how long it is."""
    if isinstance(records, pa.ChunkedArray):
        records = records.combine_chunks()
    if not pa.types.is_large_binary(records.type):
        records = records.cast(pa.large_binary())
    _, offsets, data = records.buffers()
    bounds = np.frombuffer(offsets, np.int64) if offsets else np.zeros(1, np.int64)
    bounds = bounds[records.offset : records.offset + len(records) + 1]
    content = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    length = np.diff(bounds)
    if records.null_count:
        length[records.is_null().to_numpy(zero_copy_only=False)] = 0
    return content, bounds[:-1], length


def _fixed_part(data: NDArray[np.uint8], start: NDArray[np.int64]) -> NDArray[Any]:
    """(n,) of dtype `_FIXED`: the part that is alike in all records."""
    rows = data[start[:, None] + np.arange(_FIXED_BYTES)]
    fixed: NDArray[Any] = rows.view(_FIXED).reshape(len(start))
    return fixed


def _positive(fixed: NDArray[Any]) -> NDArray[np.bool_]:
    good = np.ones(len(fixed), np.bool_)
    for name in _NEEDED:
        good &= fixed[name] >= 0
    for name in _MAY_BE_ABSENT:
        good &= fixed[name] >= ABSENT
    return good


def _topics(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.uint16]
) -> tuple[pa.Array, NDArray[np.bool_]]:
    """(n,) names as strings, and (n,) False where a name is none.

    UTF-8 is checked once per distinct name: there are few.
    """
    ends = np.cumsum(length, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    gather = np.repeat(start - (ends - length), length) + np.arange(total)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    raw = pa.Array.from_buffers(
        pa.large_binary(),
        len(length),
        [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[gather]))],
    ).dictionary_encode()
    names = [_text(name) for name in raw.dictionary.to_pylist()]
    codes = raw.indices.to_numpy()
    named = np.array([name is not None for name in names], np.bool_)
    return pa.array(names, pa.string()).take(raw.indices), named[codes]


def _text(name: bytes) -> str | None:
    try:
        return name.decode() or None
    except UnicodeDecodeError:
        return None


def _table(fixed: NDArray[Any], topic: pa.Array) -> pa.Table:
    columns = [
        topic
        if field.name == "topic"
        # Arrow wants the machine's byte order and no gaps between values.
        else pa.array(fixed[field.name].astype(field.type.to_pandas_dtype()))
        for field in SAMPLES
    ]
    return pa.table(columns, schema=SAMPLES)

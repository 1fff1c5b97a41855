"""plimsoll's own sample record: one partition at one moment.

The layout is in docs/reference/samples.md.

Spark's Python workers run `decode`, so nothing but numpy and pyarrow is imported here.
"""

import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from collector.record_columns import Decoded, RawRecords, RecordFilter, texts

VERSION: Final = 1
ABSENT: Final = -1
"""Stands for a figure that could not be had; never for zero."""
MOVING: Final = 1
"""Flag: a reassignment of the partition is in progress."""
NEW: Final = 2
"""Flag: the topic was not there at the sample before, or was another of this name."""

AHEAD_MS: Final = 30_000
"""By so much may the clocks of hosts differ that sample one cluster."""

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


def encode(samples: pa.Table) -> list[bytes]:
    """Encode a table of the schema `SAMPLES`: one record of version 1 per row.

    Raises struct.error for a figure that is null or out of the range of its field, and
    for a topic name of more than 65,535 bytes.
    """
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
    """Decode a binary array into samples, schema `SAMPLES`, in the order of the records.

    Invalid records are counted by reason: short, version, negative, topic. Bytes after a
    record's topic are ignored.
    """
    raw, sieve = RawRecords.of(records), RecordFilter()
    start, length = sieve.keep(raw.length >= _FIXED_BYTES, "short", raw.start, raw.length)
    fixed = raw.read(_FIXED, start)
    good = fixed["version"] == VERSION
    fixed, start, length = sieve.keep(good, "version", fixed, start, length)
    good = fixed["topic_bytes"] <= length - _FIXED_BYTES
    fixed, start = sieve.keep(good, "short", fixed, start)
    fixed, start = sieve.keep(_in_range(fixed), "negative", fixed, start)
    topic, named = texts(raw, start + _FIXED_BYTES, fixed["topic_bytes"])
    (fixed,) = sieve.keep(named, "topic", fixed)
    return Decoded(_table(fixed, topic.filter(pa.array(named))), sieve.skipped)


def not_ahead(samples: pa.Table, now_ms: int) -> pa.Table:
    """Return the samples that are at most `AHEAD_MS` later than `now_ms`."""
    return samples.filter(pc.field("time_ms") <= now_ms + AHEAD_MS)


def _in_range(fixed: NDArray[Any]) -> NDArray[np.bool_]:
    good = np.ones(len(fixed), np.bool_)
    for name in _NEEDED:
        good &= fixed[name] >= 0
    for name in _MAY_BE_ABSENT:
        good &= fixed[name] >= ABSENT
    return good


def _table(fixed: NDArray[Any], topic: pa.Array) -> pa.Table:
    columns = [
        topic
        if field.name == "topic"
        # Arrow wants the machine's byte order and no gaps between values.
        else pa.array(fixed[field.name].astype(field.type.to_pandas_dtype()))
        for field in SAMPLES
    ]
    return pa.table(columns, schema=SAMPLES)

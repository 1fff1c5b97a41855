"""Binary records as columns: the building blocks of all decoders.

Spark's Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int32] | NDArray[np.int64]
"""Narrow where that is enough, which is nearly twice as fast."""
Flags = NDArray[np.bool_]

_SHORT: Final = 2**16
"""Numbers of 16 bits are sorted by radix."""


class Decoded(NamedTuple):
    """What a decoder made of a batch of records."""

    table: pa.Table
    """The valid records as columns, in the decoder's own schema."""
    skipped: dict[str, int]
    """Number of invalid records, by reason."""


@dataclass(frozen=True, slots=True)
class RawRecords:
    """A batch of records, end to end."""

    data: Bytes
    start: Positions
    """(n,) of each record in `data`."""
    length: Positions
    """(n,) bytes of each record; 0 for null."""

    @classmethod
    def of(cls, records: pa.Array) -> Self:
        """Wrap a binary array without copying; a null has length 0."""
        if isinstance(records, pa.ChunkedArray):
            records = records.combine_chunks()
        if not pa.types.is_large_binary(records.type):
            records = records.cast(pa.large_binary())
        _, offsets, data = records.buffers()
        bounds = np.frombuffer(offsets, np.int64) if offsets else np.zeros(1, np.int64)
        bounds = bounds[records.offset : records.offset + len(records) + 1]
        content = np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]
        width = np.int32 if len(content) < 2**31 else np.int64
        start = (bounds - bounds[0]).astype(width)
        length = np.diff(start)
        if records.null_count:
            length[records.is_null().to_numpy(zero_copy_only=False)] = 0
        return cls(content, start[:-1], length)

    def read(self, kind: str | np.dtype[Any], at: Positions) -> NDArray[Any]:
        """Return (n,) values or structures of a type that begin at these positions.

        at: (n,) positions in `data`. Raises IndexError where a value would end beyond it.
        One gather of bytes takes as long as that of one value, so that fields that lie
        together are read together.
        """
        dtype = np.dtype(kind)
        places = max(0, len(self.data) - dtype.itemsize + 1)
        every = np.ndarray((places,), f"V{dtype.itemsize}", self.data, strides=(1,))
        return every[at].view(dtype)


@dataclass(slots=True)
class RecordFilter:
    """Removes invalid records from columns, and counts them by reason."""

    skipped: Counter[str] = field(default_factory=Counter)

    def keep(self, good: Flags, reason: str, *columns: NDArray[Any]) -> list[Any]:
        """Return each column without its rows that are not `good`.

        good: (n,) flags. columns: n rows each. Rows removed are counted under `reason`.
        """
        if good.all():
            return list(columns)
        self.skipped[reason] += int(np.count_nonzero(~good))
        return [column[good] for column in columns]


def texts(
    raw: RawRecords, start: Positions, length: NDArray[np.integer[Any]]
) -> tuple[pa.Array, Flags]:
    """Return (n,) strings, and (n,) False where one is empty or not valid UTF-8: null.

    start, length: (n,) positions in `raw.data`, and bytes; all must lie within the data.
    UTF-8 is checked once per distinct text: there are few.
    """
    order = np.argsort(
        length.astype(np.uint16) if length.max(initial=0) < _SHORT else length, kind="stable"
    )
    ascending, start = length[order], start[order]
    bounds = [0, *(1 + np.flatnonzero(np.diff(ascending))).tolist(), len(order)]
    parts = [
        raw.read(f"V{size}", start[of]).data
        for of in map(slice, bounds, bounds[1:])
        for size in ascending[of][:1].tolist()
        if size
    ]
    offsets = np.concatenate([[0], np.cumsum(ascending, dtype=np.int64)])
    binary = pa.Array.from_buffers(
        pa.large_binary(), len(length), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    ).dictionary_encode()
    found = _texts(binary.dictionary)
    known = found.is_valid().to_numpy(zero_copy_only=False)
    index = np.empty(len(order), np.int32)
    index[order] = binary.indices.to_numpy()
    return found.take(pa.array(index)), known[index]


def _texts(names: pa.Array) -> pa.Array:
    """Each name as a string; null where it is empty or not valid UTF-8."""
    try:
        found = names.cast(pa.string())
    except pa.ArrowInvalid:
        found = pa.array([_text(name) for name in names.to_pylist()], pa.string())
    return pc.replace_with_mask(found, pc.equal(found, ""), pa.scalar(None, pa.string()))


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None

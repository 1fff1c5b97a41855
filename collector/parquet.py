"""Parquet files, written in one step, and read in bounded memory.

A short file may stand for many rows.
"""

from collections import Counter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST_ROWS: Final = 1 << 24
"""Of one table: 16 samples of a million partitions."""
MOST_KEYS: Final = 1 << 20
"""Groups of rows in one file: a batch a second for twelve days."""
MOST_SCANNED: Final = 1 << 30
"""Rows of one file that is read group by group."""
MOST_GROUP_BYTES: Final = 1 << 30
"""Of one row group, which is decompressed as a whole."""


class OutOfBounds(ValueError):
    """A file with more rows or bytes than are read of one file."""


def write_whole(table: pa.Table, path: Path) -> None:
    """Write a file in one step, so that it is never seen half written.

    An existing file is replaced. Raises OSError if it cannot be written.
    """
    # Neither Spark nor a pattern for Parquet files finds this name.
    part = path.with_name(f".{path.name}.part")
    try:
        pq.write_table(table, part)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def read_whole(path: Path) -> pa.Table:
    """Read all rows of a file.

    Raises OSError if it cannot be read, ValueError (also Arrow's) if it is not a valid
    Parquet file, OutOfBounds for more than `MOST_ROWS` rows or a row group of more than
    `MOST_GROUP_BYTES`.
    """
    with pq.ParquetFile(path) as file:
        _check(path, file.metadata, MOST_ROWS)
        return file.read()


def count_by(path: Path, key: pa.Field) -> Counter[int]:
    """Count the rows of each value of an integer column; nulls are skipped.

    Raises OSError if the file cannot be read, Arrow's errors if it is not valid Parquet or
    the column no integers, and OutOfBounds for more than `MOST_SCANNED` rows, `MOST_KEYS`
    values, `MOST_ROWS` rows of one value, or `MOST_GROUP_BYTES` in a row group.
    """
    counts: Counter[int] = Counter()
    with pq.ParquetFile(path) as file:
        _check(path, file.metadata, MOST_SCANNED)
        for part in file.iter_batches(columns=[key.name]):
            column = part[key.name].drop_null().cast(key.type)
            found = column.value_counts()
            values, numbers = (found.field(at).to_pylist() for at in (0, 1))
            counts.update(dict(zip(values, numbers, strict=True)))
            if len(counts) > MOST_KEYS:
                raise OutOfBounds(f"{path} holds more than {MOST_KEYS:,} batches")
    _check_rows(path, max(counts.values(), default=0), MOST_ROWS)
    return counts


def longest(texts: pa.ChunkedArray) -> int:
    """Return the bytes of the longest text in a dictionary-encoded column.

    Chunks that are not dictionary-encoded are ignored; 0 without any text.
    """
    sizes = (
        pc.max(pc.binary_length(chunk.dictionary)).as_py()
        for chunk in texts.chunks
        if isinstance(chunk, pa.DictionaryArray)
    )
    return max((size or 0 for size in sizes), default=0)


def _check(path: Path, footer: pq.FileMetaData, most: int) -> None:
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    _check_rows(path, sum(group.num_rows for group in groups), most)
    if any(group.total_byte_size > MOST_GROUP_BYTES for group in groups):
        raise OutOfBounds(
            f"{path} has a row group of more than {MOST_GROUP_BYTES >> 20} MiB, the "
            "most that is read of such a file"
        )


def _check_rows(path: Path, rows: int, most: int) -> None:
    if rows > most:
        raise OutOfBounds(
            f"{path} holds {rows:,} rows, more than the {most:,} that are read of such "
            "a file at once"
        )

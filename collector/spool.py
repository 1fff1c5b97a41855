"""Samples in local files, for clusters that must not be written to."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from collector.parquet import write_whole
from collector.samples import encode
from model.errors import ConfigError

RECORDS: Final = pa.schema(
    [pa.field("value", pa.binary()), pa.field("timestamp", pa.timestamp("us", "UTC"))]
)
"""Like the Kafka connector's columns of the same names."""

KEPT_S: Final = 600
"""Seconds after which a file has been read, or never will be."""
_PRUNE_EVERY: Final = 60


class Spool:
    """A folder of Parquet files, schema `RECORDS`, one per write; old ones are deleted.

    Raises ConfigError if the folder cannot be created.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock
        self._count = itertools.count()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise _unwritable(folder, exc) from exc

    def write(self, samples: pa.Table) -> None:
        """Write samples (schema `SAMPLES`) as one file, atomically.

        Every 60th write also prunes. Raises ConfigError if the file cannot be written, and
        struct.error as `encode` does.
        """
        now_s = self._clock()
        records = encode(samples)
        stamps = pa.array([int(now_s * 1e6)] * len(records), RECORDS[1].type)
        number = next(self._count)
        path = self.folder / f"{int(now_s * 1000)}-{number}.parquet"
        table = pa.table([pa.array(records, pa.binary()), stamps], schema=RECORDS)
        try:
            write_whole(table, path)
            if number % _PRUNE_EVERY == 0:
                self.prune()
        except OSError as exc:
            raise _unwritable(self.folder, exc) from exc

    def prune(self) -> None:
        """Delete files written more than `KEPT_S` seconds ago, by the time in their names.

        Includes what interrupted writes have left; other files are left alone. Raises OSError.
        """
        oldest = self._clock() - KEPT_S
        for path in self.folder.iterdir():
            written_ms = path.name.removeprefix(".").partition("-")[0]
            if written_ms.isdecimal() and int(written_ms) / 1000 < oldest:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Do nothing: no file is open between writes."""


def _unwritable(folder: Path, exc: OSError) -> ConfigError:
    return ConfigError(
        f"Samples cannot be written to {folder} ({exc.strerror}). Set "
        "PLIMSOLL_STATE_DIR to a writable folder, or free some space."
    )

"""Load vectors on disk, so that a restart knows what was measured before it."""

import datetime as dt
import logging
import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa

from collector.parquet import read_whole, write_whole
from collector.spark.vectors import VECTORS, as_vectors, concatenate

KEPT_DAYS: Final = 14
_DAY_MS: Final = 86_400_000
_log = logging.getLogger("plimsoll.collector")


class VectorFiles:
    """Parquet files `date=YYYY-MM-DD/<query>-<batch>.parquet`, days in UTC.

    The name is that of the micro-batch: a batch that is repeated after a crash replaces its
    file. Vectors are averages over a window, so one batch per window is kept.
    """

    def __init__(self, folder: Path, every_ms: int) -> None:
        self.folder = folder
        self._every_ms = every_ms
        self._newest_ms = 0

    def append(self, vectors: pa.Table, query: str, batch: int) -> None:
        """Write a batch's vectors (schema `VECTORS`) to the file of this query and batch.

        An empty table, or one less than `every_ms` newer than the last, is skipped. The
        first of a day prunes. An OSError is only logged.
        """
        times = vectors["time_ms"].to_numpy()
        if not len(times) or times.max() < self._newest_ms + self._every_ms:
            return
        self._newest_ms = int(times.max())
        day = self.folder / f"date={_day(self._newest_ms)}"
        try:
            if not day.is_dir():
                day.mkdir(parents=True)
                self.prune(self._newest_ms)
            write_whole(vectors, day / f"{query}-{batch}.parquet")
        except OSError as exc:
            # Loads are still handed out; a full disk must not end the watch.
            _log.warning("the history %s cannot be written: %s", self.folder, exc)

    def read(self, since_ms: int, until_ms: int) -> pa.Table:
        """Read vectors from `since_ms` to `until_ms`, oldest first; schema `VECTORS`.

        Times in milliseconds since the epoch. Damaged files are left out.
        """
        tables = []
        for day in range(since_ms // _DAY_MS, until_ms // _DAY_MS + 1):
            folder = self.folder / f"date={_day(day * _DAY_MS)}"
            tables += [read_vectors(path, since_ms) for path in folder.glob("*.parquet")]
        found = concatenate([t for t in tables if t is not None], VECTORS)
        return found.filter(
            pa.compute.and_(
                pa.compute.greater_equal(found["time_ms"], since_ms),
                pa.compute.less_equal(found["time_ms"], until_ms),
            )
        ).sort_by("time_ms")

    def prune(self, now_ms: int) -> None:
        """Delete UTC days more than `KEPT_DAYS` before `now_ms` (since the epoch)."""
        oldest = f"date={_day(now_ms - KEPT_DAYS * _DAY_MS)}"
        for folder in self.folder.glob("date=*"):
            if folder.name < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def read_vectors(path: Path, since_ms: int = 0) -> pa.Table | None:
    """Read one file, schema `VECTORS`; None if it cannot be used or is older than `since_ms`.

    A file that is missing or damaged is logged; age is by modification time.
    """
    # The file is at least as new as what it holds: old ones need not be opened.
    try:
        if 1000 * path.stat().st_mtime < since_ms:
            return None
        return as_vectors(read_whole(path))
    except (OSError, ValueError) as exc:
        _log.warning("the history file %s is passed over: %s", path, exc)
        return None


def _day(time_ms: int) -> str:
    return dt.datetime.fromtimestamp(time_ms / 1000, dt.UTC).date().isoformat()

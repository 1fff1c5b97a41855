"""The samples of the newest window, kept on disk for the next process."""

import logging
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from collector.parquet import read_whole, write_whole
from collector.samples import SAMPLES, not_ahead
from collector.spark.vectors import concatenate

_log = logging.getLogger("plimsoll.collector")
_SUFFIX: Final = ".parquet"


class WindowCache:
    """Files `<batch>-<newest ms>.parquet` of what each batch read.

    A batch is kept before Spark notes that it is done: one that is repeated after a
    crash, with the same records, replaces its file, and a sample counts once.
    """

    def __init__(self, folder: Path, window_ms: int) -> None:
        self._folder, self._window_ms = folder, window_ms
        self._samples: pa.Table | None = None

    def add(self, batch: int, found: pa.Table, now_ms: int) -> pa.Table:
        """Add a batch's samples; return all samples of the window that it ends.

        Both of schema `SAMPLES`. The window ends at the newest sample. Earlier samples of a
        time after `now_ms` are from before the clock was set back, and are dropped. The first
        call reads the files of the previous process. `found` must have a row. A folder that
        cannot be written to is only logged.
        """
        before = not_ahead(self._read() if self._samples is None else self._samples, now_ms)
        together = concatenate([before, found], SAMPLES)
        since_ms = pc.max(together["time_ms"]).as_py() - self._window_ms
        self._samples = together.filter(pc.field("time_ms") >= since_ms)
        try:
            self._keep(batch, found)
            self._prune(since_ms)
        except OSError as exc:
            # Loads are still handed out; a full disk must not end the watch.
            _log.warning("samples cannot be kept in %s: %s", self._folder, exc)
        return self._samples

    def _keep(self, batch: int, found: pa.Table) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(found, self._folder / f"{batch}-{pc.max(found['time_ms'])}{_SUFFIX}")

    def _prune(self, since_ms: int) -> None:
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if int(path.stem.partition("-")[2]) < since_ms:
                path.unlink()

    def _read(self) -> pa.Table:
        tables = []
        for path in self._folder.glob(f"*{_SUFFIX}"):
            try:
                tables.append(read_whole(path).cast(SAMPLES))
            except (OSError, ValueError) as exc:
                _log.warning("%s is passed over: %s", path, exc)
        return concatenate(tables, SAMPLES)

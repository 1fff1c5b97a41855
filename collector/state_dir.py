"""The folder that a cluster's samples, checkpoint and history lie in; one user each."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from model.errors import ConfigError
from model.files import make_folder
from model.paths import path_part

CHECKPOINT_AGE_S: Final = 24 * 3600
"""A checkpoint lists every spool file it has seen, so it is not kept for ever."""


@dataclass
class StateFolder:
    """A folder that belongs to this process until `release`."""

    path: Path
    """Where this process reads and writes."""
    kept: bool
    """False for a folder of our own beside one that another process uses."""
    _lock: IO[bytes] | None = field(default=None, repr=False)

    @property
    def shared(self) -> Path:
        """The cluster's folder that all processes share."""
        return self.path if self.kept else self.path.parent

    def release(self) -> None:
        """Unlock the folder; a folder of this process alone is deleted."""
        if self._lock is not None:
            self._lock.close()
        if not self.kept:
            shutil.rmtree(self.path, ignore_errors=True)


def claim(state_dir: Path, cluster_id: str, *, apart: bool = False) -> StateFolder:
    """Claim the cluster's folder, or a new one where another plimsoll observes it.

    Only one process can use Spark's checkpoint. A short command beside a service that runs
    for months must neither disturb it nor fail. apart: a new folder in any case; new
    folders are deleted by `release`. Raises ConfigError if the cluster's folder or its
    lock file cannot be created, OSError if the new folder cannot.
    """
    path = state_dir / "clusters" / path_part(cluster_id)
    with using(path):
        make_folder(path)
        lock = (path / "lock").open("wb")
    if apart or not _locked(lock):
        lock.close()
        own = tempfile.mkdtemp(prefix="beside-", dir=path)
        return StateFolder(Path(own), kept=False)
    return StateFolder(path, kept=True, _lock=lock)


@contextmanager
def scratch(state_dir: Path, prefix: str) -> Iterator[Path]:
    """Create a temporary folder in the state folder, deleted at the end.

    prefix: of its name. Raises ConfigError if it cannot be created.
    """
    with using(state_dir):
        make_folder(state_dir)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=state_dir))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def using(folder: Path) -> Iterator[None]:
    """Turn an OSError on a state folder into a ConfigError that names the folder."""
    try:
        yield
    except OSError as exc:
        raise ConfigError(
            f"The state folder {folder} cannot be used ({exc.strerror}). Set "
            "PLIMSOLL_STATE_DIR to a folder that can be written to."
        ) from exc


def _locked(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def discard_old(checkpoint: Path, now_s: float) -> None:
    """Delete a checkpoint begun over `CHECKPOINT_AGE_S` before `now_s` (Unix seconds).

    Samples are then read again, but count once. A folder without metadata stays.
    """
    begun = checkpoint / "metadata"
    if begun.exists() and now_s - begun.stat().st_mtime > CHECKPOINT_AGE_S:
        shutil.rmtree(checkpoint, ignore_errors=True)

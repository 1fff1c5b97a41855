"""A lock per cluster: one process of this machine at a time changes it.

Each cluster has a lock file, held with flock: the kernel releases it however its process ends.
Deleting the file must not admit a second process, so its holder also shares a lock on the
folder: if the folder is locked but no other lock file is, the holder's file was deleted.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from model.errors import ConfigError, GuardrailRefused
from model.file_locks import locked_file
from model.files import make_folder
from model.paths import path_part

_SUFFIX: Final = ".lock"


@contextlib.contextmanager
def sole_writer(journal_dir: Path, cluster_id: str) -> Iterator[None]:
    """Keep other processes of this machine from changing the cluster.

    Raises GuardrailRefused where another one is changing it, ConfigError where the
    folder is not writable.
    """
    path = _lock_path(journal_dir, cluster_id)
    with contextlib.ExitStack() as held:
        try:
            make_folder(journal_dir)
            lock = locked_file(path)
        except OSError as exc:
            raise ConfigError(
                f"{path} is not writable ({exc.strerror}); nothing was changed. Set "
                "state_dir to a writable folder."
            ) from exc
        if lock is not None:
            held.enter_context(lock)
        if lock is None or _has_lost_holder(journal_dir, but=path):
            raise GuardrailRefused(
                f"Another plimsoll is changing the cluster {cluster_id}. Wait until "
                "its run has ended, or stop it."
            )
        held.enter_context(_shared(journal_dir))
        yield


def is_changing(journal_dir: Path, cluster_id: str) -> bool:
    """Whether a process of this machine is changing the cluster."""
    path = _lock_path(journal_dir, cluster_id)
    return _is_held(path) or _has_lost_holder(journal_dir, but=path)


def _lock_path(journal_dir: Path, cluster_id: str) -> Path:
    return journal_dir / f"{path_part(cluster_id)}{_SUFFIX}"


@contextlib.contextmanager
def _shared(folder: Path) -> Iterator[None]:
    """Share the folder's lock; not all file systems support that."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def _has_lost_holder(folder: Path, *, but: Path) -> bool:
    """Whether the folder is locked by the holder of a deleted lock file.

    Not detected while another lock file is held.
    """
    others = (path for path in folder.glob(f"*{_SUFFIX}") if path != but)
    return _is_held(folder, fcntl.LOCK_EX) and not any(map(_is_held, others))


def _is_held(path: Path, how: int = fcntl.LOCK_SH) -> bool:
    """Whether another process holds the lock of a file or folder."""
    try:
        # A pipe in place of the file must not block.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        # A process that cannot create the file changes nothing.
        return False
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False

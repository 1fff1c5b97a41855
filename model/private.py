"""File permissions: keep files private to the user, tighten existing folders, check secrets."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from model.errors import ConfigError

_PRIVATE: Final = 0o077
"""Permission bits of group and others."""
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
_USERS: Final = os.umask(_PRIVATE)
os.umask(_USERS)

_OURS: Final = (
    *("journal", "clusters", "spark", "replay-", "anonymise.key"),
    *("tasks", "broker-marks"),
    *("audit.", "service", "control.sock", "cruise-control"),
    *("decisions.", "auto-", "waiting", "sweep", "simulate"),
)
"""How entries of a state folder begin, but for a dot of hidden ones."""
_log = logging.getLogger("plimsoll.private")


def begin() -> None:
    """Set the process's mask so that new files are 0600 and folders 0700.

    Child processes inherit it.
    """
    os.umask(_PRIVATE)


def end() -> None:
    """Restore the user's own mask for new files."""
    os.umask(_USERS)


def check_secret(path: Path, what: str = "", *, published: bool = False) -> bool:
    """Whether everybody can read a file of secrets, which is accepted where it is `published`.

    Its group may read it, and no more: Kubernetes and systemd mount secrets with mode 0440.
    what: what the file is, for messages, with a blank at its end.

    Raises ConfigError: there is no such file, or others can read or change it.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as exc:  # a NUL in the name
        problem = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigError(f"cannot read {what}{path}: {problem}") from exc
    if not stat.S_ISREG(mode):
        raise ConfigError(f"cannot read {what}{path}: not a regular file")
    if mode & (_WRITABLE if published else _WRITABLE | stat.S_IRWXO):
        raise ConfigError(f"others can read or change {what}{path}; chmod 600 it")
    return bool(mode & stat.S_IROTH)


def share(path: Path) -> None:
    """Give a file or folder the mode that the user's own mask allows.

    Raises OSError.
    """
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_USERS)


def shared_folder(path: Path) -> None:
    """Make a folder and its parents with the mode that the user's mask allows.

    Raises OSError.
    """
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        share(folder)


def tighten(state_dir: Path) -> None:
    """Remove the access of others to what an earlier version left open.

    A file whose mode cannot be changed is reported in the log.
    """
    for path in _open(state_dir):
        try:
            path.chmod(path.stat().st_mode & ~_PRIVATE)
        except OSError as exc:
            _log.warning(
                "others can read %s, and its mode cannot be changed: %s", path, exc.strerror
            )


def _open(state_dir: Path) -> Iterator[Path]:
    """Folders and files of ours that others may enter or read, the outermost first."""
    try:
        entries = sorted(state_dir.iterdir())
    except OSError:
        return
    # A folder that holds more than ours may be anything, such as /tmp.
    ours = [entry for entry in entries if entry.name.removeprefix(".").startswith(_OURS)]
    if len(ours) == len(entries):
        yield from _wide(state_dir)
    elif any(_wide(state_dir)):
        _log.warning("others can read the state folder %s; use one of its own", state_dir)
    for entry in ours:
        yield from _wide(entry)
        if entry.is_dir() and not entry.is_symlink():
            for path in entry.iterdir():
                yield from _wide(path)


def _wide(path: Path) -> Iterator[Path]:
    if not path.is_symlink() and path.stat().st_mode & _PRIVATE:
        yield path

"""The control socket: one for each state folder, for its user alone."""

import contextlib
import errno
import os
import pwd
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from model.closing import Closing
from model.errors import ConfigError
from model.file_locks import locked_file
from model.files import make_folder

FILE: Final = "control.sock"
LOCK: Final = "service.lock"
ROOT: Final = 0
MOST_PATH: Final = 100
"""Bytes of a socket's path; systems allow 104 or 108."""
_CREDENTIALS: Final = struct.Struct("iII")
"""Process, user and group of a peer, as Linux reports them."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end; its parts are None where the platform does not report them."""

    uid: int | None
    pid: int | None

    @property
    def user(self) -> str:
        """Its login name; empty if unknown."""
        return "" if self.uid is None else login_name(self.uid)

    @property
    def is_allowed(self) -> bool:
        """Whether it is the service's own user, or root."""
        return self.uid is None or self.uid in (os.geteuid(), ROOT)


def login_name(uid: int) -> str:
    """The login name of a user; empty where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return ""


def peer_of(connection: Any) -> Peer:
    """The peer of a connection. Raises OSError where the connection is closed."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        # The socket's mode alone decides there.
        return Peer(None, None)
    found = connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(found)
    return Peer(uid, pid)


class ControlSocket(Closing):
    """Listen in a state folder until closed."""

    def __init__(self, state_dir: Path) -> None:
        """Take the folder for this process, and replace the socket of one that was killed.

        Raises ConfigError where another service has the folder, or the socket cannot be made.
        """
        self.path = state_dir / FILE
        try:
            make_folder(state_dir)
            # It is never removed, so that no two processes lock two files.
            self._lock = locked_file(state_dir / LOCK)
        except OSError as exc:
            raise ConfigError(
                f"cannot use the state folder {state_dir}: {exc.strerror or exc}; set state_dir to "
                "a writable folder"
            ) from exc
        if self._lock is None:
            raise ConfigError(
                f"another plimsoll service runs with the state folder {state_dir}; stop it, or set "
                "state_dir to another folder"
            )
        try:
            self._remove_stale()
            self.listening = self._bound()
            self._made = self.path.lstat()
        except (ConfigError, OSError) as exc:
            self._lock.close()
            if isinstance(exc, ConfigError):
                raise
            raise ConfigError(
                f"cannot create the control socket {self.path}: {exc.strerror or exc}; set "
                "state_dir to a folder of a local file system"
            ) from exc

    def close(self) -> None:
        """Remove the socket, and release the folder."""
        if self._lock is None or self._lock.closed:
            return
        self.listening.close()
        # Where someone removed the folder, the socket there now is that of another service.
        with contextlib.suppress(OSError):
            if os.path.samestat(self.path.lstat(), self._made):
                self.path.unlink()
        self._lock.close()

    def _remove_stale(self) -> None:
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise ConfigError(f"{self.path} is not a socket; remove it")
        self.path.unlink()

    def _bound(self) -> socket.socket:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_path(self.path) as short:
                found.bind(short)
            # Nobody can connect before it listens.
            self.path.chmod(0o600)
            found.listen()
        except BaseException:
            found.close()
            raise
        found.setblocking(False)
        return found


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name for a socket that fits into its address, which holds about a hundred bytes.

    Raises OSError where there is none.
    """
    if len(os.fsencode(path)) <= MOST_PATH:
        yield str(path)
        return
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        short = f"/proc/self/fd/{handle}"
        if not Path(short).is_dir():
            raise OSError(errno.ENAMETOOLONG, "the path is too long for a socket")
        yield f"{short}/{path.name}"
    finally:
        os.close(handle)

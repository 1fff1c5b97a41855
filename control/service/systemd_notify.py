"""systemd's notification protocol (sd_notify(3)): one datagram for each change of state."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"
EXTENSION_S: Final = 120.0
"""Time that each report of progress adds while the service ends."""
BEATS: Final = 4
"""Reports to the watchdog within its limit."""
PATIENCE_S: Final = 5.0
"""Seconds that a change of state waits for a receiver that does not read."""
MOST_STATUS: Final = 500
"""Characters of the status line."""


class SystemdNotifier:
    """Report to systemd; does nothing where no socket was given.

    Reports come from several threads; each is a datagram of its own. Where the receiver does not
    read, changes of state wait for `PATIENCE_S`, and beats and status lines are dropped.
    """

    def __init__(
        self,
        address: str | None,
        watchdog_s: float | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """address: path of the socket, or `@NAME` of an abstract one. watchdog_s: its limit."""
        self._steady = steady
        self._every_s = None if watchdog_s is None else watchdog_s / BEATS
        self._beaten_s: float | None = None
        self._status = ""
        self._address = ""
        self._hasty = self._patient = None
        if address is not None:
            self._address = "\0" + address[1:] if address[:1] == "@" else address
            self._hasty, self._patient = _socket(0.0), _socket(PATIENCE_S)

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> "SystemdNotifier":
        """As the environment says; removes the variables, so that no child reports."""
        address = environment.pop(SOCKET, None)
        limit = environment.pop(WATCHDOG, None)
        pid = environment.pop(WATCHDOG_PID, None)
        meant = limit is not None and limit.isdigit() and pid in (None, str(os.getpid()))
        usable = address if address and address[0] in "/@" else None
        return cls(usable, int(limit) / 1e6 if meant and limit is not None else None)

    def ready(self) -> None:
        """Report that the service is up, or that settings have been read again."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Report that settings are being read again; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Report that the service ends."""
        self._send("STOPPING=1")

    def extend(self) -> None:
        """Ask for more time to end, since in-flight moves go on."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(1e6 * EXTENSION_S)}\nWATCHDOG=1", patient=False)

    def status(self, text: str) -> None:
        """Report a line for `systemctl status`, unless it has not changed."""
        line = " ".join(text.split())[:MOST_STATUS]
        if line != self._status:
            self._status = line
            self._send(f"STATUS={line}", patient=False)

    def beat(self) -> None:
        """Report to the watchdog, if it is on and that is due."""
        now_s = self._steady()
        if self._every_s is None:
            return
        if self._beaten_s is None or now_s - self._beaten_s >= self._every_s:
            self._beaten_s = now_s
            self._send("WATCHDOG=1", patient=False)

    def close(self) -> None:
        """Close the socket."""
        for found in (self._hasty, self._patient):
            if found is not None:
                found.close()

    def _send(self, text: str, *, patient: bool = True) -> None:
        found = self._patient if patient else self._hasty
        if found is not None:
            with contextlib.suppress(OSError):
                found.sendto(text.encode(), self._address)


def _socket(timeout_s: float) -> socket.socket:
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    found.settimeout(timeout_s)
    return found

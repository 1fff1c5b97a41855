"""TLS of the HTTP listener: certificate and key from PEM files, read again by a reload."""

import _ssl
import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from model.errors import ConfigError
from model.units import count_text

WARN_S: Final = 30 * 86_400.0
"""Seconds before its end from which a certificate is warned of."""
MOST_HANDSHAKES: Final = 50
"""Connections whose handshake is in progress; one more ends the oldest."""
HANDSHAKE_S: Final = 10.0
"""Seconds that a handshake may take."""
RETRY_S: Final = 0.5
"""Seconds until connections are accepted again when the process has no handle left."""


class ServerTls:
    """One certificate with its key, for all connections that begin from now on."""

    def __init__(self, certificate: Path, key: Path | None) -> None:
        """certificate: PEM, the server's own first. key: None where it is in the same file.

        Raises ConfigError where they cannot be used.
        """
        self._certificate, self._key = certificate, key
        self.not_after_s = 0.0
        """End of the certificate's validity, in seconds since the epoch."""
        self.context = _context()
        self.reload()

    def reload(self) -> None:
        """Read the files again. Raises ConfigError; then the former certificate stays in use."""
        # First into an unused context: files that do not fit must not spoil the other.
        not_after_s = self._load(_context())
        self._load(self.context)
        self.not_after_s = not_after_s

    def _load(self, context: ssl.SSLContext) -> float:
        try:
            # Without a terminal, nobody could type a password.
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
            # The standard library decodes certificates of peers alone; this is what it uses itself.
            decode: Any = getattr(_ssl, "_test_decode_cert")  # noqa: B009  # stubs lack it
            found = decode(str(self._certificate))
            return float(ssl.cert_time_to_seconds(found["notAfter"]))
        except (OSError, ValueError, KeyError) as exc:
            # ssl.SSLError is an OSError.
            key = "" if self._key is None else f" and tls_key {self._key}"
            raise ConfigError(
                f"cannot use tls_certificate {self._certificate}{key}: "
                f"{_reason(exc)}; both are PEM files, and the key belongs to the certificate"
            ) from exc

    def warning(self, now_s: float) -> str:
        """That the certificate ends soon, or has ended; empty if neither."""
        left_s = self.not_after_s - now_s
        if left_s >= WARN_S:
            return ""
        return (
            f"the certificate {self._certificate} {_when(left_s)}; replace the file, and send "
            "SIGHUP to the service"
        )


def _when(left_s: float) -> str:
    whole = int(abs(left_s) // 86_400)
    days = count_text(whole, "day")
    if left_s < 0:
        return f"ended {days} ago" if whole else "has ended"
    return f"ends in {days}" if whole else "ends within a day"


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; store it without a password, readable by its user only")


def _reason(exc: Exception) -> str:
    if isinstance(exc, ssl.SSLError):
        return {"KEY_VALUES_MISMATCH": "the key is that of another certificate"}.get(
            exc.reason or "", "it is damaged, or not PEM"
        )
    return getattr(exc, "strerror", None) or str(exc)


class TlsAcceptor:
    """Accept connections, and bound those whose handshake is in progress.

    asyncio's own server has no such bound: clients that connect and send nothing could use up all
    handles of the process.
    """

    def __init__(
        self, listening: socket.socket, tls: ServerTls, connection: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listening, self._tls, self._connection = listening, tls, connection
        self._handshakes: list[asyncio.Task[None]] = []

    async def accept(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    client, _ = await loop.sock_accept(self._listening)
                except OSError as exc:
                    if exc.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                        await asyncio.sleep(RETRY_S)
                    continue
                if len(self._handshakes) >= MOST_HANDSHAKES:
                    self._handshakes.pop(0).cancel()
                task = loop.create_task(self._shake(client))
                self._handshakes.append(task)
                task.add_done_callback(self._forget)
                # A task that is cancelled before it begins would not close its connection.
                await asyncio.sleep(0)
        finally:
            for task in self._handshakes:
                task.cancel()
            await asyncio.gather(*self._handshakes, return_exceptions=True)

    async def _shake(self, client: socket.socket) -> None:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        # What clients send instead of a handshake is theirs to fix.
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(
                self._connection,
                client,
                ssl=self._tls.context,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=1.0,
            )

    def _forget(self, task: asyncio.Task[None]) -> None:
        with contextlib.suppress(ValueError):
            self._handshakes.remove(task)

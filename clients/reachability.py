"""Check that a cluster can be reached with the given client properties.

Drivers would retry until a time-out whose message does not name the cause.
"""

import socket
import ssl
import struct
import time
from typing import Final

from clients.connection import CLIENT_ID, ClientProperties, Connection
from clients.driver_errors import reason_of
from model.errors import AccessRefused, ClusterUnreachable

_SASL_HANDSHAKE: Final = struct.pack(">hhi", 17, 1, 0)
"""API key, version and correlation id; brokers answer it on every listener (KIP-43)."""
_NO_SASL: Final = 34
"""ILLEGAL_SASL_STATE: this listener has no login."""
_NO_SUCH_MECHANISM: Final = 33
"""UNSUPPORTED_SASL_MECHANISM."""
_ALERT: Final = b"\x15\x03"
"""The first bytes of an alert, with which TLS answers plain text."""
_LONGEST: Final = 10_000
"""Bytes read of an answer."""


def check_reachable(connection: Connection) -> None:
    """Connect to the bootstrap servers until one answers as the properties expect.

    Takes at most `connection.timeout_s`, and 0.1 s more for each further server.

    Raises
    ------
    ClusterUnreachable
        None of them can be reached.
    AccessRefused
        One of them answers, but the client properties do not fit its listener.
    """
    end_s = time.monotonic() + connection.timeout_s
    reasons = []
    for (host, port), server in zip(connection.addresses, connection.servers, strict=True):
        left_s = max(0.1, end_s - time.monotonic())
        try:
            with socket.create_connection((host, port), timeout=left_s) as plain:
                _check(plain, host, connection.client)
        except _Unfit as exc:
            raise AccessRefused(f"{server} {exc}.") from exc
        except OSError as exc:
            reasons.append(f"{server}: {reason_of(exc)}")
        else:
            return
    raise ClusterUnreachable(
        f"No Kafka broker answers at {connection.bootstrap} ({'; '.join(reasons)}). "
        "Check the address, and that the cluster runs."
    )


class _Unfit(Exception):
    """How listener and properties differ; completes a sentence about the server."""


def _check(plain: socket.socket, host: str, client: ClientProperties) -> None:
    if client.tls is None:
        _shake_hands(plain, client)
        return
    try:
        with client.tls.context().wrap_socket(plain, server_hostname=host) as sealed:
            _shake_hands(sealed, client)
    except ssl.SSLCertVerificationError as exc:
        raise _Unfit(
            f"shows a certificate that is not trusted ({exc.verify_message.rstrip('.')}"
            "); check ssl.truststore.location, and that the certificate is for this "
            "address"
        ) from exc
    except ssl.SSLError as exc:
        if "ALERT" in (exc.reason or ""):
            raise _Unfit(_refused_by_alert(exc.reason, client)) from exc
        raise OSError(f"{_NO_TLS} ({exc.reason or exc})") from exc
    except ConnectionError as exc:
        raise OSError(_NO_TLS) from exc


_NO_TLS: Final = (
    "it ended the TLS handshake, as a listener without TLS does; check "
    "security.protocol and the port"
)


def _refused_by_alert(reason: str, client: ClientProperties) -> str:
    alert = reason.lower().replace("_", " ")
    if client.tls is not None and client.tls.certificates is None:
        return (
            f"refused TLS ({alert}); if it requires a client certificate, set ssl.keystore.location"
        )
    return f"refused TLS ({alert}); check the certificate of ssl.keystore.location"


def _shake_hands(server: socket.socket, client: ClientProperties) -> None:
    """Ask how clients log in; a closed connection is left to the driver to report."""
    mechanism = client.sasl.mechanism if client.sasl else "PLAIN"
    try:
        request = _SASL_HANDSHAKE + _text(CLIENT_ID) + _text(mechanism)
        server.sendall(struct.pack(">i", len(request)) + request)
        answer = server.recv(_LONGEST)
    except ConnectionError:
        return
    if answer.startswith(_ALERT):
        needed = "SASL_SSL" if client.sasl else "SSL"
        raise _Unfit(f"requires TLS; set security.protocol={needed}")
    if len(answer) >= 10:
        (error,) = struct.unpack_from(">h", answer, 8)
        _compare(error, _mechanisms(answer[10:]), client)


def _compare(error: int, offered: str, client: ClientProperties) -> None:
    suffix = "SSL" if client.tls else "PLAINTEXT"
    if client.sasl is None and error in (0, _NO_SUCH_MECHANISM):
        raise _Unfit(
            f"requires a login (it offers {offered}); set "
            f"security.protocol=SASL_{suffix} and the login"
        )
    if client.sasl is not None and error == _NO_SASL:
        raise _Unfit(
            f"accepts no login; set security.protocol={suffix}, or choose the port of "
            "a listener that does"
        )
    if client.sasl is not None and error == _NO_SUCH_MECHANISM:
        raise _Unfit(f"does not offer sasl.mechanism={client.sasl.mechanism}; it offers {offered}")


def _mechanisms(body: bytes) -> str:
    """The names in an array of strings, as far as the bytes go."""
    names, place = [], 4
    while place + 2 <= len(body):
        (length,) = struct.unpack_from(">h", body, place)
        names.append(body[place + 2 : place + 2 + length].decode("utf-8", "replace"))
        place += 2 + length
    return ", ".join(names) or "none"


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode("ascii")

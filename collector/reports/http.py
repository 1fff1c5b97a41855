"""Metrics over HTTP: with a time-out, TLS and a login, and failures in words."""

import base64
import http.client
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clients.driver_errors import reason_of
from model.bounded import parse_json
from model.errors import ConfigError, MetricsUnreachable

_CHUNK_BYTES: Final = 1 << 16
MOST_BYTES: Final = 1 << 28
"""A longer answer is not one of metrics."""
_REFUSALS: Final = {
    401: "wants a login, or refuses the one it was given; check username and "
    "password, or the token",
    403: "lets the user that was given not read",
    404: "has no such page; check the address",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach endpoints of metrics, and as whom."""

    timeout_s: float = 10.0
    """For one answer, as a whole."""
    authorities: Path | None = None
    """PEM file of the authorities that sign; None trusts whom the system trusts."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Files are read at each request: what hands out secrets replaces them."""


class MetricsClient:
    """Gets pages; safe to use from several threads.

    Raises ConfigError for authorities, or a secret, that cannot be read.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        _login(access)
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=_context(access.authorities)), _NoRedirect
        )

    def get(self, url: str, accept: str) -> bytes:
        """Return the body of a page.

        url: http or https. accept: the Accept header. Raises MetricsUnreachable for
        connection and TLS failures, time-outs, HTTP errors, redirects, truncated bodies,
        bodies over `MOST_BYTES`, and secrets that have become unreadable; its message omits
        the query, which may hold secrets.
        """
        end_s = time.monotonic() + self._access.timeout_s
        where = url.partition("?")[0]
        # The settings have refused what is neither http nor https.
        request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310
        try:
            request.headers.update(_login(self._access))
            with self._opener.open(request, timeout=self._access.timeout_s) as answer:
                return _read(answer, end_s)
        except urllib.error.HTTPError as exc:
            with exc:
                message = _refusal(exc)
            raise MetricsUnreachable(f"{where} {message}.") from exc
        except ConfigError as exc:
            raise MetricsUnreachable(f"{where} was not read: {exc}.") from exc
        except (OSError, http.client.HTTPException) as exc:
            raise MetricsUnreachable(f"{where} was not read: {_reason(exc)}.") from exc


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, so that a login never reaches another server."""

    def redirect_request(self, *_args: object, **_named: object) -> None:
        return None


def _context(authorities: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(
            f"the authorities in {authorities} cannot be used ({reason_of(exc)}); "
            "ca_file is a PEM file of certificates"
        ) from exc


def _login(access: Access) -> dict[str, str]:
    token = access.token or _secret(access.token_file)
    if token:
        if not (token.isascii() and token.isprintable()):
            raise ConfigError("the token is not one line of plain letters")
        return {"Authorization": f"Bearer {token}"}
    if access.username is None:
        return {}
    password = access.password or _secret(access.password_file)
    pair = base64.b64encode(f"{access.username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _secret(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"the secret in {file} cannot be read ({reason_of(exc)})") from exc


def _read(answer: Any, end_s: float) -> bytes:
    """Read the body within the time-out, even where it arrives byte by byte."""
    parts, size = [], 0
    while part := answer.read1(_CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if time.monotonic() > end_s:
            raise TimeoutError
        if size > MOST_BYTES:
            raise http.client.HTTPException(f"more than {MOST_BYTES >> 20} MiB")
    if answer.length:
        raise http.client.HTTPException("the answer broke off")
    return b"".join(parts)


def _refusal(exc: urllib.error.HTTPError) -> str:
    message = _REFUSALS.get(exc.code, "did not answer")
    detail = _detail(exc)
    return f"{message} (HTTP {exc.code}{f': {detail}' if detail else ''})"


def _detail(exc: urllib.error.HTTPError) -> str:
    """The error in Prometheus' JSON; empty for other servers."""
    try:
        return str(parse_json(exc.read(_CHUNK_BYTES))["error"])[:200]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return ""


def _reason(exc: Exception) -> str:
    reason = getattr(exc, "reason", exc)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({reason.verify_message.rstrip('.')})"
    return reason_of(exc)

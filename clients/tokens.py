"""Tokens for SASL OAUTHBEARER, by OAuth's client credentials (RFC 6749, KIP-768)."""

import base64
import math
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from clients.connection import ClientProperties, TokenSource
from clients.driver_errors import reason_of
from model.bounded import parse_json
from model.errors import AccessRefused, ClusterUnreachable, ConfigError

_FRESH: Final = 0.8
"""A token is replaced after this share of its lifetime, as by Java's clients."""
_MOST_BYTES: Final = 1 << 20
"""Bytes read of an answer."""


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, and its times in seconds since the epoch."""

    text: str = field(repr=False)
    replaced_at_s: float
    """When another one is fetched."""
    ends_at_s: float


class Tokens:
    """One cached token, fetched when it is needed; from any thread."""

    def __init__(
        self,
        source: TokenSource,
        client: ClientProperties,
        timeout_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source, self._client = source, client
        self._timeout_s, self._clock = timeout_s, clock
        self._token: Token | None = None
        self._lock = threading.Lock()

    def current(self) -> Token:
        """Return a token with at least a fifth of its lifetime left.

        Raises AccessRefused where the endpoint refuses, ClusterUnreachable where it
        cannot be reached, ConfigError where its answer is not a token.
        """
        with self._lock:
            token, now_s = self._token, self._clock()
            if token is None or now_s >= token.replaced_at_s:
                token = self._token = self._fetch(now_s)
            return token

    def _fetch(self, now_s: float) -> Token:
        url = self._source.url
        try:
            # `sasl_properties` accepts only http and https.
            with urllib.request.urlopen(  # noqa: S310
                self._request(), timeout=self._timeout_s, context=self._context()
            ) as answer:
                response = parse_json(answer.read(_MOST_BYTES))
        except urllib.error.HTTPError as exc:
            exc.close()
            raise AccessRefused(
                f"{url} refused a token to the client {self._source.client_id} (HTTP "
                f"{exc.code}). Check its id and secret, and the address."
            ) from exc
        except OSError as exc:
            raise ClusterUnreachable(
                f"No token could be fetched from {url} ({reason_of(exc)}). Check the address."
            ) from exc
        except ValueError as exc:
            raise _no_token(url) from exc
        return token_of(response, now_s, url)

    def _request(self) -> urllib.request.Request:
        source = self._source
        form = {"grant_type": "client_credentials"}
        form |= {"scope": source.scope} if source.scope else {}
        pair = f"{source.client_id}:{source.client_secret}".encode()
        return urllib.request.Request(  # noqa: S310 - as above
            source.url,
            data=urllib.parse.urlencode(form).encode(),
            headers={
                "Authorization": f"Basic {base64.b64encode(pair).decode()}",
                "Accept": "application/json",
            },
        )

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        tls = self._client.tls
        if tls is not None and tls.authorities is not None:
            context.load_verify_locations(cadata=tls.authorities)
        return context


def token_of(response: Any, now_s: float, url: str) -> Token:
    """The token in an endpoint's answer. Raises ConfigError where there is none."""
    try:
        text = str(response["access_token"])
        ends_at_s = (
            now_s + float(response["expires_in"])
            if "expires_in" in response
            else float(_claims(text)["exp"])
        )
        if not math.isfinite(ends_at_s):
            # As text, `inf` and `nan` are numbers, too; such a token would never be replaced.
            raise ValueError("not a time")
    except (KeyError, TypeError, ValueError) as exc:
        raise _no_token(url) from exc
    return Token(text, now_s + _FRESH * (ends_at_s - now_s), ends_at_s)


def _claims(token: str) -> Any:
    """The claims of a JSON web token; checking its signature is up to the broker."""
    part = token.split(".")[1] if token.count(".") == 2 else ""
    return parse_json(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def _no_token(url: str) -> ConfigError:
    return ConfigError(
        f"{url} answered without an access_token and its expiry. Check that it is the "
        "token endpoint of an OAuth server."
    )

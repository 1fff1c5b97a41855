"""An OAuth server for tests: tokens for one client with its secret."""

import base64
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.support.web_server import Handler, serving

_KEY = "only"
_BYTES = 32
"""Of a coordinate, and of each half of a signature, on the curve P-256."""


@dataclass(frozen=True)
class Signer:
    """Signs tokens (RFC 7515, ES256)."""

    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls) -> Self:
        return cls(ec.generate_private_key(ec.SECP256R1()))

    def key_set(self) -> str:
        """The public key that verifies its tokens (RFC 7517)."""
        numbers = self.key.public_key().public_numbers()
        key = {"kty": "EC", "crv": "P-256", "use": "sig", "kid": _KEY}
        key |= {name: _number(getattr(numbers, name)) for name in ("x", "y")}
        return json.dumps({"keys": [key]})

    def token(self, subject: str) -> str:
        """A token valid for an hour."""
        now_s = int(time.time())
        claims = {"sub": subject, "iat": now_s, "exp": now_s + 3600}
        head = {"alg": "ES256", "kid": _KEY}
        text = ".".join(_part(json.dumps(part).encode()) for part in (head, claims))
        halves = decode_dss_signature(self.key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        signature = b"".join(half.to_bytes(_BYTES) for half in halves)
        return f"{text}.{_part(signature)}"


@dataclass
class TokenServer:
    """The address of the server, its client, and the requests it received."""

    client_id: str
    secret: str
    signer: Signer
    url: str = ""
    answer: bytes | None = None
    """Returned in place of a token."""
    forms: list[dict[str, list[str]]] = field(default_factory=list)

    def granted(self) -> bytes:
        token = self.signer.token(self.client_id)
        return json.dumps({"access_token": token, "expires_in": 3600}).encode()


@contextmanager
def token_server(
    client_id: str, secret: str, signer: Signer | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[TokenServer]:
    """Serve until the block ends."""
    state = TokenServer(client_id, secret, signer or Signer.make())
    pair = base64.b64encode(f"{client_id}:{secret}".encode()).decode()

    class Granting(Handler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            state.forms.append(parse_qs(self.rfile.read(length).decode()))
            known = self.headers["Authorization"] == f"Basic {pair}"
            answer = (state.answer or state.granted()) if known else b"{}"
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with serving(Granting, tls) as url:
        state.url = f"{url}/token"
        yield state


def _number(value: int) -> str:
    return _part(value.to_bytes(_BYTES))


def _part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")

"""An OAuth server of a test's own: tokens for one client, by its secret."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from tests.serving import Handler, serving


@dataclass
class TokenServer:
    """Where it is, whom it knows, and what it was asked."""

    client_id: str
    secret: str
    url: str = ""
    answer: bytes | None = None
    """Given in place of a token."""
    forms: list[dict[str, list[str]]] = field(default_factory=list)

    def token(self) -> bytes:
        """Unsigned, as Kafka believes them by default (RFC 7515, alg none)."""
        now_s = int(time.time())
        claims = {"sub": self.client_id, "iat": now_s, "exp": now_s + 3600}
        head, body = (_part(part) for part in ({"alg": "none"}, claims))
        token = {"access_token": f"{head}.{body}.", "expires_in": 3600}
        return json.dumps(token).encode()


@contextmanager
def token_server(client_id: str, secret: str) -> Iterator[TokenServer]:
    """One that answers until the block ends."""
    state = TokenServer(client_id, secret)
    pair = base64.b64encode(f"{client_id}:{secret}".encode()).decode()

    class Granting(Handler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            state.forms.append(parse_qs(self.rfile.read(length).decode()))
            known = self.headers["Authorization"] == f"Basic {pair}"
            answer = (state.answer or state.token()) if known else b"{}"
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with serving(Granting) as url:
        state.url = f"{url}/token"
        yield state


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

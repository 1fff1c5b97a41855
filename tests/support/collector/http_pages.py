"""A small web server for tests, in place of a Prometheus or an exporter."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.web_server import Handler, serving


@dataclass(frozen=True)
class Page:
    """An answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised_bytes: int | None = None
    """More than the length of the body: the answer ends early."""
    until: threading.Event | None = None
    """Event that the rest of the body waits for."""


@dataclass
class Pages:
    """The address of the server, and the requests it received."""

    url: str
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    """Paths with their queries, and headers."""


@contextmanager
def pages(answer: Callable[[str], Page], certificate: Path | None = None) -> Iterator[Pages]:
    """Serve each path with its query until the block ends."""
    state = Pages("")

    class Answering(Handler):
        def do_GET(self) -> None:
            state.asked.append((self.path, dict(self.headers)))
            page = answer(self.path)
            self.send_response(page.status)
            length = page.promised_bytes or len(page.body)
            for name, value in {"Content-Length": str(length), **page.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if page.until is None:
                self.wfile.write(page.body)
                return
            for byte in page.body:
                if page.until.wait(0.02):
                    return
                self.wfile.write(bytes([byte]))

    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    with serving(Answering, tls) as state.url:
        yield state


def vector(*series: tuple[Mapping[str, str], str], **more: object) -> Page:
    """An instant vector, as documented by Prometheus."""
    result = [
        {"metric": dict(labels), "value": [1_700_000_000.123, value]} for labels, value in series
    ]
    data = {"resultType": "vector", "result": result}
    return Page(json.dumps({"status": "success", "data": data, **more}).encode())


def query_of(path: str) -> str:
    """The PromQL of an instant query; asserts that the path is that of queries."""
    parts = urlsplit(path)
    assert parts.path == "/api/v1/query"
    ((query,),) = parse_qs(parts.query).values()
    return query

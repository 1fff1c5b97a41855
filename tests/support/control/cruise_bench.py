"""Cruise Control's API over a loop that a test gives, and a client of it."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from control.cruise_control.cruise_control import CruiseControl
from control.service.http_access import HttpAccess
from control.service.http_listener import OPEN_ACCESS, CruiseControlSite, HttpListener, bound
from control.service.service_state import ServiceState
from control.settings.service_table import ListenAddress
from tests.support.tui.terminals import LONG_S

ANY = ListenAddress("127.0.0.1", 0)


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    headers: dict[str, str]
    """By name in lower case."""
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> str:
        found: str = self.json["errorMessage"]
        return found

    @property
    def task_id(self) -> str:
        return self.headers["user-task-id"]


@dataclass
class CruiseClient:
    """A client that keeps no cookies."""

    address: ListenAddress
    trusted: ssl.SSLContext | None = None
    """With it, the client speaks HTTPS."""

    def ask(self, method: str, path: str, *, body: bytes | None = None, **headers: str) -> Reply:
        """Send one request; underscores in names of headers stand for hyphens."""
        connection = (
            http.client.HTTPConnection(*self.address, timeout=LONG_S)
            if self.trusted is None
            else http.client.HTTPSConnection(*self.address, timeout=LONG_S, context=self.trusted)
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body=body, headers=named)
            found = connection.getresponse()
            fields = {name.lower(): value for name, value in found.getheaders()}
            return Reply(found.status, fields, found.read().decode())
        finally:
            connection.close()

    def get(self, query: str, **headers: str) -> Reply:
        return self.ask("GET", f"/kafkacruisecontrol/{query}", body=None, **headers)

    def post(self, query: str, **headers: str) -> Reply:
        return self.ask("POST", f"/kafkacruisecontrol/{query}", body=None, **headers)


@contextlib.contextmanager
def served(
    parts: CruiseControl, access: HttpAccess = OPEN_ACCESS, trusted: ssl.SSLContext | None = None
) -> Iterator[CruiseClient]:
    """Serve the API; gives its client. trusted: its certificates, where `access` has TLS."""
    listening = bound(ANY)
    address = ListenAddress(*listening.getsockname()[:2])
    site = CruiseControlSite(listening, parts, access)
    with HttpListener(bound(ANY), ServiceState(), cruise_control=site):
        yield CruiseClient(address, trusted)

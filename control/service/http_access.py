"""Which requests to the HTTP listener are let through: their rate, their login and its role."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from control.service.credentials_file import logins_of
from control.service.logins import MOST_SECRET, Logins, Role, credentials
from control.service.server_tls import ServerTls
from control.service.webserver_properties import webserver_files
from control.settings.service_table import ServiceTable
from model.closing import Closing
from model.errors import ConfigError

RATE: Final = 500.0
"""Requests per second that one address may send on average."""
BURST: Final = 1000.0
"""Requests that it may send at once."""
FAILURES_RATE: Final = 1 / 6
"""Wrong logins per second of one address, on average."""
FAILURES_BURST: Final = 10.0
MOST_ADDRESSES: Final = 1000
"""Addresses whose rate is remembered."""
MOST_CHECKS: Final = 4
"""Passwords that wait to be hashed; further ones are refused."""
OPEN: Final = frozenset({"/livez", "/readyz"})
"""Paths without a login: probes of service managers have none."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who has sent a request."""

    name: str
    role: Role
    address: str


CLIENT: Final = web.RequestKey("client", Client)


class Rates:
    """A token bucket for each address; of too many, the one that was used longest ago is lost."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: dict[str, tuple[float, float]] = {}

    def takes(self, address: str, now_s: float) -> bool:
        """Take a token; whether there was one."""
        left = self._now(address, now_s)
        self._put(address, left - 1 if left >= 1 else left, now_s)
        return left >= 1

    def has(self, address: str, now_s: float) -> bool:
        """Whether there is a token."""
        return self._now(address, now_s) >= 1

    def _now(self, address: str, now_s: float) -> float:
        left, at_s = self._left.get(address, (self._burst, now_s))
        return min(self._burst, left + (now_s - at_s) * self._rate)

    def _put(self, address: str, left: float, now_s: float) -> None:
        self._left.pop(address, None)
        self._left[address] = left, now_s
        if len(self._left) > MOST_ADDRESSES:
            del self._left[next(iter(self._left))]


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """How the listener is protected; without either, it is on loopback and changes nothing."""

    tls: ServerTls | None = None
    logins: Logins | None = None

    @classmethod
    def of(cls, table: ServiceTable) -> "HttpAccess":
        """As `[service]` has it. Raises ConfigError where a file cannot be used."""
        certificate, logins = table.tls_certificate, table.logins
        return cls(
            None if certificate is None else ServerTls(certificate, table.tls_key),
            None if logins is None else Logins(logins),
        )

    @classmethod
    def of_cruise_control(cls, table: ServiceTable) -> "HttpAccess":
        """That of Cruise Control's API. Raises ConfigError where a file cannot be used."""
        certificate, credentials_file = table.tls_certificate, table.cruise_control_logins
        if table.cruise_control_properties is not None:
            found = webserver_files(
                table.cruise_control_properties, has_certificate=certificate is not None
            )
            certificate = certificate or found.certificate
            credentials_file = credentials_file or found.credentials
        has_logins = credentials_file is not None or table.logins is not None
        why = table.unprotected(has_tls=certificate is not None, has_logins=has_logins)
        if why:
            raise ConfigError(why)
        logins = None
        if credentials_file is not None:
            logins = logins_of(credentials_file)
        elif table.logins is not None:
            logins = Logins(table.logins)
        tls = None if certificate is None else ServerTls(certificate, table.tls_key)
        return cls(tls, logins)

    def reload_tls(self) -> None:
        """Read the certificate again; in the server's thread.

        Raises ConfigError; then the former one stays in force.
        """
        if self.tls is not None:
            self.tls.reload()

    def reload_logins(self) -> None:
        """Read the logins again; any thread may call. Raises as `reload_tls`."""
        if self.logins is not None:
            self.logins.reload()


class Doorkeeper(Closing):
    """Refuse requests that are too many, or that no login allows; called by the server's thread."""

    def __init__(self, logins: Logins | None) -> None:
        self._logins = logins
        self._rates = Rates(RATE, BURST)
        self._failures = Rates(FAILURES_RATE, FAILURES_BURST)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="logins")
        self._checks = 0

    def close(self) -> None:
        """End the thread after the password that it hashes."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def refusal(self, request: web.Request, needed: Role) -> web.Response | None:
        """Why a request is refused; None where it is let through, with its `CLIENT`."""
        now_s, address = asyncio.get_running_loop().time(), request.remote or ""
        if not self._rates.takes(address, now_s):
            return _refused(429, f"more than {RATE:.0f} requests per second", {"Retry-After": "1"})
        if self._logins is None or request.path in OPEN:
            return None
        header = request.headers.get("Authorization", "")
        sent = credentials(header)
        if sent is None or len(sent[1].encode("utf-8", "replace")) > MOST_SECRET:
            return _unknown("log in with a name and password, or a bearer token")
        found = self._quickly(*sent)
        if found is None:
            if not self._failures.has(address, now_s):
                words = "too many wrong logins; wait a minute"
                return _refused(429, words, {"Retry-After": "60"})
            if self._checks >= MOST_CHECKS:
                return _refused(503, "too many logins at once; try again", {"Retry-After": "1"})
            found = await self._slowly(*sent)
        if found is None:
            self._failures.takes(address, now_s)
            return _unknown("wrong name, password or token")
        name, role = found
        if not role.includes(needed):
            has, needs = self._logins.roles[role], self._logins.roles[needed]
            return _refused(403, f"{name} has the role {has}; this needs the role {needs}")
        request[CLIENT] = Client(name, role, address)
        return None

    def _quickly(self, name: str, secret: str) -> tuple[str, Role] | None:
        if self._logins is None:
            return None
        if not name:
            return self._logins.of_token(secret)
        role = self._logins.remembered(name, secret)
        return None if role is None else (name, role)

    async def _slowly(self, name: str, secret: str) -> tuple[str, Role] | None:
        if self._logins is None or not name:
            return None
        self._checks += 1
        try:
            role = await asyncio.get_running_loop().run_in_executor(
                self._worker, self._logins.of_password, name, secret
            )
        finally:
            self._checks -= 1
        return None if role is None else (name, role)


def _unknown(text: str) -> web.Response:
    headers = {"WWW-Authenticate": 'Basic realm="plimsoll", charset="UTF-8"'}
    return _refused(401, text, headers)


def _refused(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, text=text + "\n", headers={"Cache-Control": "no-store", **(headers or {})}
    )

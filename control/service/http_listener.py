"""The HTTP server of the service, on a port and the control socket, in a thread of its own.

It reads the service's state, so that no request waits for the loop or for the cluster. Actions are
accepted on the control socket, and on the port from clients that have logged in. What clients may
use up is bounded: connections, requests, time, headers, bodies.
"""

import asyncio
import contextlib
import errno
import logging
import operator
import re
import socket
import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from clients.connection import is_loopback
from control.cruise_control.api import CruiseControlApi, role_for
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.user_tasks import MOST_BODY as MOST_CRUISE_BODY
from control.render.text import json_text
from control.service.control_api import AUDIT, MOST_BODY, ControlApi, peer_in, refusal
from control.service.control_socket import ControlSocket
from control.service.http_access import Doorkeeper, HttpAccess
from control.service.logins import Role
from control.service.open_api import API, CLUSTERS, OPEN_API, description
from control.service.operator_actions import OperatorActions
from control.service.read_api import NotYetKnown, ReadApi
from control.service.scrape import exposition, registry_of
from control.service.server_tls import ServerTls, TlsAcceptor
from control.service.service_state import ServiceState
from control.service.simulations import Simulations
from control.settings.service_table import ListenAddress
from model.closing import Closing
from model.errors import ConfigError, PortTaken
from model.log_events import LogEvent, named
from model.printable import printable

MOST_CONNECTIONS: Final = 100
"""Open connections; one more closes that whose last request is the oldest."""
IDLE_S: Final = 20.0
"""Seconds after its last request began, or after it was opened, that a connection is closed."""
SWEEP_S: Final = 1.0
"""Seconds between two looks at the connections."""
MOST_DIGITS: Final = 4
"""Of a number of decisions."""
_BACKLOG: Final = 128
LINGER_S: Final = 1.0
"""Time for which the rest of a request on the control socket is read and discarded."""
_TURNS: Final = 5
"""Turns of the event loop that take a connection from its acceptance to its protocol."""
OPEN_ACCESS: Final = HttpAccess()
NO_ADDRESS: Final = ListenAddress("", 0)
"""Of a listener without a port."""
logger = logging.getLogger("plimsoll.service")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def bound(address: ListenAddress, setting: str = "listen") -> socket.socket:
    """A socket that listens there; setting: that which names the address, for messages.

    Raises PortTaken where another program does, ConfigError where it may not.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address.host, address.port))
        found.listen(_BACKLOG)
    except OSError as exc:
        found.close()
        if exc.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"port {address.port} for the service is in use on {address.host}; set {setting} "
                "in [service] to another one, or stop the program that listens there"
            ) from exc
        raise ConfigError(
            f"cannot listen on {address.host}:{address.port}: {exc.strerror}; set {setting} in "
            "[service] to another address"
        ) from exc
    found.setblocking(False)
    return found


@dataclass(frozen=True, slots=True)
class ControlSite:
    """The control socket, and what it may do; the caller closes the socket."""

    socket: ControlSocket
    actions: OperatorActions
    simulations: Simulations | None = None
    """None where none may be requested."""


@dataclass(frozen=True, slots=True)
class CruiseControlSite:
    """A socket as `bound` returns it, which the listener closes, and what it serves."""

    socket: socket.socket
    parts: CruiseControl
    access: HttpAccess = OPEN_ACCESS


def address_of(listening: socket.socket) -> ListenAddress:
    """Where a socket of `bound` listens, with the port that the system has chosen."""
    return ListenAddress(*listening.getsockname()[:2])


class ServerThread(Closing):
    """A thread with an event loop that serves until closed."""

    def __init__(self, access: Sequence[HttpAccess]) -> None:
        """access: of each port. `begin` starts it, as the last step of a subclass."""
        self._every_access = access
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="http", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    @abstractmethod
    async def serve(self, ended: asyncio.Event) -> None:
        """Serve until the event is set."""

    @abstractmethod
    def close_sockets(self) -> None:
        """Called at the end, however that comes."""

    def reload_access(self) -> None:
        """Read certificates and logins again.

        Raises ConfigError; then what cannot be read stays as it is.
        """
        with contextlib.ExitStack() as reloads:
            # All of them, whichever cannot be read; the stack then raises the error.
            for access in self._every_access:
                reloads.callback(access.reload_logins)
                if self._thread.is_alive():
                    reloads.callback(self._reload_tls, access)

    def _reload_tls(self, access: HttpAccess) -> None:
        async def reload() -> None:
            access.reload_tls()

        # In its thread, since a handshake must not meet half of a change.
        asyncio.run_coroutine_threadsafe(reload(), self._loop).result()

    def close(self) -> None:
        """Close all connections and end."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()

    def _main(self) -> None:
        try:
            self._loop.run_until_complete(self.serve(self._ended))
        except Exception:
            # The loop continues: balancing does not need this server.
            logger.exception(
                "the HTTP server of the service has ended", extra=named(LogEvent.SERVICE_FAILED)
            )
        finally:
            self._loop.close()
            self.close_sockets()


class HttpListener(ServerThread):
    """Serve `/livez`, `/readyz` and `/metrics` until closed."""

    def __init__(
        self,
        listening: socket.socket | None,
        state: ServiceState,
        *,
        api: bool = False,
        control: ControlSite | None = None,
        cruise_control: CruiseControlSite | None = None,
        metrics: socket.socket | None = None,
        access: HttpAccess = OPEN_ACCESS,
        idle_s: float = IDLE_S,
    ) -> None:
        """listening: as `bound` returns it; the listener closes it. None for no port of its own.

        api: serve `/api/v1` on the port. metrics: as `listening`; it serves metrics to anyone.

        access: TLS and logins of the port that serves metrics.
        """
        self._api, self._control, self._access = api, control, access
        self._cruise_control = cruise_control
        self._socket, self._metrics, self._idle_s = listening, metrics, idle_s
        self.address = NO_ADDRESS if listening is None else address_of(listening)
        scheme = "http" if access.tls is None else "https"
        self.url = "" if listening is None else self.address.url_by(scheme)
        """The port as the beginning of a URL; empty without one."""
        self._state, self._registry = state, registry_of(state)
        if cruise_control is not None:
            self._registry.register(cruise_control.parts.metrics)
        super().__init__([access, *([] if cruise_control is None else [cruise_control.access])])
        self.begin()

    def close_sockets(self) -> None:
        """Close those of the ports."""
        for found in (self._socket, self._metrics):
            if found is not None:
                found.close()
        if self._cruise_control is not None:
            self._cruise_control.socket.close()

    async def serve(self, ended: asyncio.Event) -> None:
        """Serve the ports and the control socket, as far as given."""
        async with contextlib.AsyncExitStack() as opened:
            api = ReadApi(self._state)
            opened.callback(api.close)
            usual = partial(application, self._state, self._registry)
            doors = opened.enter_context(Doorkeeper(self._access.logins))
            of_tcp = usual(api if self._api else None, doors=doors, has_tls=bool(self._access.tls))
            if self._control is not None:
                site = self._control
                control = ControlApi(self._state, site.actions, site.simulations)
                opened.callback(control.close)
                if self._api:
                    control.add_reads_to(of_tcp, API)
                if self._api and self._access.logins is not None:
                    control.add_actions_to(of_tcp, API)
                of_unix, listening = usual(api, control), self._control.socket.listening
                await opened.enter_async_context(serving_on(of_unix, listening, self._idle_s))
            if self._socket is not None:
                serving = serving_on(of_tcp, self._socket, self._idle_s, self._access.tls)
                await opened.enter_async_context(serving)
            if self._metrics is not None:
                of_metrics = metrics_application(
                    self._registry, opened.enter_context(Doorkeeper(None))
                )
                serving = serving_on(of_metrics, self._metrics, self._idle_s)
                await opened.enter_async_context(serving)
            if self._cruise_control is not None:
                cruise = self._cruise_control
                guards = opened.enter_context(Doorkeeper(cruise.access.logins))
                of_cruise = cruise_control_application(
                    cruise.parts.api, guards, has_tls=bool(cruise.access.tls)
                )
                serving = serving_on(of_cruise, cruise.socket, self._idle_s, cruise.access.tls)
                await opened.enter_async_context(serving)
            await ended.wait()


@contextlib.asynccontextmanager
async def serving_on(
    app: web.Application, listening: socket.socket, idle_s: float, tls: ServerTls | None = None
) -> AsyncIterator[None]:
    """Serve an application on a socket; its clients cannot use up the connections of another."""
    loop, swept = asyncio.get_running_loop(), app[_SWEEPER]
    is_unix = listening.family == socket.AF_UNIX
    swept.idle_s = idle_s
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        keepalive_timeout=idle_s / 2,
        # A body that is not read must not reset the connection before the answer is read.
        lingering_time=LINGER_S if is_unix else 0.0,
    )
    await runner.setup()
    server = runner.server
    if server is None:
        raise RuntimeError("aiohttp has made no server")

    def connection() -> asyncio.Protocol:
        swept.sweep(server)
        made: asyncio.Protocol = server()
        return made

    tasks = [loop.create_task(swept.sweep_often(server))]
    accepting: asyncio.Server | None = None
    if tls is not None:
        tasks.append(loop.create_task(TlsAcceptor(listening, tls, connection).accept()))
    else:
        create = loop.create_unix_server if is_unix else loop.create_server
        accepting = await create(connection, sock=listening)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # asyncio leaves a connection open that it has just accepted when the server closes.
        loop.remove_reader(listening)
        await _turns()
        if accepting is not None:
            accepting.close()
        for protocol in server.connections:
            _abort(protocol)
        await runner.cleanup()
        await _turns()


async def _turns() -> None:
    """Let a new connection become known to the server, or an aborted one be closed."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class _Sweeper:
    """Close connections of clients that send or read too slowly, and the oldest of too many.

    Of too many, those go first that have sent no request.
    """

    def __init__(self) -> None:
        self.idle_s = IDLE_S
        self._since_s: dict[Any, tuple[bool, float]] = {}
        """By open connection: whether it has sent a request; when the last one began, or when the
        connection was first seen."""

    def touch(self, protocol: Any) -> None:
        """Note that a request of a connection begins."""
        self._since_s[protocol] = True, asyncio.get_running_loop().time()

    async def sweep_often(self, server: web.Server) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(min(SWEEP_S, self.idle_s / 4))
            self.sweep(server)

    def sweep(self, server: web.Server) -> None:
        """Close what is due."""
        now_s = asyncio.get_running_loop().time()
        first = False, now_s
        self._since_s = {p: self._since_s.get(p, first) for p in server.connections if _is_open(p)}
        oldest = sorted(self._since_s.items(), key=operator.itemgetter(1))
        too_many = len(oldest) + 1 - MOST_CONNECTIONS
        for position, (protocol, (_asked, since_s)) in enumerate(oldest):
            if position < too_many or since_s < now_s - self.idle_s:
                _abort(protocol)


_SWEEPER: Final = web.AppKey("sweeper", _Sweeper)


def _is_open(protocol: Any) -> bool:
    return protocol.transport is not None and not protocol.transport.is_closing()


def _abort(protocol: Any) -> None:
    # Unlike `close`, this does not wait for a client that does not read.
    if protocol.transport is not None:
        protocol.transport.abort()


def application(
    state: ServiceState,
    registry: CollectorRegistry,
    api: ReadApi | None,
    control: ControlApi | None = None,
    *,
    doors: Doorkeeper | None = None,
    has_tls: bool = False,
) -> web.Application:
    """What is served; control: on the control socket alone. doors, has_tls: of the port."""
    app = guarded_application(doors, has_tls=has_tls, on_socket=control is not None)
    if control is not None:
        control.add_to(app)
    app.router.add_get(OPEN_API, open_api)
    add_reads(app, "", state, registry, api)
    return app


def guarded_application(
    doors: Doorkeeper | None, *, has_tls: bool, on_socket: bool
) -> web.Application:
    """An application that lets only those through who may ask; on_socket: a control socket."""
    swept = _Sweeper()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        swept.touch(request.protocol)
        acts = request.method == "POST" and (on_socket or _is_action(request))
        refused = await _refusal(request, doors, has_tls=has_tls, acts=acts)
        if on_socket and not peer_in(request).is_allowed:
            words = "the control socket is for the service's user"
            refused = refusal(403, words, "GuardrailRefused")
        if refused is not None:
            if request.body_exists:
                # Not read: the connection is closed after the response.
                refused.force_close()
            return refused
        return await handler(request)

    app = web.Application(middlewares=[guarded], client_max_size=MOST_BODY)
    app[_SWEEPER] = swept
    return app


def add_reads(
    app: web.Application,
    prefix: str,
    state: ServiceState,
    registry: CollectorRegistry,
    api: ReadApi | None,
) -> None:
    """Add the probes, the metrics and the documents of one cluster, under a prefix."""

    async def livez(_request: web.Request) -> web.Response:
        hanging = state.hanging()
        return text_response(503 if hanging else 200, hanging or "ok")

    async def readyz(_request: web.Request) -> web.Response:
        reason = state.not_ready()
        return text_response(503 if reason else 200, reason or state.ready())

    app.router.add_get(f"{prefix}/livez", livez)
    app.router.add_get(f"{prefix}/readyz", readyz)
    app.router.add_get(f"{prefix}/metrics", partial(scraped, registry))
    app.router.add_get(f"{prefix}{API}/{{document}}", partial(_document, api))


def metrics_application(registry: CollectorRegistry, doors: Doorkeeper) -> web.Application:
    """What is served to whoever reaches the port: metrics, under any name of this machine.

    doors: without logins, so that they limit the rate of requests alone.
    """
    swept = _Sweeper()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        swept.touch(request.protocol)
        refused = await doors.refusal(request, Role.VIEWER)
        if refused is None and request.body_exists:
            refused = text_response(413, "requests have no body here")
        if refused is None:
            return await handler(request)
        if request.body_exists:
            # Not read: the connection is closed after the response.
            refused.force_close()
        return refused

    app = web.Application(middlewares=[guarded], client_max_size=MOST_BODY)
    app[_SWEEPER] = swept
    app.router.add_get("/metrics", partial(scraped, registry))
    return app


async def scraped(registry: CollectorRegistry, request: web.Request) -> web.Response:
    """A scrape, in the format that the client prefers."""
    body, content_type = exposition(registry, request.headers.get("Accept", ""))
    return web.Response(body=body, headers={"Content-Type": content_type})


async def _refusal(
    request: web.Request, doors: Doorkeeper | None, *, has_tls: bool, acts: bool
) -> web.Response | None:
    """Why a request is not let through; None if it is. acts: whether it asks for an action."""
    # With TLS, no other name fits the certificate, whatever a web page lets it point to.
    if not has_tls and not _is_own_name(request.host):
        return text_response(403, "use http://localhost or http://127.0.0.1")
    refused = None
    if doors is not None:
        needed = Role.ADMIN if _path_in_cluster(request) == f"{API}/{AUDIT}" else Role.VIEWER
        refused = await doors.refusal(request, Role.OPERATOR if acts else needed)
    if refused is None and request.body_exists and not acts:
        return text_response(413, "requests have no body here")
    return refused


def _is_action(request: web.Request) -> bool:
    """Whether a path on the port is that of an action; there is none without logins."""
    return _ACTING.fullmatch(_path_in_cluster(request)) is not None


_ACTING: Final = re.compile(rf"{API}/(actions/.*|tasks|tasks/.*|simulate)", re.DOTALL)


def _path_in_cluster(request: web.Request) -> str:
    """The path of a request without the cluster of a fleet that begins it."""
    head, _, rest = request.path.removeprefix(f"{CLUSTERS}/").partition("/")
    is_of_cluster = head and request.path.startswith(f"{CLUSTERS}/")
    return f"/{rest}" if is_of_cluster else request.path


def cruise_control_application(
    api: CruiseControlApi, doors: Doorkeeper, *, has_tls: bool
) -> web.Application:
    """What is served to clients of Cruise Control."""
    swept = _Sweeper()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        swept.touch(request.protocol)
        refused = None
        if not has_tls and not _is_own_name(request.host):
            refused = text_response(403, "use http://localhost or http://127.0.0.1")
        elif _is_cross_origin(request, "https" if has_tls else "http"):
            # A web page could order moves without reading the answer.
            refused = text_response(403, "requests from web pages of other origins are refused")
        refused = refused or await doors.refusal(request, role_for(request))
        if refused is None:
            return await handler(request)
        if request.body_exists:
            # Not read: the connection is closed after the response.
            refused.force_close()
        return refused

    app = web.Application(middlewares=[guarded], client_max_size=MOST_CRUISE_BODY)
    app[_SWEEPER] = swept
    api.add_to(app)
    return app


def _is_cross_origin(request: web.Request, scheme: str) -> bool:
    """Whether a browser sends the request for a page from elsewhere (Fetch standard, `Origin`)."""
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "none")
    own = f"{scheme}://{request.host}"
    return (origin is not None and origin != own) or site not in ("none", "same-origin")


async def open_api(_request: web.Request, *, fleet: bool = False) -> web.Response:
    """The description of what a service serves, or that of a fleet."""
    return web.Response(
        text=json_text(description(fleet=fleet)),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


async def _document(api: ReadApi | None, request: web.Request) -> web.Response:
    """A document of the API; every error is one sentence in plain text."""
    if api is None:
        return text_response(404, "the API is off; set api = true in [service]")
    name, asked = request.match_info["document"], dict(request.query)
    last = asked.pop("last", "1") if name == "why" else "1"
    partitions = (asked.pop("partitions", "true") if name == "status" else "true").lower()
    if asked:
        return text_response(400, f"unknown parameter {printable(next(iter(asked)))!r}")
    if not (last.isascii() and last.isdigit() and 1 <= len(last) <= MOST_DIGITS and int(last)):
        return text_response(400, "last is a number of decisions, from 1")
    if partitions not in ("true", "false"):
        return text_response(400, "partitions is true or false")
    status = partial(api.status, partitions=partitions == "true")
    calls: dict[str, Callable[[], Awaitable[str]]]
    calls = {"status": status, "plan": api.plan, "why": partial(api.why, int(last))}
    if name not in calls:
        known = ", ".join([*calls, *_others(request)])
        return text_response(404, f"there is no such document; there are {known}")
    try:
        text = await calls[name]()
    except NotYetKnown as exc:
        return text_response(503, str(exc))
    except ConfigError as exc:
        return text_response(500, printable(str(exc)))
    return web.Response(
        text=text, content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _others(request: web.Request) -> list[str]:
    """Further documents beside that of a request, each at a path of its own."""
    asked = request.match_info.route.resource
    prefix = "" if asked is None else asked.canonical.removesuffix("{document}")
    paths = [
        route.resource.canonical.removeprefix(prefix)
        for route in request.app.router.routes()
        if route.method == "GET"
        and route.resource is not None
        and route.resource.canonical.startswith(prefix)
    ]
    return [path for path in paths if "{" not in path]


def _is_own_name(host: str) -> bool:
    """Whether a `Host` header names this machine.

    A web page may make its own host name point to this machine (DNS rebinding); the header
    then has that name.
    """
    name = host.rpartition(":")[0] if host[-1:] != "]" and ":" in host else host
    return name == "localhost" or is_loopback(name.strip("[]"))


def text_response(status: int, text: str) -> web.Response:
    """One sentence in plain text."""
    # A new line ends the text, for terminals.
    return web.Response(status=status, text=text + "\n", headers={"Cache-Control": "no-store"})

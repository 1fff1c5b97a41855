"""What a fleet serves: its table, metrics of all clusters, and each cluster under its name."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from aiohttp import web

from control.render.text import json_text
from control.service.control_api import AUDIT, POSTS, READS, ControlApi, refusal
from control.service.control_api import PREFIX as CONTROL
from control.service.control_socket import ControlSocket
from control.service.fleet import FleetMember, fleet_answer
from control.service.http_access import Doorkeeper, HttpAccess
from control.service.http_listener import (
    IDLE_S,
    ServerThread,
    add_reads,
    address_of,
    guarded_application,
    open_api,
    scraped,
    serving_on,
    text_response,
)
from control.service.member_state import MemberState
from control.service.open_api import API, CLUSTERS, OPEN_API
from control.service.read_api import ReadApi
from control.service.scrape import fleet_registry, registry_of

FLEET: Final = "fleet"
"""Path of the table, under the prefix of the API or of the control socket."""


class FleetListener(ServerThread):
    """Serve a fleet on a port and a control socket until closed."""

    def __init__(
        self,
        listening: socket.socket,
        members: Sequence[FleetMember],
        control: ControlSocket,
        *,
        api: bool,
        access: HttpAccess,
    ) -> None:
        """listening: as `bound` returns it; the listener closes it. api: serve the API on it.

        control: the socket of the fleet, which the caller closes. access: of the port.
        """
        self._socket, self._members, self._control = listening, members, control
        self._api, self._access = api, access
        self.url = address_of(listening).url_by("http" if access.tls is None else "https")
        super().__init__([access])
        self.begin()

    def close_sockets(self) -> None:
        """Close the port's."""
        self._socket.close()

    async def serve(self, ended: asyncio.Event) -> None:
        """Serve both until the event is set."""
        async with contextlib.AsyncExitStack() as opened:
            doors = opened.enter_context(Doorkeeper(self._access.logins))
            of_tcp = guarded_application(doors, has_tls=bool(self._access.tls), on_socket=False)
            of_unix = guarded_application(None, has_tls=False, on_socket=True)
            registry = fleet_registry({m.name: m.state for m in self._members})
            for app in (of_tcp, of_unix):
                app.router.add_get("/livez", self._livez)
                app.router.add_get("/readyz", self._readyz)
                app.router.add_get("/metrics", partial(scraped, registry))
            of_unix.router.add_get(f"{CONTROL}/{FLEET}", self._table)
            of_tcp.router.add_get(OPEN_API, partial(open_api, fleet=True))
            of_tcp.router.add_get(f"{API}/{FLEET}", self._table if self._api else _api_off)
            acts = self._api and self._access.logins is not None
            for member in self._members:
                prefix, own = f"{CLUSTERS}/{member.name}", registry_of(member.state)
                api = ReadApi(member.state)
                opened.callback(api.close)
                if self._api:
                    _add_control(of_tcp, f"{prefix}{API}", member, acts=acts)
                add_reads(of_tcp, prefix, member.state, own, api if self._api else None)
                add_reads(of_unix, prefix, member.state, own, api)
            of_unix_socket = serving_on(of_unix, self._control.listening, IDLE_S)
            await opened.enter_async_context(of_unix_socket)
            serving = serving_on(of_tcp, self._socket, IDLE_S, self._access.tls)
            await opened.enter_async_context(serving)
            await ended.wait()

    async def _table(self, _request: web.Request) -> web.Response:
        return web.Response(
            text=json_text(fleet_answer(self._members)),
            content_type="application/json",
            headers={"Cache-Control": "no-store"},
        )

    async def _livez(self, _request: web.Request) -> web.Response:
        return text_response(*alive(self._members))

    async def _readyz(self, _request: web.Request) -> web.Response:
        return text_response(*ready(self._members))


def alive(members: Sequence[FleetMember]) -> tuple[int, str]:
    """Status and text of the fleet's `/livez`: a restart helps only where no loop turns."""
    hanging = [m.name for m in members if m.service is MemberState.HANGING]
    if len(hanging) == len(members):
        return 503, "no loop turns"
    return 200, f"ok; these hang: {', '.join(hanging)}" if hanging else "ok"


def ready(members: Sequence[FleetMember]) -> tuple[int, str]:
    """Status and text of the fleet's `/readyz`: one cluster in trouble is not the fleet's."""
    others = [m for m in members if m.service is not MemberState.RUNNING]
    words = "; ".join(f"{m.name}: {m.service}" for m in others)
    if len(others) == len(members):
        return 503, f"no cluster is observed now; {words}"
    return 200, f"ok; {words}" if words else "ok"


def _add_control(app: web.Application, prefix: str, member: FleetMember, *, acts: bool) -> None:
    """Add what a cluster's own service answers; acts: what operators may ask of it, too."""

    def of(
        call: Callable[[ControlApi, web.Request], Awaitable[web.Response]],
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handler(request: web.Request) -> web.Response:
            control = member.control
            if control is None:
                words = member.trouble or "it is starting"
                return refusal(503, f"the service of {member.name} does not run: {words}")
            return await call(control, request)

        return handler

    for path, read in READS.items():
        app.router.add_get(f"{prefix}/{path}", of(read))
    if not acts:
        return
    app.router.add_get(f"{prefix}/service", of(ControlApi.status))
    app.router.add_get(f"{prefix}/{AUDIT}", of(ControlApi.audit))
    for path, post in POSTS.items():
        app.router.add_post(f"{prefix}/{path}", of(post))


async def _api_off(_request: web.Request) -> web.Response:
    return text_response(404, "the API is off; set api = true in [service] of the fleet's file")

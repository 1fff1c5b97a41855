"""textual-serve, held to this machine and to a page of its own."""

from typing import Final

from aiohttp import web
from textual_serve.server import Server

from lab.ports import HOST

NAMES: Final = (HOST, "localhost")
"""By which a browser of this machine reaches it."""


class OwnPage(Server):
    """A server of whose screens only its own page can open one.

    A browser lets any page that it shows connect to this machine, and tells in the
    header `Origin` which page that was (RFC 6455, 10.2).
    """

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page; it would ask a server of fonts, and wait for it."""
        response: web.StreamResponse = await super().handle_index(request)
        own = f"http://{HOST}:{self.port} ws://{HOST}:{self.port}"
        policy = f"default-src {own} 'unsafe-inline' data:"
        response.headers["Content-Security-Policy"] = policy
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A screen, for no other page."""
        own = [f"http://{name}:{self.port}" for name in NAMES]
        if request.headers.get("Origin") not in (None, *own):
            raise web.HTTPForbidden(text="only the page of plimsoll itself may connect")
        response: web.WebSocketResponse = await super().handle_websocket(request)
        return response

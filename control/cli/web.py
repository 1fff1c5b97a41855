"""textual-serve limited to this machine, its own page and a few sessions."""

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from control.cli.output import Form
from control.cli.output_types import ServeAnswer
from control.render.text import json_text
from lab.local_cluster.tcp_ports import HOST
from model.printable import printable

NAMES: Final = (HOST, "localhost")
"""Host names under which browsers on this machine reach the server."""
_HTTP: Final = 80
"""The port that browsers omit from the Host header."""
SESSIONS: Final = 4
"""Default number of sessions; each is a process with Spark, about 1 GB."""
STOP_S: Final = 10.0
"""Seconds that a session may take to end after its window has closed."""
_HEARTBEAT_S: Final = 15.0
_SIZES: Final = (2, 1000)
"""Smallest and largest number of columns, and of rows, of a window."""
_log = logging.getLogger("textual-serve")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Brief(logging.Formatter):
    """One line per record, with the class of its error instead of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        kind = record.exc_info[0] if record.exc_info else None
        error = f": {kind.__name__}" if kind is not None else ""
        return printable(f"plimsoll: {record.getMessage()}{error}")


class OwnPage(Server):
    """A server whose screens can be opened only by its own page.

    Browsers let any page connect to this machine; the header `Origin` names the page
    (RFC 6455, 10.2). A page may also make its own host name point to this machine (DNS
    rebinding); the header `Host` then has that name.
    """

    def __init__(
        self,
        command: str,
        *,
        port: int,
        title: str,
        host: str = HOST,
        sessions: int = SESSIONS,
        stop_s: float = STOP_S,
        output: Form = Form.TABLE,
    ) -> None:
        super().__init__(command, host=host, port=port, title=title)
        self._most, self._taken = sessions, 0
        self.stop_s = stop_s
        self._output, self._answers = output, sys.stdout
        self._own = [f"{name}:{port}" for name in NAMES]
        if port == _HTTP:
            self._own += NAMES
        self._sessions: set[_Session] = set()

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._only_own_names)
        return app

    @web.middleware
    async def _only_own_names(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host not in self._own:
            raise web.HTTPForbidden(text="use http://localhost or http://127.0.0.1")
        return await handler(request)

    def initialize_logging(self) -> None:
        """Log warnings to stderr without tracebacks: clients may send anything."""
        handler = logging.StreamHandler()
        handler.setFormatter(_Brief())
        logging.basicConfig(level=logging.WARNING, handlers=[handler])

    def serve(self, debug: bool = False) -> None:
        """Serve until interrupted; stdout is kept for the JSON output."""
        with contextlib.redirect_stdout(sys.stderr):
            super().serve(debug)

    async def on_startup(self, app: web.Application) -> None:
        """Print the address of the page."""
        url = f"http://{HOST}:{self.port}"
        sys.stderr.write(f"Serving plimsoll on {url} (Ctrl-C to quit)\n")
        if self._output is Form.JSON:
            self._answers.write(json_text(ServeAnswer(url=url)))
            # The server keeps running while a reader of the pipe waits for the address.
            self._answers.flush()

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page, with a policy that stops it from loading fonts from elsewhere."""
        self._require_room()
        response: web.StreamResponse = await super().handle_index(request)
        own = f"http://{HOST}:{self.port} ws://{HOST}:{self.port}"
        policy = f"default-src {own} 'unsafe-inline' data:"
        response.headers["Content-Security-Policy"] = policy
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Open a screen for plimsoll's own page only; it ends with its window."""
        own = [f"http://{name}" for name in self._own]
        if request.headers.get("Origin") not in (None, *own):
            raise web.HTTPForbidden(text="only plimsoll's own page may connect")
        self._require_room()
        self._taken += 1
        try:
            return await self._shown(request)
        finally:
            self._taken -= 1

    async def on_shutdown(self, app: web.Application) -> None:
        """End all sessions; their windows close."""
        await asyncio.gather(*(session.end() for session in set(self._sessions)))

    def _require_room(self) -> None:
        if self._taken >= self._most:
            raise web.HTTPServiceUnavailable(
                text=f"All {self._most} sessions are in use. Close a window, or allow "
                "more with --sessions.",
                headers={"Retry-After": "10"},
            )

    async def _shown(self, request: web.Request) -> web.WebSocketResponse:
        window = web.WebSocketResponse(heartbeat=_HEARTBEAT_S)
        await window.prepare(request)
        session = _Session(self, window)
        self._sessions.add(session)
        try:
            size = (to_int(request.query.get(n, ""), 80) for n in ("width", "height"))
            await session.start(*size)
            await self._process_messages(window, session)
        except Exception as exc:  # noqa: BLE001 - a faulty window must not end the others
            _log.warning("a session ended: %s", type(exc).__name__)
        finally:
            # Also if the server ends in the meantime.
            await asyncio.shield(session.end())
            self._sessions.discard(session)
        return window


class _Session(AppService):
    """The plimsoll process of one window; each ends with the other."""

    def __init__(self, page: OwnPage, window: web.WebSocketResponse) -> None:
        super().__init__(
            page.command,
            write_bytes=window.send_bytes,
            write_str=window.send_str,
            close=self._close,
            download_manager=page.download_manager,
        )
        self._window, self._stop_s = window, page.stop_s

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # Without a shell, which could survive; in a group, so that all of it ends.
        self._process = await asyncio.create_subprocess_exec(
            *shlex.split(self.command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(_size(width), _size(height)),
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        return self._process

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(_size(width), _size(height))

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            # The process has ended, or lost its window.
            await self._close()

    async def _close(self) -> None:
        await self._window.close()

    async def end(self) -> None:
        """Ask the process to end; kill it after `stop_s`."""
        try:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self.stop(), self._stop_s)
        except asyncio.CancelledError:
            # Also raised if the session's own tasks end before they start.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        if (process := self._process) is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._stop_s)
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        await process.wait()


def _size(given: Any) -> int:
    least, most = _SIZES
    return max(least, min(most, int(given)))

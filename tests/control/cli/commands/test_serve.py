"""The screen in a browser: local, read only, and ended with its window."""

import asyncio
import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from control.cli.commands.serve import WHY, command, serve
from control.cli.output import Form
from control.cli.output_types import ServeAnswer
from control.session_recording.format import RecordingHeader, RecordingWriter
from lab.local_cluster.tcp_ports import HOST, answers, free_ports
from model.errors import ConfigError
from model.goals.goals import Goals
from model.stop_rules import StopRules
from tests.support.paths import ROOT
from tests.support.tui.loop_views import plan_ready


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-b", "h:1", "--allow-changes"], "is read-only"),
        (["apply", "plan.json"], "'apply' does not open a screen"),
        (["demo"], "'demo' does not open a screen"),
    ],
)
def test_only_a_read_only_screen_is_served(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        serve(arguments)


def test_without_textual_serve_the_error_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "control.cli.web", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(ConfigError, match="run make web in a clone, or pip install"):
        serve()


def test_the_reason_for_listening_on_this_machine_only_is_printed() -> None:
    message = WHY.format(port=8000, host="127.0.0.1")
    assert "on 127.0.0.1 only" in message
    assert "ssh -L 8000:127.0.0.1:8000 HOST" in message


async def test_it_prints_the_address_of_the_page_and_not_the_command_behind_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("textual_serve")
    from aiohttp import web

    from control.cli.web import OwnPage

    await OwnPage(command([]), port=8765, title="plimsoll").on_startup(web.Application())
    captured = capsys.readouterr()
    assert f"http://{HOST}:8765" in captured.err
    assert "import main" not in captured.err + captured.out


async def test_it_prints_the_address_of_the_page_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("textual_serve")
    from aiohttp import web

    from control.cli.web import OwnPage

    page = OwnPage(command([]), port=8765, title="plimsoll", output=Form.JSON)
    await page.on_startup(web.Application())
    output = ServeAnswer.model_validate_json(capsys.readouterr().out)
    assert output.url == f"http://{HOST}:8765"


def test_unusual_arguments_are_passed_through_unchanged() -> None:
    odd = ["--play", "my film; rm -rf $HOME.jsonl"]
    assert shlex.split(command(odd))[-2:] == odd


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "screen.jsonl"
    header = RecordingHeader(
        bootstrap="h:1", name="demo", goals=Goals(), throttle=None, stop_rules=StopRules()
    )
    recording = RecordingWriter(path, header)
    recording.add(plan_ready(), after_s=0.0, running=False, report=None)
    recording.close()
    return path


def _as_a_server_starts_it(arguments: list[str]) -> "subprocess.Popen[bytes]":
    driver = "textual.drivers.web_driver:WebDriver"
    return subprocess.Popen(
        shlex.split(command(arguments)),
        cwd=ROOT,
        env={**os.environ, "TEXTUAL_DRIVER": driver, "COLUMNS": "100", "ROWS": "30"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_screen_for_a_browser_draws_and_ends_when_the_browser_leaves(recording: Path) -> None:
    """textual-serve speaks to it by pipes, and closes them."""
    child = _as_a_server_starts_it(["--play", str(recording)])
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        drawn, deadline = b"", time.monotonic() + 300
        while b"PLAN READY" not in drawn:
            assert time.monotonic() < deadline
            drawn += os.read(child.stdout.fileno(), 1 << 16)
        assert drawn.startswith(b"__GANGLION__\n")
        assert b"RECORDING" in drawn
        child.stdin.close()
        child.stdin = None
        child.communicate(timeout=300)
        assert child.returncode == 130
    finally:
        child.kill()
        child.wait()


Connect = Callable[..., Awaitable[Any]]


@pytest.fixture
async def connect(recording: Path) -> AsyncIterator[Connect]:
    """Opens a window of a recording, like a page with this origin."""
    async with served(command(["--play", str(recording)])) as opened:
        yield opened


@contextlib.asynccontextmanager
async def served(what: str, **limits: float) -> AsyncIterator[Connect]:
    """Opens a window of any program."""
    pytest.importorskip("textual_serve")
    from aiohttp import ClientSession, web

    from control.cli.web import OwnPage

    (port,) = free_ports(1)
    page = OwnPage(what, port=port, title="plimsoll", **limits)  # type: ignore[arg-type]
    runner = web.AppRunner(await page._make_app())
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    async with ClientSession(f"http://{HOST}:{port}") as session:

        async def opened(path: str = "/ws", **headers: str) -> Any:
            if path == "/ws":
                return await session.ws_connect(path, headers=headers)
            return await session.get(path, headers=headers)

        yield opened
    await runner.cleanup()


async def test_the_page_fetches_nothing_from_other_servers(connect: Connect) -> None:
    page = await connect("/")
    policy = page.headers["Content-Security-Policy"]
    own = r"http://127\.0\.0\.1:(\d+) ws://127\.0\.0\.1:\1"
    assert re.fullmatch(rf"default-src {own} 'unsafe-inline' data:", policy)


@pytest.mark.parametrize("origin", ["http://else.example", "null", "http://127.0.0.1"])
async def test_no_other_page_in_the_browser_can_open_a_screen(
    connect: Connect, origin: str
) -> None:
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(Exception, match="403"):
        await connect(Origin=origin)
    assert set(psutil.Process().children(recursive=True)) == before


async def test_closing_a_window_ends_its_plimsoll(connect: Connect) -> None:
    before = set(psutil.Process().children(recursive=True))
    window, drawn = await connect(), b""
    while b"RECORDING" not in drawn:
        message = await window.receive(timeout=300)
        drawn += message.data if isinstance(message.data, bytes) else b""
    begun = set(psutil.Process().children(recursive=True)) - before
    assert begun
    await window.close()
    while any(child.is_running() for child in begun):
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("path", ["/", "/ws", "/static/css/xterm.css", "/download/x"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "[::1]"])
async def test_no_other_host_name_is_served(connect: Connect, path: str, host: str) -> None:
    before = set(psutil.Process().children(recursive=True))
    page = await connect("/")
    named = host.format(port=page.url.port)
    if path == "/ws":
        with pytest.raises(Exception, match="403"):
            await connect(path, Host=named)
    else:
        assert (await connect(path, Host=named)).status == 403
    assert set(psutil.Process().children(recursive=True)) == before


DEAF = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdout.write("__GANGLION__\\n")
sys.stdout.flush()
sys.stdout.buffer.write(b"D\\0\\0\\0\\1x")
sys.stdout.flush()
time.sleep(1000)
"""
"""A program that ignores everything."""


def _program(text: str) -> str:
    return shlex.join([sys.executable, "-c", text])


async def test_sessions_are_limited_and_a_closed_window_frees_one() -> None:
    async with served(_program(DEAF), sessions=2, stop_s=0.2) as connect:
        windows = [await connect(), await connect()]
        with pytest.raises(Exception, match="503"):
            await connect()
        assert (await connect("/")).status == 503
        await windows[0].close()
        while (await connect("/")).status == 503:
            await asyncio.sleep(0.05)
        await connect()


async def test_an_unresponsive_program_ends_with_its_window() -> None:
    before = set(psutil.Process().children(recursive=True))
    async with served(_program(DEAF), stop_s=0.2) as connect:
        window = await connect()
        assert (await window.receive(timeout=300)).data == b"x"
        begun = set(psutil.Process().children(recursive=True)) - before
        assert len(begun) == 1
        await window.close()
        while any(child.is_running() for child in begun):
            await asyncio.sleep(0.05)


async def test_windows_close_with_their_programs_and_with_the_server() -> None:
    before = set(psutil.Process().children(recursive=True))
    async with served(_program("print('__GANGLION__')"), stop_s=0.2) as connect:
        window = await connect()
        while not window.closed:
            await window.receive(timeout=300)
    async with served(_program(DEAF), stop_s=0.2) as connect:
        window = await connect()
        assert (await window.receive(timeout=300)).data == b"x"
    assert set(psutil.Process().children(recursive=True)) == before


async def test_a_session_whose_tasks_have_not_started_ends_with_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("textual_serve")
    from control.cli import web as browser

    class Late(browser._Session):
        """Starts to read only after its program has ended, as on a busy machine."""

        async def _open_app_process(self, width: int = 80, height: int = 24) -> Any:
            process = await super()._open_app_process(width, height)
            assert process.stdout is not None
            while not process.stdout.at_eof():
                await asyncio.sleep(0.01)
            return process

    monkeypatch.setattr(browser, "_Session", Late)
    async with served(_program("pass"), stop_s=0.2) as connect:
        window = await connect()
        while not window.closed:
            await window.receive(timeout=300)
        assert (await connect("/")).status == 200


@pytest.mark.parametrize("sent", ["{", "[]", "{}", '["resize",{}]', '["resize",1]'])
async def test_an_invalid_message_ends_only_its_own_window(sent: str) -> None:
    async with served(_program(DEAF), stop_s=0.2) as connect:
        other, window = await connect(), await connect()
        await window.send_str(sent)
        while not window.closed:
            await window.receive(timeout=300)
        assert not other.closed


async def test_port_80_may_be_missing_from_the_host_name() -> None:
    pytest.importorskip("textual_serve")
    from aiohttp.test_utils import TestClient, TestServer

    from control.cli.web import OwnPage

    page = OwnPage(_program(DEAF), port=80, title="plimsoll", stop_s=0.2)
    async with TestClient(TestServer(await page._make_app())) as client:
        for host, status in (("127.0.0.1", 200), ("localhost:80", 200), ("evil", 403)):
            assert (await client.get("/", headers={"Host": host})).status == status
        own = {"Host": "localhost", "Origin": "http://localhost"}
        await (await client.ws_connect("/ws", headers=own)).close()


def test_answers_are_self_contained_and_an_invalid_request_leaves_no_traceback(
    recording: Path,
) -> None:
    pytest.importorskip("textual_serve")
    (port,) = free_ports(1)
    arguments = ["serve", "--port", str(port), "-o", "json", "--", "--play"]
    server = subprocess.Popen(
        shlex.split(command([*arguments, str(recording.with_name("none"))])),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(3)]
        answer = ServeAnswer.model_validate_json("".join(lines))
        assert answer.url.endswith(f":{port}")
        for request in (BROKEN, WINDOW % port):
            with _connected(port) as asking:
                asking.sendall(request)
                while asking.recv(1 << 12):
                    pass
        server.send_signal(signal.SIGINT)
        rest, errors = server.communicate(timeout=300)
    finally:
        server.kill()
        server.wait()
    assert rest == ""
    assert "Traceback" not in errors
    assert "BadHttpMessage" in errors
    assert "cannot read the recording" in errors


def _connected(port: int) -> socket.socket:
    """A connection to the server, which may start to listen after printing its URL."""
    deadline = time.monotonic() + 300
    while not answers(port):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return socket.create_connection((HOST, port), timeout=300)


BROKEN = b"GET / HTTP/1.1\r\nHost: \x1b[31m\r\n\r\n"
WINDOW = b"""GET /ws HTTP/1.1\r
Host: localhost:%d\r
Connection: Upgrade\r
Upgrade: websocket\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
\r
"""

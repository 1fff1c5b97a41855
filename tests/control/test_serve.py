"""The screen in a browser: for this machine, without changes, and gone with it."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from control.commands.serve import WHY, command, show
from control.film import Film, FilmHeader
from lab.ports import HOST, free_ports
from model.errors import ConfigError
from model.goals import Goals
from model.stop_rules import StopRules
from tests.tui.views import plan_ready

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-b", "h:1", "--allow-changes"], "nothing is changed"),
        (["apply", "plan.json"], "'apply' opens no screen"),
        (["demo"], "'demo' opens no screen"),
    ],
)
def test_only_a_screen_that_changes_nothing_is_served(
    arguments: list[str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        show(arguments, port=8000)


def test_without_textual_serve_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "control.browser", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(ConfigError, match="say make web in a clone, else pip install"):
        show([], port=8000)


def test_it_says_why_it_listens_on_this_machine_alone() -> None:
    words = WHY.format(port=8000, host="127.0.0.1")
    assert "on 127.0.0.1 alone" in words
    assert "ssh -L 8000:127.0.0.1:8000 HOST" in words


def test_odd_arguments_stay_one_each() -> None:
    odd = ["--play", "my film; rm -rf $HOME.jsonl"]
    assert shlex.split(command(odd))[-2:] == odd


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "screen.jsonl"
    header = FilmHeader(
        bootstrap="h:1",
        name="demo",
        goals=Goals(),
        throttle=None,
        stop_rules=StopRules(),
    )
    film = Film(path, header)
    film.add(plan_ready(), after_s=0.0, running=False, report=None)
    film.close()
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


def test_started_for_a_browser_it_draws_and_ends_when_the_browser_has_gone(
    film: Path,
) -> None:
    """textual-serve speaks to it by pipes, and closes them."""
    child = _as_a_server_starts_it(["--play", str(film)])
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        drawn, deadline = b"", time.monotonic() + 60
        while b"PLAN READY" not in drawn:
            assert time.monotonic() < deadline
            drawn += os.read(child.stdout.fileno(), 1 << 16)
        assert drawn.startswith(b"__GANGLION__\n")
        assert b"RECORDING" in drawn
        child.stdin.close()
        child.stdin = None
        child.communicate(timeout=60)
        assert child.returncode == 130
    finally:
        child.kill()
        child.wait()


Connect = Callable[..., Awaitable[Any]]


@pytest.fixture
async def connect(film: Path) -> AsyncIterator[Connect]:
    """Opens a window of a recording, as a page with this origin does."""
    pytest.importorskip("textual_serve")
    from aiohttp import ClientSession, web

    from control.browser import OwnPage

    (port,) = free_ports(1)
    served = command(["--play", str(film)])
    page = OwnPage(served, host=HOST, port=port, title="plimsoll")
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


async def test_its_page_fetches_nothing_from_elsewhere(connect: Connect) -> None:
    page = await connect("/")
    policy = page.headers["Content-Security-Policy"]
    own = r"http://127\.0\.0\.1:(\d+) ws://127\.0\.0\.1:\1"
    assert re.fullmatch(rf"default-src {own} 'unsafe-inline' data:", policy)


@pytest.mark.parametrize("origin", ["http://else.example", "null", "http://127.0.0.1"])
async def test_no_other_page_of_the_browser_opens_a_screen(
    connect: Connect, origin: str
) -> None:
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(Exception, match="403"):
        await connect(Origin=origin)
    assert set(psutil.Process().children(recursive=True)) == before


async def test_a_window_shows_the_screen_and_closed_it_takes_its_plimsoll_with_it(
    connect: Connect,
) -> None:
    before = set(psutil.Process().children(recursive=True))
    window, drawn = await connect(), b""
    while b"RECORDING" not in drawn:
        message = await window.receive(timeout=120)
        drawn += message.data if isinstance(message.data, bytes) else b""
    begun = set(psutil.Process().children(recursive=True)) - before
    assert begun
    await window.close()
    while any(child.is_running() for child in begun):
        await asyncio.sleep(0.05)

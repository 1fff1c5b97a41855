"""The screen in a browser: for this machine, without changes, and gone with it."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from control.commands.serve import WHY, command, show
from control.film import Film, FilmHeader
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
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(ConfigError, match=r"pip install 'kafka-plimsoll\[web\]'"):
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

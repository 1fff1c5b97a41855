"""Warnings while a screen owns the terminal."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from control.cli import logs
from model.log_events import LogEvent, named

pytestmark = pytest.mark.usefixtures("_own_logs")


def _passed_warnings() -> list[str]:
    reported: list[str] = []
    logs.configure(verbose=False, file=None)
    logs.silence_stderr()
    logs.pass_warnings(reported.append)
    return reported


def test_warnings_go_to_the_screen_rather_than_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    messages = _passed_warnings()
    logging.getLogger("plimsoll.executor").warning("broker %d lags", 3)
    logging.getLogger("plimsoll.solver").info("nothing to warn of")
    assert messages == ["broker 3 lags"]
    assert capsys.readouterr().err == ""


def test_messages_of_the_loop_are_not_repeated() -> None:
    messages = _passed_warnings()
    logging.getLogger("plimsoll.control").warning("the loop has this in its log")
    assert messages == []


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_of_a_file_have_the_name_of_the_event_and_the_message(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    logs.configure(verbose=False, file=path)
    log = logging.getLogger("plimsoll.executor")
    log.warning("broker %d\nlags", 3, extra={**named(LogEvent.RUN_SLOW), "plan_hash": "abc"})
    logging.getLogger("plimsoll.collector").info("a message without a name")
    try:
        raise ValueError("a reason")
    except ValueError:
        log.exception("%s failed", "it", extra=named(LogEvent.LOOP_FAILED))
    first, second, third = _lines(path)
    assert (first["event"], first["message"]) == ("run.slow", "broker 3\nlags")
    assert (first["level"], first["logger"]) == ("warning", "plimsoll.executor")
    assert first["plan_hash"] == "abc"
    assert (second["event"], second["message"]) == ("collector", "a message without a name")
    assert (third["event"], third["message"]) == ("loop.failed", "it failed")
    assert "ValueError: a reason" in third["exception"]
    # So that another file is not taken for a log, nor a log for another file.
    assert path.read_bytes().startswith(b'{"event": ')
    logs.configure(verbose=False, file=path)
    logs.configure(verbose=False, file=None)

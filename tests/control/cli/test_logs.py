"""Warnings while a screen owns the terminal."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from control.cli import exit_codes, logs
from control.cli.output import LogFormat
from model.errors import GuardrailRefused
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


def test_a_full_file_is_renamed_and_the_oldest_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 1_000)
    path = tmp_path / "log.jsonl"
    logs.configure(verbose=False, file=path)
    for number in range(100):
        logging.getLogger("plimsoll.executor").warning("line %d", number)
    files = [*(logs.aside(path, n) for n in range(logs.KEPT, 0, -1)), path]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    numbers = [int(line["message"].split()[1]) for file in files for line in _lines(file)]
    # Nothing is lost in between, and no file is much longer than the most.
    assert numbers == list(range(numbers[0], 100))
    assert all(file.stat().st_size < 1_300 for file in files)


def test_processes_share_a_file_that_one_of_them_renames(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    script = (
        "import logging, sys; from pathlib import Path; from control.cli import logs\n"
        "logs.MOST_BYTES = 20_000\n"
        "logs.configure(verbose=False, file=Path(sys.argv[1]))\n"
        "for number in range(200):\n"
        "    logging.getLogger('plimsoll.executor').warning('%s %d', sys.argv[2], number)\n"
    )
    commands = [[sys.executable, "-P", "-c", script, str(path), name] for name in ("a", "b")]
    started = [subprocess.Popen(command) for command in commands]
    assert [process.wait() for process in started] == [0, 0]
    files = [logs.aside(path, n) for n in range(logs.KEPT, 0, -1)] + [path]
    lines = [line["message"] for file in files if file.exists() for line in _lines(file)]
    assert sorted(lines) == sorted(f"{name} {n}" for name in ("a", "b") for n in range(200))


def test_a_file_that_was_moved_away_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    logs.configure(verbose=False, file=path)
    log = logging.getLogger("plimsoll.executor")
    log.warning("before")
    path.rename(tmp_path / "moved")
    log.warning("after")
    assert [line["message"] for line in _lines(path)] == ["after"]


def test_stderr_gets_the_log_as_json_with_whatever_commands_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure(verbose=False, file=None, form=LogFormat.JSON)
    try:
        assert not logs.has_text()
        # As reading the settings again does.
        logs.configure(verbose=False, file=None, form=LogFormat.JSON)
        log = logging.getLogger(logs.LOOP)
        log.info("a\nb", extra={"narrated": True, **named(LogEvent.LOOP_PHASE)})
        logging.getLogger("plimsoll.solver").debug("only with -v")
        sys.stderr.write("plimsoll: metrics ")
        sys.stderr.write("on\nand more")
        sys.stderr.flush()
        with pytest.raises(typer.Exit):
            exit_codes.guarded(refused)()
    finally:
        logs.configure(verbose=False, file=None)
    assert logs.has_text()
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"], line["message"]) for line in found] == [
        ("loop.phase", "info", "a\nb"),
        ("command", "info", "metrics on"),
        ("command", "info", "and more"),
        ("command", "error", "not today"),
    ]
    assert all(line["timestamp"] and line["logger"] for line in found)


def refused() -> int:
    raise GuardrailRefused("not today")


def test_a_file_and_stderr_may_both_have_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.jsonl"
    logs.configure(verbose=False, file=path, form=LogFormat.JSON)
    try:
        logging.getLogger("plimsoll.executor").info("moved", extra=named(LogEvent.RUN_MOVE))
    finally:
        logs.configure(verbose=False, file=None)
    (shown,) = capsys.readouterr().err.splitlines()
    assert json.loads(shown)["event"] == _lines(path)[0]["event"] == "run.move"

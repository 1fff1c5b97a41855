"""Warnings while a screen owns the terminal."""

import logging

import pytest

from control.cli import logs

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

"""What is warned of while a screen owns the terminal."""

import logging
from collections.abc import Iterator

import pytest

from control.cli import logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger("plimsoll")
    before = root.handlers[:], root.level, root.propagate
    yield
    root.handlers[:], root.level, root.propagate = before


def _told() -> list[str]:
    told: list[str] = []
    logs.configure(verbose=False, file=None)
    logs.silence_stderr()
    logs.pass_warnings(told.append)
    return told


def test_what_is_warned_of_is_told_to_the_screen_and_not_to_its_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = _told()
    logging.getLogger("plimsoll.executor").warning("broker %d lags", 3)
    logging.getLogger("plimsoll.solver").info("nothing to warn of")
    assert told == ["broker 3 lags"]
    assert capsys.readouterr().err == ""


def test_what_the_loop_says_is_not_told_twice() -> None:
    told = _told()
    logging.getLogger("plimsoll.control").warning("the loop has this in its log")
    assert told == []

"""What a run says on stderr while it goes on."""

from dataclasses import replace

import pytest

from control.commands.apply import Narrator
from model.run import MoveProgress, MoveState, RunProgress, RunState
from tests.executor.plans import move

RUN = RunProgress(
    run_id="one",
    plan_hash="1a2b",
    state=RunState.RUNNING,
    moves=(MoveProgress(move=move(0)), MoveProgress(move=move(1))),
    started_at_ms=0,
)


def test_a_move_that_ended_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    done = replace(
        RUN.moves[0], state=MoveState.DONE, issued_at_ms=1000, done_at_ms=2500
    )
    told = Narrator()
    for _ in range(2):
        told(replace(RUN, moves=(done, RUN.moves[1])))
    assert capsys.readouterr().err == "1/2 orders-0 done in 1.50 s\n"


def test_the_time_left_is_told_when_it_has_halved_or_grown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Narrator()
    for left_s in (None, 400.0, 300.0, 201.0, 190.0, 280.0, 300.0, 100.0, 9.0, None):
        told(replace(RUN, left_s=left_s))
    assert capsys.readouterr().err.splitlines() == [
        "about 6 min 40 s left",
        "about 3 min 10 s left",
        "about 5 min 00 s left",
        "about 1 min 40 s left",
    ]

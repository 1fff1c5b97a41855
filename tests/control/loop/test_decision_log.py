"""Log lines of a run."""

from dataclasses import replace

from control.loop.decision_log import run_lines
from model.run import MoveProgress, MoveState, RunProgress, RunState
from tests.support.executor.plan_builders import move


def lines(before: RunProgress | None, after: RunProgress) -> list[tuple[str, str, str]]:
    return [(line.level, line.text, line.event.value) for line in run_lines(before, after)]


def test_each_state_of_the_run_and_of_each_move_is_one_line() -> None:
    waiting = MoveProgress(move=move(), state=MoveState.PLANNED)
    run = RunProgress(
        run_id="r1", plan_hash="0" * 64, state=RunState.RUNNING, moves=(waiting,), started_at_ms=0
    )
    assert lines(None, run) == [("info", "run r1 running", "run.state")]
    assert lines(run, run) == []
    moving = replace(waiting, state=MoveState.ISSUED)
    after = replace(run, moves=(moving,))
    assert lines(run, after) == [("info", "orders-0 started: 1 -> 2", "run.move")]
    paused = replace(after, state=RunState.PAUSED, reason="paused by the operator")
    message = "run r1 paused: paused by the operator"
    assert lines(after, paused) == [("warning", message, "run.state")]
    stuck = replace(paused, moves=(replace(moving, state=MoveState.STUCK, note="n"),))
    assert lines(paused, stuck) == [("warning", "orders-0 stuck: n", "run.move")]

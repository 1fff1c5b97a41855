"""Pictures of the run and history screens; `--snapshot-update` draws them again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input

from control.loop.view import LoopView
from executor.journal.run_history import PastRun
from executor.run.operator_control import AskedRate
from model.run import MoveProgress, MoveState, RunProgress, RunState
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import (
    NAME,
    balanced_after_run,
    competing_rebalancer,
    health,
    moves,
    plan,
    plan_ready,
    progress,
    running,
)
from tests.support.tui.past_runs import older, past, replay
from tests.tui.test_pictures import drawn, picture
from tui.screens.run_replay import ReplayScreen

__all__ = ["picture"]

SIZES = [(80, 24), (120, 40), (200, 50)]
MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class State:
    """The content of the run screen."""

    run: RunProgress | None
    is_running: bool = True
    asked: AskedRate | None = None
    interrupted: PastRun | None = None
    view: LoopView = field(default_factory=running)


def _estimated() -> RunProgress:
    return replace(progress(), left_s=42.0, foreseen_s=60.0)


def _with(state: MoveState, note: str) -> RunProgress:
    """A run of which the move in flight is in this state."""
    done, moving, *waiting = _estimated().moves
    odd = replace(moving, state=state, note=note)
    return replace(_estimated(), moves=(done, odd, *waiting))


def _ended(state: RunState, reason: str = "") -> State:
    run = replace(progress(state), reason=reason)
    return State(run=run, is_running=False, view=balanced_after_run())


STATES = {
    "running": State(run=_estimated()),
    "throttle_refused": State(
        run=_estimated(),
        asked=AskedRate(
            bytes_per_s=MB,
            answer="A throttle of 1.00 MB/s is too low: with 2 moves at once, what is "
            "produced now needs 8.00 MB/s into broker 3, twice what replicas fetch to "
            "keep up, or copies never arrive. Say 8.0MB/s or more.",
        ),
    ),
    "paused": State(
        run=replace(_estimated(), state=RunState.PAUSED, reason="paused by the operator")
    ),
    "move_stuck": State(run=_with(MoveState.STUCK, "nothing arrived for 10 min")),
    "move_failed": State(run=_with(MoveState.DROPPED, "someone else moves orders-1")),
    "stopped": _ended(RunState.STOPPED, "stopped by the operator"),
    "failed": _ended(RunState.FAILED, "broker 3 does not serve any more"),
    "refused": State(
        run=replace(
            progress(RunState.REFUSED),
            moves=tuple(MoveProgress(move=move) for move in moves()),
            reason=competing_rebalancer().message,
        ),
        is_running=False,
        view=plan_ready(),
    ),
    "finished": _ended(RunState.DONE),
    "interrupted": State(
        run=None, is_running=False, interrupted=past(RunState.INTERRUPTED), view=plan_ready()
    ),
    "no_run": State(run=None, is_running=False, view=plan_ready()),
}


async def _show(on: Stage, state: State) -> None:
    on.loop.previous_runs.interrupted = state.interrupted
    on.loop.steering.asked = state.asked
    await on.show(replace(state.view, run=state.run), running=state.is_running)
    # A growing table is laid out once more after it has its rows.
    await on.settle()


async def test_states_of_a_run(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("3")
        for name, state in STATES.items():
            await _show(on, state)
            assert drawn(on) == picture(name=name)


async def test_a_run_on_the_smallest_terminal_and_without_colour(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(health(), answer_s=0.8, under_replicated=1)
    view = replace(running(), run=replace(_estimated(), health=slow))
    async with stage(view, size=(60, 16), running=True) as on:
        await on.press("3")
        assert drawn(on) == picture(name="smallest")
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(view, size=(120, 40), running=True) as on:
        await on.press("3")
        await on.settle()
        assert drawn(on) == picture(name="without_colour")


async def test_questions_about_a_run(picture: SnapshotAssertion) -> None:
    async with stage(running(), size=(120, 40), running=True) as on:
        await on.press("3", "T")
        on.app.screen.query_one(Input).cursor_blink = False
        await on.press(*"quick", "enter")
        assert drawn(on) == picture(name="throttle")
        await on.press("escape")
        on.loop.previous_runs.back = (plan(), ["orders-7 was deleted"])
        await on.show(balanced_after_run())
        await on.press("B")
        await on.settle()
        on.app.screen.query_one(Input).cursor_blink = False
        on.app.clear_notifications()
        await on.press(*NAME)
        assert drawn(on) == picture(name="roll_back")


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_run_and_history(
    size: tuple[int, int], theme: str, picture: SnapshotAssertion
) -> None:
    async with stage(running(), size=size, theme=theme, running=True) as on:
        on.loop.previous_runs.listed = _rolled_back()
        await on.press("3")
        await on.settle()
        assert drawn(on) == picture(name="run")
        await on.press("5")
        await on.settle()
        assert drawn(on) == picture(name="history")


def _rolled_back() -> Sequence[PastRun]:
    """A run, and before it one that was rolled back by the run after it."""
    undoing = f"what run {older().run_id} had moved"
    limited = plan().model_copy(update={"limited_by": undoing})
    back = replace(past(run_id="20231114T090000-5b1c3d7e"), plan=limited)
    return past(), back, older()


async def test_a_replay_and_an_empty_history(picture: SnapshotAssertion) -> None:
    async with stage(balanced_after_run(), size=(120, 40)) as on:
        await on.press("5")
        await on.settle()
        assert drawn(on) == picture(name="no_history")
        on.loop.previous_runs.listed = (past(),)
        on.loop.previous_runs.replayed = replay()
        await on.press("1", "5")
        await on.press("enter")
        await on.settle()
        assert isinstance(on.app.screen, ReplayScreen)
        await on.press("left", "left")
        await on.settle()
        assert drawn(on) == picture(name="replay")

"""Runs steered and undone from the screen: what is asked, and what is passed on."""

from dataclasses import replace

from textual.widgets import Button, Input, Static

from control.loop.view import LogLine, Mode
from model.errors import GuardrailRefused
from model.run import MoveState, RunState
from tests.support.tui.app_harness import USER, Stage, stage
from tests.support.tui.loop_views import (
    AT_MS,
    NAME,
    balanced_after_run,
    plan,
    plan_ready,
    progress,
    running,
    solving,
)
from tests.support.tui.past_runs import RUN_ID, older, past, replay
from tui.screens.roll_back import RollBackScreen
from tui.screens.run_replay import ReplayScreen
from tui.screens.throttle import ThrottleScreen
from tui.viewmodel.disabled_reasons import ACTIONS, refusal


def _said(on: Stage) -> str:
    return " ".join(n.message for n in on.app._notifications)


async def _on_roll_back(on: Stage) -> None:
    await on.press("3", "B")
    await on.settle()
    assert isinstance(on.app.screen, RollBackScreen)


async def test_why_a_run_could_not_begin_is_told_beside_the_phase_that_goes_by() -> (
    None
):
    why = LogLine(at_ms=AT_MS, level="error", text="no plan: A throttle is too low")
    over = replace(solving(), log=(why,))
    async with stage(plan_ready()) as on:
        await on.show(running(), running=True)
        assert _said(on) == ""
        await on.show(over, running=False)
        await on.show(over, running=False)
        assert _said(on) == why.text


async def test_a_new_throttle_is_requested_from_the_run() -> None:
    async with stage(running(), running=True) as on:
        await on.press("T", *"50MB/s", "enter")
        assert on.loop.steering.asked_rates() == [50_000_000]
        await on.press("T", *"auto", "enter")
        assert on.loop.steering.asked_rates() == [None]
        assert len(on.app.screen_stack) == 1


async def test_an_invalid_rate_stays_in_the_form_with_the_reason() -> None:
    async with stage(running(), running=True) as on:
        await on.press("T", *"quick", "enter")
        assert isinstance(on.app.screen, ThrottleScreen)
        refused = on.app.screen.query_one("#refused", Static)
        assert "'quick' is not a rate" in str(refused.render())
        await on.press("escape")
        assert on.loop.steering.asked_rates() == []


async def test_without_a_run_or_read_only_no_throttle_is_requested() -> None:
    for view, is_running in ((plan_ready(), False), (running(), True)):
        mode = Mode.READ_ONLY if is_running else Mode.APPROVE
        async with stage(replace(view, mode=mode), running=is_running) as on:
            await on.press("T")
            assert len(on.app.screen_stack) == 1


async def test_a_run_that_was_cut_off_is_gone_on_with_after_one_question() -> None:
    async with stage(plan_ready()) as on:
        on.loop.past.cut_off = past(RunState.INTERRUPTED)
        await on.show(plan_ready())
        await on.press("3")
        assert "plimsoll ended in the middle of this run" in on.words("#figures")
        await on.press("R", "enter")
        assert on.loop.past.resumed == []
        await on.press("R", "tab", "enter")
        assert on.loop.past.resumed == [USER]


async def test_where_nothing_is_unfinished_resume_is_greyed_and_says_so() -> None:
    async with stage(balanced_after_run()) as on:
        await on.press("3")
        bound = on.app.screen.active_bindings["R"]
        assert not bound.enabled
        assert bound.tooltip == "no run was left unfinished"
        stopped = replace(balanced_after_run(), run=progress(RunState.STOPPED))
        await on.show(stopped)
        assert on.app.screen.active_bindings["R"].enabled


async def test_an_aborted_run_that_left_nothing_to_do_cannot_be_resumed() -> None:
    ended = tuple(
        replace(m, state=MoveState.DROPPED) if m.state is not MoveState.DONE else m
        for m in progress().moves
    )
    aborted = replace(progress(RunState.STOPPED), moves=ended)
    async with stage(replace(balanced_after_run(), run=aborted)) as on:
        await on.press("3", "R")
        assert len(on.app.screen_stack) == 1
        bound = on.app.screen.active_bindings["R"]
        assert bound.tooltip == "no run was left unfinished"
        failed = replace(aborted, state=RunState.FAILED)
        await on.show(replace(balanced_after_run(), run=failed))
        assert on.app.screen.active_bindings["R"].enabled


async def test_read_only_neither_resumes_nor_goes_back_and_says_why() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        on.loop.past.cut_off = past(RunState.INTERRUPTED)
        on.loop.past.listed = (past(),)
        on.loop.past.back = (plan(), [])
        await on.show(plan_ready(Mode.READ_ONLY))
        for screen in "35":
            await on.press(screen, "R", "B")
            await on.settle()
            assert len(on.app.screen_stack) == 1
            bound = on.app.screen.active_bindings["B"]
            assert not bound.enabled
            assert "--allow-changes" in bound.tooltip
        assert on.loop.past.resumed == []


async def test_a_refusal_to_go_on_is_told() -> None:
    async with stage(plan_ready()) as on:
        on.loop.past.cut_off = past(RunState.INTERRUPTED)
        on.loop.past.refuses = GuardrailRefused("a run goes on; wait for its end")
        await on.show(plan_ready())
        await on.press("3", "R", "tab", "enter")
        assert "a run goes on; wait for its end" in _said(on)


async def test_the_run_shown_is_rolled_back_for_the_typed_name_by_the_plan_shown() -> (
    None
):
    async with stage(balanced_after_run()) as on:
        on.loop.past.back = (plan(), ["orders-7 was deleted"])
        await _on_roll_back(on)
        words = "\n".join(str(w.render()) for w in on.app.screen.query("Static, Label"))
        assert f"Roll back run {RUN_ID}?" in words
        assert "4 moves, 4 leader changes, 33.5 MB to copy" in words
        assert "Left alone: orders-7 was deleted" in words
        await on.press("escape")
        await _on_roll_back(on)
        await on.press(*"prod", "enter")
        assert on.app.screen.query_one("#yes", Button).disabled
        on.app.screen.query_one(Input).value = NAME
        assert on.loop.past.rolled_back == []
        await on.press("enter")
        assert on.loop.past.rolled_back == [(plan().hash, USER)]
        assert len(on.app.screen_stack) == 1


async def test_escape_goes_not_back_and_a_refusal_is_a_sentence() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.past.back = (plan(), [])
        await _on_roll_back(on)
        await on.press("escape")
        assert on.loop.past.rolled_back == []
        on.loop.past.refuses = GuardrailRefused("a run goes on")
        await _on_roll_back(on)
        await on.press(*NAME, "enter")
        refused = on.app.screen.query_one("#refused", Static)
        assert str(refused.render()) == "Not rolled back: a run goes on."


async def test_what_cannot_be_moved_back_is_told_and_nothing_asked() -> None:
    async with stage(balanced_after_run()) as on:
        for back, words in (
            (GuardrailRefused("orders-0 is still being moved"), "still being moved"),
            ((plan().model_copy(update={"moves": ()}), []), "nothing to move back"),
        ):
            on.loop.past.back = back
            await on.press("3", "B")
            await on.settle()
            assert words in _said(on)
            assert len(on.app.screen_stack) == 1


# ---- history


async def test_runs_are_listed_with_how_level_they_were_planned_and_are() -> None:
    async with stage(balanced_after_run(), size=(140, 30)) as on:
        on.loop.past.listed = (past(), older())
        await on.press("5")
        newest, stopped = on.table("#runs")
        assert newest == [
            *("2023-11-14 22:13:10", "done", "4/4", "33.5 MB"),
            *("net_out 200% → 2%, 2%", "10.0 s", "3cc54011fae8", "ann"),
        ]
        assert stopped[1:3] == ["stopped", "1/4"]
        assert stopped[4] == "-", "its plan does not tell what partitions weigh"
        assert stopped[-1] == "not known"


async def test_without_runs_the_history_says_what_would_bring_some() -> None:
    async with stage(balanced_after_run()) as on:
        await on.press("5")
        assert "No run was made on this cluster" in on.words(".note")


async def test_a_run_that_ends_comes_into_the_history() -> None:
    async with stage(running(), running=True) as on:
        await on.press("5")
        assert on.table("#runs") == []
        on.loop.past.listed = (past(),)
        await on.show(balanced_after_run())
        await on.settle()  # The journals are read once the view has come.
        assert len(on.table("#runs")) == 1


async def test_enter_replays_a_run_and_the_arrows_go_back_and_forth() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.past.listed = (past(),)
        on.loop.past.replayed = replay()
        await on.press("5")
        await on.press("enter")
        await on.settle()
        assert isinstance(on.app.screen, ReplayScreen)

        def shown() -> str:
            return str(on.app.screen.query_one("#figures", Static).render())

        assert "PAST" in shown()
        assert "STOPPED" in shown()
        assert "because: stopped by ann" in shown()
        await on.press("left", "left")
        assert "PAUSED  1 of 4 moves  1 under way" in shown()
        await on.press("left", "left", "left", "left", "left")
        assert "0 of 4 moves" in shown()
        assert "record 1 of 7" in shown()
        await on.press("right")
        assert "1 under way" in shown()
        await on.press("escape")
        assert len(on.app.screen_stack) == 1
        assert on.app.current_mode == "history"


async def test_a_journal_that_cannot_be_read_is_named() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.past.listed = (past(),)
        await on.press("5")
        await on.press("enter")
        assert f"cannot read the journal of {RUN_ID}" in _said(on)


async def test_the_run_under_the_cursor_is_rolled_back() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.past.listed = (past(), older())
        on.loop.past.back = (plan(), [])
        await on.press("5")
        await on.press("down", "B")
        await on.settle()
        assert isinstance(on.app.screen, RollBackScreen)
        title = on.app.screen.query(".title").first(Static)
        assert older().run_id in str(title.render())


async def test_a_recording_is_marked_and_nothing_can_be_asked_of_it() -> None:
    async with stage(replace(running(), mode=Mode.RECORDING), running=True) as on:
        assert "RECORDING" in on.header
        for action in ACTIONS:
            words = refusal(action, on.app.moment)
            assert words == "this is a recording: what it shows has been"

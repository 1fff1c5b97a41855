"""Runs controlled and rolled back from the screen: questions and requests."""

from dataclasses import replace

from textual.widgets import Button, Input, Static

from control.loop.view import LogLine, Mode, Phase
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


def _notifications(on: Stage) -> str:
    return " ".join(n.message for n in on.app._notifications)


async def _on_roll_back(on: Stage) -> None:
    await on.press("3", "B")
    await on.settle()
    assert isinstance(on.app.screen, RollBackScreen)


async def test_a_run_that_could_not_start_is_explained_in_a_notification() -> None:
    reason = LogLine(at_ms=AT_MS, level="error", text="no plan: A throttle is too low")
    over = replace(solving(), log=(reason,))
    async with stage(plan_ready()) as on:
        await on.show(running(), running=True)
        assert _notifications(on) == ""
        await on.show(over, running=False)
        await on.show(over, running=False)
        assert _notifications(on) == reason.text


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


async def test_an_interrupted_run_is_resumed_after_a_confirmation() -> None:
    async with stage(plan_ready()) as on:
        on.loop.previous_runs.interrupted = past(RunState.INTERRUPTED)
        await on.show(plan_ready())
        await on.press("3")
        assert "plimsoll ended during this run" in on.words("#figures")
        await on.press("R", "enter")
        assert on.loop.previous_runs.resumed == []
        await on.press("R", "tab", "enter")
        assert on.loop.previous_runs.resumed == [USER]


async def test_without_an_unfinished_run_resume_is_greyed_with_the_reason() -> None:
    async with stage(balanced_after_run()) as on:
        await on.press("3")
        bound = on.app.screen.active_bindings["R"]
        assert not bound.enabled
        assert bound.tooltip == "no run is unfinished"
        stopped = replace(balanced_after_run(), run=progress(RunState.STOPPED))
        await on.show(stopped)
        assert on.app.screen.active_bindings["R"].enabled


async def test_an_aborted_run_with_nothing_left_to_do_cannot_be_resumed() -> None:
    ended = tuple(
        replace(m, state=MoveState.DROPPED) if m.state is not MoveState.DONE else m
        for m in progress().moves
    )
    aborted = replace(progress(RunState.STOPPED), moves=ended)
    async with stage(replace(balanced_after_run(), run=aborted)) as on:
        await on.press("3", "R")
        assert len(on.app.screen_stack) == 1
        bound = on.app.screen.active_bindings["R"]
        assert bound.tooltip == "no run is unfinished"
        failed = replace(aborted, state=RunState.FAILED)
        await on.show(replace(balanced_after_run(), run=failed))
        assert on.app.screen.active_bindings["R"].enabled


async def test_read_only_mode_refuses_to_resume_or_roll_back() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        on.loop.previous_runs.interrupted = past(RunState.INTERRUPTED)
        on.loop.previous_runs.listed = (past(),)
        on.loop.previous_runs.back = (plan(), [])
        await on.show(plan_ready(Mode.READ_ONLY))
        for screen in "35":
            await on.press(screen, "R", "B")
            await on.settle()
            assert len(on.app.screen_stack) == 1
            bound = on.app.screen.active_bindings["B"]
            assert not bound.enabled
            assert "--allow-changes" in bound.tooltip
        assert on.loop.previous_runs.resumed == []


async def test_a_refusal_to_resume_is_shown() -> None:
    async with stage(plan_ready()) as on:
        on.loop.previous_runs.interrupted = past(RunState.INTERRUPTED)
        on.loop.previous_runs.refuses = GuardrailRefused("a run is in progress; wait for its end")
        await on.show(plan_ready())
        await on.press("3", "R", "tab", "enter")
        assert "a run is in progress; wait for its end" in _notifications(on)


async def test_the_run_shown_is_rolled_back_for_the_typed_name_by_the_plan_shown() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.back = (plan(), ["orders-7 was deleted"])
        await _on_roll_back(on)
        message = "\n".join(str(w.render()) for w in on.app.screen.query("Static, Label"))
        assert f"Roll back run {RUN_ID}?" in message
        assert "4 moves, 4 leader changes, 33.5 MB to copy" in message
        assert "Left alone: orders-7 was deleted" in message
        await on.press("escape")
        await _on_roll_back(on)
        await on.press(*"prod", "enter")
        assert on.app.screen.query_one("#yes", Button).disabled
        on.app.screen.query_one(Input).value = NAME
        assert on.loop.previous_runs.rolled_back == []
        await on.press("enter")
        assert on.loop.previous_runs.rolled_back == [(plan().hash, USER)]
        assert len(on.app.screen_stack) == 1


async def test_a_rollback_is_estimated_and_refused_as_its_run_would_be() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.back = (plan(), [])
        await _on_roll_back(on)
        takes = str(on.app.screen.query_one("#takes", Static).render())
        assert "duration: about 75.0 s" in takes
        await on.press("escape")
        on.loop.forecast = GuardrailRefused("another rebalancer is active")
        await _on_roll_back(on)
        await on.press(*NAME, "enter")
        refused = str(on.app.screen.query_one("#refused", Static).render())
        assert refused == "This plan cannot start now: another rebalancer is active"
        assert on.loop.previous_runs.rolled_back == []


async def test_no_plan_is_approved_while_the_cluster_is_out_of_reach() -> None:
    async with stage(replace(plan_ready(), phase=Phase.UNREACHABLE)) as on:
        await on.press("A")
        assert _notifications(on) == "the cluster cannot be reached; wait until it can"
        assert len(on.app.screen_stack) == 1


async def test_b_rolls_back_on_the_overview_as_well() -> None:
    async with stage(plan_ready()) as on:
        await on.press("B")
        assert _notifications(on) == "there is no run to roll back"
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.back = (plan(), [])
        await on.press("B")
        await on.settle()
        assert isinstance(on.app.screen, RollBackScreen)


async def test_a_key_of_another_screen_names_that_screen() -> None:
    async with stage(plan_ready()) as on:
        await on.press("d")
        assert _notifications(on) == "d (Remove) is a key of the plan screen, which 2 opens"
        await on.press("6", "C")
        assert "C (Cancel task) is a key of the tasks screen, which 7 opens" in _notifications(on)


async def test_escape_does_not_roll_back_and_a_refusal_is_a_sentence() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.back = (plan(), [])
        await _on_roll_back(on)
        await on.press("escape")
        assert on.loop.previous_runs.rolled_back == []
        on.loop.previous_runs.refuses = GuardrailRefused("a run is in progress")
        await _on_roll_back(on)
        await on.press(*NAME, "enter")
        refused = on.app.screen.query_one("#refused", Static)
        assert str(refused.render()) == "Not rolled back: a run is in progress."


async def test_a_run_that_cannot_be_rolled_back_is_explained() -> None:
    async with stage(balanced_after_run()) as on:
        for back, message in (
            (GuardrailRefused("orders-0 is still being moved"), "still being moved"),
            ((plan().model_copy(update={"moves": ()}), []), "nothing to roll back"),
        ):
            on.loop.previous_runs.back = back
            await on.press("3", "B")
            await on.settle()
            assert message in _notifications(on)
            assert len(on.app.screen_stack) == 1


# ---- history


async def test_runs_are_listed_with_planned_and_achieved_imbalance() -> None:
    async with stage(balanced_after_run(), size=(140, 30)) as on:
        on.loop.previous_runs.listed = (past(), older())
        await on.press("5")
        newest, stopped = on.table("#runs")
        assert newest == [
            *("2023-11-14 22:13:10", "done", "4/4", "33.5 MB"),
            *("out 200% → 2%, 2%", "10.0 s", "3cc54011fae8", "ann"),
        ]
        assert stopped[1:3] == ["stopped", "1/4"]
        assert stopped[4] == "-", "its plan does not tell what partitions weigh"
        assert stopped[-1] == "unknown"


async def test_an_empty_history_is_explained() -> None:
    async with stage(balanced_after_run()) as on:
        await on.press("5")
        assert "No run of this cluster is recorded" in on.words(".note")
        await on.press("enter", "B")
        assert [n.message for n in on.app._notifications] == [
            "there is nothing to open",
            "there is no run to roll back",
        ]


async def test_a_run_that_ends_appears_in_the_history() -> None:
    async with stage(running(), running=True) as on:
        await on.press("5")
        assert on.table("#runs") == []
        on.loop.previous_runs.listed = (past(),)
        await on.show(balanced_after_run())
        await on.settle()  # The journals are read once the view has come.
        assert len(on.table("#runs")) == 1


async def test_enter_replays_a_run_and_the_arrows_step_through_it() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.listed = (past(),)
        on.loop.previous_runs.replayed = replay()
        await on.press("5")
        await on.press("enter")
        await on.settle()
        assert isinstance(on.app.screen, ReplayScreen)

        def shown() -> str:
            return str(on.app.screen.query_one("#figures", Static).render())

        assert "REPLAY" in shown()
        assert "STOPPED" in shown()
        assert "reason: stopped by ann" in shown()
        await on.press("left", "left")
        assert "PAUSED  1 of 4 moves  1 in flight" in shown()
        await on.press("left", "left", "left", "left", "left")
        assert "0 of 4 moves" in shown()
        assert "record 1 of 7" in shown()
        await on.press("right")
        assert "1 in flight" in shown()
        await on.press("escape")
        assert len(on.app.screen_stack) == 1
        assert on.app.current_mode == "history"


async def test_a_journal_that_cannot_be_read_is_named() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.listed = (past(),)
        await on.press("5")
        await on.press("enter")
        assert f"cannot read the journal of {RUN_ID}" in _notifications(on)


async def test_the_run_under_the_cursor_is_rolled_back() -> None:
    async with stage(balanced_after_run()) as on:
        on.loop.previous_runs.listed = (past(), older())
        on.loop.previous_runs.back = (plan(), [])
        await on.press("5")
        await on.press("down", "B")
        await on.settle()
        assert isinstance(on.app.screen, RollBackScreen)
        title = on.app.screen.query(".title").first(Static)
        assert older().run_id in str(title.render())


async def test_a_recording_is_marked_and_accepts_no_requests() -> None:
    async with stage(replace(running(), mode=Mode.RECORDING), running=True) as on:
        assert "RECORDING" in on.header
        for action in ACTIONS:
            message = refusal(action, on.app.moment)
            assert message == "this is a recording; it cannot be changed"

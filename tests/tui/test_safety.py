"""Only a plan that was shown, confirmed and named is executed."""

from dataclasses import replace

import pytest
from textual.widget import Widget
from textual.widgets import Button

from control.loop.view import LoopView, Mode
from model.errors import ClusterUnreachable, GuardrailRefused, PlanOutdated, PlimsollError
from tests.support.tui.app_harness import USER, Stage, stage
from tests.support.tui.loop_views import (
    HASH,
    NAME,
    NEWER_HASH,
    failed,
    plan,
    plan_ready,
    running,
    skewed,
    solving,
)
from tui.screens.question import Question

KEYS = ["A", "a", "r", "X", "P", "enter", "y", "space"]


async def _type_name(on: Stage) -> None:
    on.name.value = NAME
    await on.pilot.pause()


async def test_read_only_no_key_and_no_action_reaches_approve() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        for key in KEYS:
            # Enter may open a list, and again a move of it.
            await on.pilot.press(key, "enter", "escape", "escape")
        await on.press("A", *NAME, "enter")
        await on.press("escape")
        on.app.action_approve()
        on.app.action_stop_run()
        on.app.action_pause_run()
        await on.settle()
        assert len(on.app.screen_stack) == 1
        assert on.loop.approved == []
        assert not on.loop.steering.stopping.is_set()
        assert not on.loop.steering.paused


async def test_the_palette_offers_only_allowed_actions() -> None:
    async with stage(plan_ready()) as on:
        for view, titles in (
            (plan_ready(Mode.READ_ONLY), {"Replan"}),
            (plan_ready(), {"Replan", "Approve"}),
            (running(), {"Stop run", "Pause", "Throttle"}),
            (failed(), set()),
        ):
            await on.show(view)
            offered = {c.title for c in on.app.get_system_commands(on.app.screen)}
            ours = {"Replan", "Approve", "Stop run", "Pause", "Throttle"}
            assert offered & ours == titles


async def test_read_only_keys_are_greyed_with_the_reason() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        for key in ("A", "X"):
            bound = on.app.screen.active_bindings[key]
            assert not bound.enabled
            assert "--allow-changes" in bound.tooltip


@pytest.mark.parametrize(
    ("mode", "keys", "reason"),
    [
        (Mode.READ_ONLY, ("A",), "start it with --allow-changes"),
        (Mode.APPROVE, ("P",), "no run is in progress"),
        (Mode.APPROVE, ("3", "T"), "no run is in progress"),
        (Mode.APPROVE, ("2", "u"), "there is no request to undo"),
    ],
)
async def test_pressing_a_greyed_key_shows_the_reason_once(
    mode: Mode, keys: tuple[str, ...], reason: str
) -> None:
    async with stage(plan_ready(mode)) as on:
        await on.press(*keys)
        (answer,) = on.app._notifications
        assert reason in answer.message
        assert len(on.app.screen_stack) == 1


async def test_a_key_typed_ahead_into_the_dialog_approves_nothing() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", "enter", "space", "y", "enter")
        assert on.loop.approved == []
        assert len(on.app.screen_stack) == 2
        await on.press("escape")
        assert len(on.app.screen_stack) == 1


async def test_a_wrong_name_leaves_the_button_dead() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A")
        for name in ("dem", "Demo", "demo ", "demos", "prod"):
            on.name.value = name
            await on.pilot.pause()
            assert not on.can_confirm()
            await on.pilot.press("enter", "enter")
        await on.press("tab", "tab", "enter")
        assert on.loop.approved == []


async def test_enter_on_a_wrong_name_is_refused() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", *NAME[:-1], "enter")
        reported = [toast.message for toast in on.app._notifications]
        assert reported == ["This is not the cluster's name."]


async def test_no_confirmation_is_accepted_on_a_terminal_too_small() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", *NAME)
        await on.pilot.resize_terminal(20, 5)
        await on.settle()
        assert on.app.screen.query_one("#too-small").region.size == (20, 5)
        await on.press("enter")
        assert on.loop.approved == []
        await on.pilot.resize_terminal(80, 24)
        await on.settle()
        await on.press("enter")
        assert on.loop.approved == [(HASH, USER)]


@pytest.mark.parametrize("key", ["X", "q"])
async def test_a_covered_dialog_does_not_stop_the_run(key: str) -> None:
    async with stage(running()) as on:
        on.loop.running = True
        await on.press(key)
        await on.pilot.resize_terminal(20, 5)
        await on.settle()
        await on.press("tab", "enter")
        assert not on.loop.steering.stopping.is_set()
        await on.press("escape")
        assert len(on.app.screen_stack) == 1


async def test_a_cluster_without_a_name_cannot_be_confirmed_by_name() -> None:
    async with stage(replace(plan_ready(), cluster_name="")) as on:
        await on.press("A", "enter")
        assert not on.can_confirm()


async def test_the_right_name_approves_exactly_the_plan_shown() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", *NAME)
        assert on.can_confirm()
        await on.press("enter")
        assert on.loop.approved == [(HASH, USER)]
        assert len(on.app.screen_stack) == 1


async def test_a_letter_taken_back_disarms_the_button_and_escape_is_always_no() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A")
        await _type_name(on)
        await on.press("backspace")
        assert not on.can_confirm()
        await on.press(NAME[-1])
        assert on.can_confirm()
        await on.press("escape")
        assert on.loop.approved == []
        assert len(on.app.screen_stack) == 1


async def test_a_replaced_plan_is_not_approved_and_the_dialog_explains_it() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A")
        await _type_name(on)
        await on.show(plan_ready(of=plan(NEWER_HASH)))
        assert not on.can_confirm()
        refused = str(on.asking.query_one("#refused").render())
        assert f"A newer plan, {NEWER_HASH[:12]}" in refused
        await on.press("enter", "tab", "tab", "enter")
        assert on.loop.approved == []


async def test_a_plan_that_was_replaced_cannot_be_approved_when_it_returns() -> None:
    """A plan reported as replaced must be reviewed again when it returns."""
    async with stage(plan_ready()) as on:
        await on.press("A")
        await _type_name(on)
        await on.show(replace(plan_ready(), message="the same again"))
        assert on.can_confirm()
        await on.show(solving())
        await on.show(plan_ready())
        assert not on.can_confirm()


async def test_a_refusal_of_the_loop_is_a_sentence_and_nothing_typed_is_lost() -> None:
    async with stage(plan_ready()) as on:
        on.loop.refuses = GuardrailRefused("a run is in progress; wait for its end or stop it")
        await on.press("A")
        await _type_name(on)
        await on.press("enter")
        refused = on.asking.query_one("#refused")
        assert "a run is in progress; wait for its end" in str(refused.render())
        assert refused.display
        assert on.name.value == NAME
        assert on.can_confirm()


async def test_stop_asks_and_does_nothing_unless_confirmed() -> None:
    async with stage(running(), running=True) as on:
        await on.press("X", "enter")
        assert not on.loop.steering.stopping.is_set()
        await on.press("X", "escape")
        assert not on.loop.steering.stopping.is_set()
        await on.press("X", "tab", "enter")
        assert on.loop.steering.stopping.is_set()


async def test_stop_again_asks_and_aborts() -> None:
    async with stage(running(), running=True) as on:
        await on.press("X", "tab", "enter", "X")
        labels = [str(b.label) for b in on.app.screen.query(Button)]
        assert labels == ["Keep running", "Cancel in-flight moves"]
        await on.press("enter")
        assert not on.loop.steering.aborting
        await on.press("X", "tab", "enter")
        assert on.loop.steering.aborting


async def test_on_the_smallest_terminal_questions_of_a_run_show_title_and_buttons_in_full() -> None:
    async with stage(running(), size=(60, 16), running=True) as on:
        await on.press("3", "X")
        _assert_in_full(on)
        await on.press("tab", "enter", "X")
        _assert_in_full(on)
        await on.press("escape", "q")
        _assert_in_full(on)
        await on.press("escape", "T")
        _assert_in_full(on)
        await on.press("x")
        _assert_in_full(on)


def _assert_in_full(on: Stage) -> None:
    """Whether all of the dialog is in its frame, and each label in its button."""
    dialog = on.app.screen.query_one(".dialog")
    for inside in dialog.walk_children(Widget):
        if inside.display:
            assert dialog.content_region.contains_region(inside.region), inside
    for button in on.app.screen.query(Button):
        assert len(str(button.label)) <= button.content_size.width


async def test_the_same_key_pauses_and_resumes_a_run() -> None:
    async with stage(running(), running=True) as on:
        await on.press("P")
        assert on.loop.steering.paused
        await on.press("P")
        assert not on.loop.steering.paused


async def test_a_paused_run_offers_to_resume() -> None:
    async with stage(running(), running=True) as on:
        await on.press("3")
        assert not on.app.screen.active_bindings["R"].enabled
        await on.press("P")
        offered = on.app.screen.active_bindings
        assert offered["R"].enabled
        assert offered["R"].binding.description == "Resume"
        assert not offered["P"].binding.show
        await on.press("R")
        assert not on.loop.steering.paused
        assert len(on.app.screen_stack) == 1
        assert not on.app.screen.active_bindings["R"].enabled


async def test_quitting_during_a_run_asks_first() -> None:
    async with stage(running(), running=True) as on:
        await on.press("q")
        assert isinstance(on.app.screen, Question)
        await on.press("enter")
        assert not on.loop.steering.stopping.is_set()
        assert on.app.is_running


async def test_quitting_stops_the_run_and_ends_when_it_has_stopped() -> None:
    async with stage(running(), running=True) as on:
        await on.press("q", "tab", "enter")
        assert on.loop.steering.stopping.is_set()
        # The process ends, but no person stopped the run: its task is continued.
        assert on.loop.steering.leaving
        assert "quitting once the run has stopped" in on.header
        assert on.app.is_running
        await on.show(solving(), running=False)
        assert not on.app.is_running


async def test_quitting_a_recording_of_a_run_needs_no_confirmation() -> None:
    recorded = replace(running(), mode=Mode.RECORDING)
    async with stage(recorded, running=True) as on:
        await on.press("q")
        assert not on.app.is_running
        assert on.app.return_code == 0
        assert not on.loop.steering.stopping.is_set()


@pytest.mark.parametrize(("key", "view"), [("q", failed()), ("ctrl+c", plan_ready())])
async def test_without_a_run_quit_is_immediate(key: str, view: LoopView) -> None:
    async with stage(view) as on:
        await on.press(key)
        assert not on.app.is_running
        assert on.app.return_code == 0
        assert on.app.ended_by is None


async def test_r_replans_except_during_a_run() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        await on.press("r")
        assert on.loop.plans_wanted == 1
        await on.show(running(), running=True)
        await on.press("r")
        assert on.loop.plans_wanted == 1


async def test_the_dialog_describes_the_plan_and_waits_for_the_name() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A")
        assert on.app.focused is on.name
        text = "\n".join(str(w.render()) for w in on.asking.query("Static, Label"))
        for message in (
            HASH[:12],
            "4 moves, 4 leader changes, 33.5 MB to copy",
            "1: 4 outgoing; 2: 2 incoming; 3: 2 incoming",
            f"cluster: {NAME}, id {skewed().header.cluster_id}",
        ):
            assert message in text


async def test_the_dialog_shows_duration_peak_disk_use_and_deviation() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A")
        text = "\n".join(str(w.render()) for w in on.asking.query("Static, Label"))
        for message in (
            "duration: about 75.0 s",
            "peak disk use: broker 2 +18.0 MB of 50.0 GB free, broker 3 +7 B",
            "largest deviation: in 200% → ",
            "peak extra traffic: none",
            "throttle: none",
            "competing rebalancers: none found",
            "stops on: a lost broker",
        ):
            assert message in text


@pytest.mark.parametrize(
    "reason",
    [
        GuardrailRefused("Confluent's Self-Balancing is on"),
        PlanOutdated("The cluster has changed since the plan was made"),
    ],
)
async def test_a_plan_that_cannot_start_is_refused_before_it_is_approved(
    reason: PlimsollError,
) -> None:
    async with stage(plan_ready()) as on:
        on.loop.forecast = reason
        await on.press("A", *NAME, "enter")
        assert str(reason) in str(on.asking.query_one("#refused").render())
        assert on.loop.approved == []
        assert not on.app._notifications


async def test_without_a_forecast_a_plan_can_still_be_approved() -> None:
    async with stage(plan_ready()) as on:
        on.loop.forecast = ClusterUnreachable("broker 1 does not answer")
        await on.press("A")
        assert "unknown" in str(on.asking.query_one("#takes").render())
        await on.press(*NAME, "enter")
        assert on.loop.approved == [(HASH, USER)]


async def test_keys_typed_after_the_one_that_leaves_do_nothing() -> None:
    async with stage(plan_ready()) as on:
        await on.pilot.press("q", "3", "A", "2")
        assert on.app.return_code == 0
        assert on.app.current_mode == "overview"


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (110, 40)])
@pytest.mark.parametrize("sentence", ["", "Not approved: " + "so many words " * 40])
async def test_the_field_and_the_first_lines_are_visible(
    size: tuple[int, int], sentence: str
) -> None:
    async with stage(plan_ready(), size=size) as on:
        await on.press("A")
        await on.pilot.resize_terminal(60, 16)
        await on.settle()
        on.asking.say(sentence)
        await on.settle()
        assert on.app.focused is on.name
        drawn = _drawn(on)
        assert "the cluster's name" in drawn
        assert "Approve and run" in drawn
        assert ("Not approved" if sentence else "4 moves") in drawn


def _drawn(on: Stage) -> str:
    strips = on.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in strips)


async def test_nothing_is_approved_before_all_of_it_was_visible() -> None:
    async with stage(plan_ready(), size=(60, 16)) as on:
        await on.press("A", *NAME, "enter")
        assert "more below: page down" in _drawn(on)
        assert not on.can_confirm()
        assert on.loop.approved == []
        seen = _drawn(on)
        for _ in range(3):
            await on.press("pagedown")
            seen += _drawn(on)
        for words in ("duration:", "peak disk use", "throttle", "stops on", "brokers:", "id MkU3"):
            assert words in seen
        assert "more below" not in _drawn(on)
        await on.press("enter")
        assert on.loop.approved == [(HASH, USER)]


async def test_where_all_is_visible_one_enter_approves() -> None:
    async with stage(plan_ready(), size=(80, 30)) as on:
        await on.press("A")
        assert "more below" not in _drawn(on)
        await on.press(*NAME, "enter")
        assert on.loop.approved == [(HASH, USER)]

"""The seven screens and switching between them."""

import pytest

from control.loop.view import Mode
from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import CONNECTING, HASH, NAME, plan_ready, running
from tui.screens.approve import ApproveScreen
from tui.screens.base import LiveScreen
from tui.screens.question import Question
from tui.viewmodel.modes import MODES
from tui.widgets.mode_bar import ModeBar


async def test_each_digit_opens_its_screen_and_escape_the_overview() -> None:
    async with stage(plan_ready()) as on:
        for number, mode in enumerate(MODES, 1):
            await on.press(str(number))
            assert on.app.current_mode == mode.name
            await on.press("escape")
            assert on.app.current_mode == "overview"


async def test_minus_goes_back_and_forth_between_two_screens() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "6", "minus")
        assert on.app.current_mode == "plan"
        await on.press("minus")
        assert on.app.current_mode == "log"


async def test_the_bar_names_the_screens_with_their_keys_and_a_click_opens_one() -> None:
    async with stage(plan_ready()) as on:
        bar = on.app.screen.query_one(ModeBar)
        text = str(bar.render())
        names = [part for i, mode in enumerate(MODES, 1) for part in (str(i), mode.title)]
        # After them the path to what is open.
        assert text.split() == [*names, *[">", "broker", "1"]]
        await on.pilot.click(ModeBar, offset=(text.index("Topics"), 0))
        await on.settle()
        assert on.app.current_mode == "topics"


async def test_a_screen_shows_the_latest_view_when_opened() -> None:
    async with stage(CONNECTING) as on:
        await on.press("2", "1")
        await on.show(plan_ready())
        await on.press("2")
        assert len(on.table("#moves")) == 4
        assert "PLAN READY" in on.header


@pytest.mark.parametrize("key", [str(n) for n in range(1, 8)])
async def test_approval_stop_and_pause_work_on_every_screen(key: str) -> None:
    async with stage(plan_ready()) as on:
        await on.press(key, "A", *NAME, "enter")
        assert [hash_ for hash_, _ in on.loop.approved] == [HASH]
        await on.show(running(), running=True)
        await on.press("P")
        assert on.loop.steering.paused
        await on.press("X")
        assert isinstance(on.app.screen, Question)


async def test_keys_of_screens_do_nothing_under_a_question() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A", "2", "minus")
        assert on.app.current_mode == "overview"
        assert isinstance(on.app.screen, ApproveScreen)


async def test_read_only_holds_on_every_screen() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        for number in range(1, 8):
            await on.press(str(number), "A", "X", "P")
            assert len(on.app.screen_stack) == 1
            assert not on.app.screen.active_bindings["A"].enabled


async def test_the_palette_opens_every_screen() -> None:
    async with stage(plan_ready()) as on:
        commands = {c.title: c for c in on.app.get_system_commands(on.app.screen)}
        assert {mode.title for mode in MODES} <= set(commands)
        await commands["Log"].callback()
        await on.settle()
        assert on.app.current_mode == "log"


async def test_the_palette_lists_the_actions_of_the_keys() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2")
        commands = {c.title: c for c in on.app.get_system_commands(on.app.screen)}
        keyed = {"Remove", "Pin", "Goals", "Frontier", "What-if", "Export", "Copy"}
        assert keyed | {"Filter", "Sort", "Freeze", "Approve"} <= set(commands)
        assert not {"Undo", "Stop run", "Resume"} & set(commands)
        assert commands["Frontier"].help.startswith("f  ")
        await on.press("ctrl+p", *"freeze", "enter")
        assert isinstance(on.app.screen, LiveScreen)
        assert on.app.screen.frozen

"""The keys at the bottom."""

import pytest

from control.loop.view import Mode
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import plan_ready, running
from tests.support.tui.plan_views import with_frontier
from tui.app import PlimsollApp
from tui.themes import ascii_text
from tui.widgets.key_bar import KeyBar

SIZE = 200, 40


def _bar(on: Stage) -> KeyBar:
    return on.app.screen.query_one(KeyBar)


def _words(on: Stage) -> str:
    return _bar(on).render_line(0).text


async def _click(on: Stage, message: str) -> None:
    await on.pilot.click(KeyBar, offset=(_words(on).index(message), 0))
    await on.settle()


async def test_a_click_on_a_key_presses_it() -> None:
    async with stage(plan_ready(), size=SIZE) as on:
        await _click(on, "Help")
        assert on.app.screen.query("HelpPanel")


async def test_a_click_on_the_palette_opens_it_where_keys_do_not_fit() -> None:
    async with stage(plan_ready(), size=(90, 24)) as on:
        assert "? more" in _words(on)
        await _click(on, "palette")
        assert on.app.screen.is_modal


async def test_a_greyed_key_explains_itself_and_is_not_pressed() -> None:
    async with stage(plan_ready(Mode.READ_ONLY), size=SIZE) as on:
        await on.pilot.hover(KeyBar, offset=(_words(on).index("Approve"), 0))
        await on.settle()
        assert "--allow-changes" in str(_bar(on).tooltip)
        await _click(on, "Approve")
        assert not on.app.screen.is_modal


async def test_clicks_beside_the_keys_do_nothing() -> None:
    async with stage(plan_ready(), size=SIZE) as on:
        screen = on.app.screen
        await on.pilot.click(KeyBar, offset=(SIZE[0] - 15, 0))
        await on.settle()
        assert on.app.screen is screen
        assert _bar(on).tooltip is None


async def test_the_keys_are_those_of_what_has_the_focus() -> None:
    async with stage(plan_ready(), size=SIZE) as on:
        assert "Sort" in _words(on)
        await on.press("tab")
        assert "Sort" not in _words(on)


async def test_greyed_keys_are_omitted_if_not_all_fit() -> None:
    async with stage(running(), size=(80, 24), running=True) as on:
        await on.press("3")
        assert "P Pause T Throttle X Stop run ? more q Quit" in _words(on)
        assert "Approve" not in _words(on)
    async with stage(running(), size=SIZE, running=True) as on:
        await on.press("3")
        assert "Approve" in _words(on)


@pytest.mark.parametrize("columns", [60, 71, 80, 86, 90, 104])
@pytest.mark.slow
async def test_no_key_is_cut_and_the_important_ones_stay(columns: int) -> None:
    async with stage(with_frontier(), size=(columns, 24)) as on:
        for mode in PlimsollApp.MODES:
            on.app.action_show_mode(mode)
            await on.settle()
            _check_keys(on)


def _check_keys(on: Stage) -> None:
    line = _words(on)
    bindings = {found.binding for found in on.app.screen.active_bindings.values()}
    whole = {f"{on.app.get_key_display(b)} {b.description}" for b in bindings} | {"? more"}
    left, *palette = line.split("▏")
    while left := left.rstrip():
        key = max((key for key in whole if left.endswith(key)), key=len, default=None)
        assert key is not None, line
        left = left.removesuffix(key)
    assert palette in ([], ["^p palette "])
    assert all(key in line for key in ("A Approve", "r Replan", "q Quit"))
    assert ("? Help" in line) != ("? more" in line)


async def test_in_ascii_only_the_key_of_the_help_is_a_question_mark() -> None:
    async with stage(with_frontier(), size=SIZE) as on:
        await on.press("2", "f")
        assert "enter Use point" in _words(on)
        for mode in PlimsollApp.MODES:
            on.app.action_show_mode(mode)
            await on.settle()
            assert ascii_text(_words(on)).count("?") == 1, mode


async def test_the_help_names_the_enter_key_also_in_ascii() -> None:
    async with stage(plan_ready(), size=SIZE) as on:
        await on.press("2", "question_mark")
        assert "enter Open" in ascii_text(" ".join(on.help.split()))
        assert "the other moves are kept" in " ".join(on.help.split())

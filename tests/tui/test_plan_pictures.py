"""Pictures of the plan screen; `--snapshot-update` draws them again."""

import re
from html import escape

from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input

from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import NAME, plan_ready
from tests.support.tui.plan_views import (
    STATES,
    asked,
    leaving_faults,
    loaded_plan,
    what_if,
    with_frontier,
)
from tests.tui.test_pictures import picture, picture_of
from tui.themes import ascii_text

__all__ = ["picture"]


async def test_states_of_the_plan(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2")
        for name, view in STATES.items():
            await on.show(view)
            assert await picture_of(on) == picture(name=name)


async def test_the_frontier_in_blocks_and_in_ascii(picture: SnapshotAssertion) -> None:
    async with stage(with_frontier(), size=(120, 40)) as on:
        await on.press("2", "f", "left")
        assert await picture_of(on) == picture(name="blocks")
        assert _in_ascii(await picture_of(on)) == picture(name="ascii")


def _in_ascii(svg: str) -> str:
    """The picture drawn with `--ascii`; a `<` that was an arrow is escaped."""
    return re.sub(
        r"[^\x00-\x7f]+", lambda part: escape(ascii_text(part[0])), svg.replace("\u00a0", " ")
    )


async def test_the_overview_beside_a_what_if(picture: SnapshotAssertion) -> None:
    async with stage(what_if(), size=(120, 40)) as on:
        assert await picture_of(on) == picture


async def test_overlays_of_the_plan_screen(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(of=loaded_plan()), size=(120, 40)) as on:
        await on.press("2", "enter")
        assert await picture_of(on) == picture(name="move")
        await on.press("escape", "g")
        _still(on.app.screen.query_one(Input))
        assert await picture_of(on) == picture(name="goals")
        await on.press("escape", "w")
        _still(on.app.screen.query_one(Input))
        assert await picture_of(on) == picture(name="what_if")
        await on.press("escape")
        await on.show(asked())
        await on.press("A")
        _still(on.app.screen.query_one(Input))
        await on.press(*NAME)
        assert await picture_of(on) == picture(name="awaiting_approval")


def _still(asked: Input) -> None:
    asked.cursor_blink = False


async def test_violations_after_a_plan_on_a_small_screen(picture: SnapshotAssertion) -> None:
    async with stage(leaving_faults(), size=(80, 24)) as on:
        await on.press("2")
        assert await picture_of(on) == picture

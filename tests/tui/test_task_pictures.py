"""Pictures of the screen of tasks; `--snapshot-update` draws them again."""

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input, Static

from control.tasks.task_listing import TaskListing
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.listed_tasks import every_kind, own, without_archive
from tests.support.tui.loop_views import NAME, plan, plan_ready
from tests.tui.test_pictures import picture, picture_of
from tui.screens.approve import ESTIMATING
from tui.screens.task_plan import TaskPlanScreen
from tui.themes import COLOUR_BLIND, ascii_text

__all__ = ["picture"]

SIZES = [(60, 16), (80, 24), (120, 40), (160, 50)]


async def _show(on: Stage, listed: TaskListing) -> None:
    assert on.loop.tasks is not None
    on.loop.tasks.listed = listed
    await on.press("7")
    await on.settle()


async def _until(on: Stage, fits: Callable[[], bool]) -> None:
    """Wait for what another thread reads or finds; a key pressed before acts on older rows."""
    while not fits():
        await on.pilot.pause(0.01)


async def _plan_is_asked(on: Stage) -> None:
    """Wait until the approval of a task's plan takes keys and shows its estimate."""
    await _until(on, lambda: isinstance(on.app.screen, TaskPlanScreen))
    await _until(on, lambda: isinstance(on.app.focused, Input))
    takes = on.app.screen.query_one("#takes", Static)
    await _until(on, lambda: str(takes.render()) != ESTIMATING)
    on.app.screen.query_one(Input).cursor_blink = False


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_tasks(size: tuple[int, int], picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=size) as on:
        await _show(on, every_kind())
        assert await picture_of(on) == picture(name="tasks")
        await on.press("down", "down", "down", "down", "down", "enter")
        assert await picture_of(on) == picture(name="opened")


@pytest.mark.parametrize("theme", ["textual-light", COLOUR_BLIND.name])
async def test_tasks_in_other_themes(theme: str, picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40), theme=theme) as on:
        await _show(on, every_kind())
        assert await picture_of(on) == picture


async def test_tasks_without_colour_and_in_ascii(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(plan_ready(), size=(80, 24)) as on:
        await _show(on, every_kind())
        found = await picture_of(on)
        assert found == picture(name="without_colour")
        assert ascii_text(found.replace("\u00a0", " ")) == picture(name="ascii")


async def test_no_tasks_and_those_of_a_host_without_its_archive(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(80, 24)) as on:
        await _show(on, TaskListing())
        assert await picture_of(on) == picture(name="none")
    async with stage(plan_ready(), size=(80, 24)) as on:
        await _show(on, without_archive())
        assert await picture_of(on) == picture(name="archive_away")


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_questions_about_a_task(size: tuple[int, int], picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=size) as on:
        await _show(on, own())
        await on.press("C")
        assert await picture_of(on) == picture(name="cancel")
        await on.press("escape")
        await _show(on, every_kind())
        assert on.loop.tasks is not None
        on.loop.tasks.plan = plan()
        await on.press("1", "7")
        await _until(on, lambda: len(on.table("#tasks")) > len(own().tasks))
        await on.press(*["down"] * 3, "R")
        await _plan_is_asked(on)
        await on.press(*NAME)
        assert await picture_of(on) == picture(name="approve")


@pytest.mark.parametrize("size", SIZES[:3], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_requests_for_a_broker(size: tuple[int, int], picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=size) as on:
        await on.press("o")
        assert await picture_of(on) == picture(name="menu")
        await on.press("enter")
        await _plan_is_asked(on)
        on.app.clear_notifications()
        assert await picture_of(on) == picture(name="plan")

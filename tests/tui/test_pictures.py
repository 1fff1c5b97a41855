"""Pictures of the screen in each state; `--snapshot-update` draws them anew."""

import re

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension
from textual.widgets import Input

from control.view import LoopView, Mode
from tests.tui.stage import Stage, stage
from tests.tui.views import (
    CONNECTING,
    NAME,
    UNREACHABLE,
    failed,
    level_after_run,
    measuring,
    plan_ready,
    running,
)

STATES = {
    "connecting": CONNECTING,
    "unreachable": UNREACHABLE,
    "measuring": measuring(),
    "plan_ready": plan_ready(),
    "read_only": plan_ready(Mode.READ_ONLY),
    "level_after_run": level_after_run(),
    "failed": failed(),
}


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(SVGImageSnapshotExtension)


def _drawn(on: Stage) -> str:
    """The picture, with a fixed prefix in place of one that its content gives."""
    return re.sub(r"terminal-\d+-", "terminal-", on.app.export_screenshot())


@pytest.mark.parametrize("view", STATES.values(), ids=STATES)
async def test_a_state(view: LoopView, picture: SnapshotAssertion) -> None:
    async with stage(view, size=(120, 40)) as on:
        assert _drawn(on) == picture


async def test_running(picture: SnapshotAssertion) -> None:
    async with stage(running(), size=(120, 40), running=True) as on:
        assert _drawn(on) == picture


async def test_approving(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("A")
        on.app.screen.query_one(Input).cursor_blink = False
        await on.press("tab", *NAME)
        assert _drawn(on) == picture


async def test_plan_ready_on_a_small_terminal(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(80, 24)) as on:
        assert _drawn(on) == picture

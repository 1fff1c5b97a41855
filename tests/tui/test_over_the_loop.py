"""The screen over the real loop and solver: from a skewed cluster to one run."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from textual.pilot import Pilot

from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import Mode, Phase
from control.settings.auto_limits import EAGER
from model.errors import PlimsollError
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from solver.solve import solve
from tests.support.control.loop_parts import (
    EASY,
    MB,
    WORK,
    CannedObserver,
    RecordingExecutor,
    cluster,
)
from tests.support.tui.terminals import LONG_S
from tui.app import PlimsollApp
from tui.screens.approve import ApproveScreen

LOADS = [2 * MB, 1.5 * MB, 2 * MB, 1.5 * MB, 2 * MB, 1 * MB]


def _loop(executor: RecordingExecutor, journal_dir: Path) -> Loop:
    snapshots: list[Snapshot | PlimsollError] = [cluster([1] * len(LOADS), LOADS)]
    return Loop(
        LoopSettings(
            bootstrap="127.0.0.1:9092",
            name="demo",
            mode=Mode.APPROVE,
            goals=EASY,
            solve=WORK,
            limits=EAGER,
            journal_dir=journal_dir,
            tick_s=0.2,
        ),
        LoopParts(
            observer=lambda: CannedObserver(snapshots), planner=solve, executor=lambda: executor
        ),
    )


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_S):
        while not true():
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def _offered(
    executor: RecordingExecutor, journal_dir: Path
) -> AsyncIterator[tuple[PlimsollApp, Pilot[None], Plan]]:
    """The screen once it offers a plan, and that plan."""
    with _loop(executor, journal_dir) as loop:
        app = PlimsollApp(loop, user="ann", terminal_gone=lambda: False)
        async with app.run_test(size=(120, 40)) as pilot:
            await _until(lambda: app.moment.view.phase is Phase.PLAN_READY)
            plan = app.moment.view.plan
            assert plan is not None
            yield app, pilot, plan


async def _approve(pilot: Pilot[None], executor: RecordingExecutor) -> None:
    await pilot.press("A", *"demo")
    await _until(lambda: isinstance(pilot.app.screen, ApproveScreen) and pilot.app.screen.armed)
    await pilot.press("enter")
    await _until(lambda: bool(executor.plans))


async def test_the_operator_approves_the_plan_shown_and_it_is_executed(tmp_path: Path) -> None:
    executor = RecordingExecutor()
    async with _offered(executor, tmp_path) as (app, pilot, offered):
        await _approve(pilot, executor)
        assert [p.hash for p in executor.plans] == [offered.hash]
        await _until(lambda: not app.moment.running)
        messages = [line.text for line in app.moment.view.log]
        assert f"plan {offered.hash[:12]} approved by ann" in messages


async def test_after_removing_a_move_the_new_plan_is_approved_and_run(tmp_path: Path) -> None:
    executor = RecordingExecutor()
    async with _offered(executor, tmp_path) as (app, pilot, offered):
        await pilot.press("2", "d")
        await _until(lambda: app.moment.view.plan not in (None, offered))
        other = app.moment.view.plan
        assert other is not None
        assert offered.moves[0].id not in [m.id for m in other.moves]
        await _approve(pilot, executor)
        assert executor.plans == [other]


async def test_a_point_of_the_frontier_is_picked_and_run_and_a_what_if_is_not(
    tmp_path: Path,
) -> None:
    executor = RecordingExecutor()
    async with _offered(executor, tmp_path) as (app, pilot, _):
        await pilot.press("2", "w", "tab", "3", "enter")
        await _until(lambda: app.moment.view.proposed.supposed is not None)
        await pilot.press("A", "escape")
        await _until(lambda: app.moment.view.proposed.supposed is None)
        await pilot.press("f")
        await _until(lambda: app.moment.view.proposed.traced is not None)
        await pilot.pause()
        await pilot.press(*["left"] * 9, "right", "enter")
        await _until(lambda: app.moment.view.proposed.asks.cut is not None)
        result = app.moment.view.proposed.traced
        assert result is not None
        picked = result.answers[1]
        assert picked is not None
        assert app.moment.view.plan == picked.best
        await _approve(pilot, executor)
        assert executor.plans == [picked.best]

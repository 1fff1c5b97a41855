"""Pictures of the screens for docs/, taken of the demo on a simulated cluster.

python -P -m benchmarks.pictures
"""

import asyncio
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from benchmarks.picture_faults import write_picture
from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.view import Mode, Phase
from control.settings.settings import Settings
from tests.support.tui.fleets import every_kind, fleet_stage
from tui.app import PlimsollApp
from tui.screens.approve import PlanDialog
from tui.screens.task_plan import TaskPlanScreen
from tui.viewmodel.run.progress import share_done

OUT = Path(__file__).parents[1] / "docs" / "pictures"
SIZE = 120, 36
SEED = 7
START_S = 1_767_603_600.0
"""Monday 2026-01-05, 09:00 UTC."""
LONG_S = 300.0
WATCHED_S = 8.0
"""Of our clock, so that the history of loads has something to show."""
SHOWN_S = 12.0
"""Of our clock, so that the task is read again and its notices are gone."""
SHARE = 0.4
"""How much of the run is done when its picture is taken."""


class Camera:
    """Drives the app by its keys, as a person does."""

    def __init__(self, app: PlimsollApp, pilot: Pilot[None]) -> None:
        self._app = app
        self._pilot = pilot

    async def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONG_S
        while not true():
            if time.monotonic() > deadline:
                sys.exit(f"not reached: {self._app.moment.view.message}")
            await self._pilot.pause(0.1)

    async def take(self, name: str, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause(1.0)
        picture = self._app.export_screenshot(title=f"plimsoll: {name}")
        picture = re.sub(r"terminal-\d+-", "terminal-", picture)
        write_picture(OUT / f"{name}.svg", picture)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause(0.2)


async def _session(app: PlimsollApp, camera: Camera) -> None:
    await camera.until(lambda: app.moment.view.phase is Phase.PLAN_READY)
    await asyncio.sleep(WATCHED_S)
    await camera.take("overview", "1")
    await camera.take("topics", "4")
    await camera.take("plan", "2")
    await camera.press("A", *app.moment.view.cluster_name)
    await camera.until(lambda: _can_be_approved(app))
    await camera.press("enter")
    await camera.until(lambda: _done(app) >= SHARE)
    await camera.take("run", "3")
    await camera.until(lambda: not app.moment.running)
    await camera.take("history", "5")
    await camera.take("log", "6")
    await tasks(app, camera)


def _is_typed_into(app: PlimsollApp) -> bool:
    return isinstance(app.screen.focused, Input)


def _can_be_approved(app: PlimsollApp) -> bool:
    return isinstance(app.screen, PlanDialog) and app.screen.armed


async def tasks(app: PlimsollApp, camera: Camera) -> None:
    """Request a demotion of the broker under the cursor, and show it among the tasks."""
    await camera.press("1", "o", *["down"] * 3, "enter")
    await camera.until(lambda: isinstance(app.screen, TaskPlanScreen) and _is_typed_into(app))
    await camera.press(*app.moment.view.cluster_name)
    await camera.until(lambda: _can_be_approved(app))
    await camera.press("enter")
    await camera.until(lambda: app.moment.view.run is not None and not app.moment.running)
    await asyncio.sleep(SHOWN_S)
    app.clear_notifications()
    await camera.take("tasks", "7", "enter")


def _done(app: PlimsollApp) -> float:
    run = app.moment.view.run
    return 0.0 if run is None else share_done(run)


async def fleet() -> None:
    """The screen of a fleet with a cluster in each state."""
    async with fleet_stage(every_kind(), size=(120, 20)) as on:
        await on.pilot.pause(1.0)
        picture = on.app.export_screenshot(title="plimsoll: fleet")
        picture = re.sub(r"terminal-\d+-", "terminal-", picture)
        write_picture(OUT / "fleet.svg", picture)


async def main() -> None:
    await fleet()
    order = SimulatedDemoOptions(mode=Mode.APPROVE, brokers=12, seed=SEED, now_s=START_S)
    with simulated(Settings(), order) as loop:
        app = PlimsollApp(loop, user="ann", clock=loop.clock, terminal_gone=lambda: False)
        app.animation_level = "none"
        async with app.run_test(size=SIZE) as pilot:
            await _session(app, Camera(app, pilot))


if __name__ == "__main__":
    asyncio.run(main())

"""How long each key takes until its answer is painted: Textual's pilot presses them.

300 brokers, 100,000 partitions, a plan of thousands of moves. Keys are those that count
in a scene, so that a new one is pressed too; one that counts in none stops it.

`python -P -m benchmarks.screen_keys SCENE ...` prints the keys of some scenes, the slowest
first, and changes no table.
"""

import argparse
import asyncio
import gc
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from benchmarks.canned import GOALS, CannedLoop, ready, running, snapshots, solving, stopped
from control.loop.view import LoopView
from model.goals.goals import SolveLimits
from solver.solve import solve
from tui.app import PlimsollApp
from tui.keymap import known_bindings
from tui.screens.base import LiveScreen

BROKERS: Final = 300
PARTITIONS: Final = 100_000
SIZE: Final = 160, 50
WORK: Final = 2.0
SETTLE_S: Final = 0.15
LONG_S: Final = 120.0
SLOW_MS: Final = 50.0
"""A key that takes as long is pressed again."""
AGAIN: Final = 2
MODES: Final = "1234567"
NEVER: Final = frozenset(
    {
        "app.break",
        "app.quit",
        "log.newest",
        "overview.resource",
        "brokers.cancel",
        "dialog.down",
        "dialog.up",
        "fleet.close",
    }
)
"""Bindings whose answer is the end of the screen, one whose key the log's pane has
itself, which counts where a user gives it another, one for narrow terminals, one that
closes a dialog as in a scene that is here, two for dialogs that do not fit, and one of the
screen of a fleet."""
LEAVING: Final = frozenset({"quit", "app.quit"})
"""Their actions, while no run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A part of the screen, and how one gets there."""

    name: str
    keys: tuple[str, ...]
    view: str = "ready"
    typed: tuple[str, ...] = ()
    """Letters besides the keys, where one can type."""
    auto: bool = False
    """Whether a `run --auto` leaves a plan to a person."""


SCENES: Final = (
    Scene(name="overview", keys=("1",)),
    Scene(name="overview, map", keys=("1", "m")),
    Scene(name="overview, replicas", keys=("1", "enter")),
    Scene(name="overview, request", keys=("1", "o")),
    Scene(name="overview, request, plan", keys=("1", "o", "enter"), typed=("b",)),
    Scene(name="overview, filter", keys=("1", "slash"), typed=("1", "2")),
    Scene(name="overview, log", keys=("1", "tab")),
    Scene(name="overview, problems", keys=("1", "exclamation_mark")),
    Scene(name="overview, by name", keys=("1", "colon"), typed=("t",)),
    Scene(name="overview, header", keys=("1", "shift+tab")),
    Scene(name="overview, plan of run --auto", keys=("1",), auto=True),
    Scene(name="overview, its approval", keys=("1", "W"), auto=True, typed=("b",)),
    Scene(name="plan", keys=("2",)),
    Scene(name="plan, frontier", keys=("2", "f")),
    Scene(name="plan, a move", keys=("2", "enter")),
    Scene(name="plan, goals", keys=("2", "g"), typed=("1",)),
    Scene(name="plan, what-if", keys=("2", "w"), typed=("1",)),
    Scene(name="plan, approval", keys=("2", "A"), typed=("b",)),
    Scene(name="plan, solving", keys=("2",), view="solving"),
    Scene(name="run", keys=("3",), view="running"),
    Scene(name="run, throttle", keys=("3", "T"), view="running", typed=("1",)),
    Scene(name="run, question", keys=("3", "X"), view="running"),
    Scene(name="run, stopped", keys=("3",), view="stopped"),
    Scene(name="run, roll back", keys=("3", "B"), view="stopped"),
    Scene(name="topics", keys=("4",)),
    Scene(name="topics, filter", keys=("4", "slash"), typed=("0", "1", "2")),
    Scene(name="topics, partitions", keys=("4", "enter")),
    Scene(name="topics, partitions, filter", keys=("4", "enter", "slash"), typed=("1",)),
    Scene(name="history", keys=("5",)),
    Scene(name="history, replay", keys=("5", "enter")),
    Scene(name="history, roll back", keys=("5", "B"), typed=("b",)),
    Scene(name="log", keys=("6",)),
    Scene(name="log, filter", keys=("6", "slash"), typed=("9",)),
    Scene(name="tasks", keys=("7",)),
    Scene(name="tasks, opened", keys=("7", "enter")),
    Scene(name="tasks, question", keys=("7", "C")),
)


class WatchedApp(PlimsollApp):
    """Knows when it painted last."""

    CSS_PATH = inspect.getfile(PlimsollApp).replace("app.py", "plimsoll.tcss")
    painted_s = 0.0
    painted_cpu_s = 0.0

    def post_display_hook(self) -> None:
        """Textual's own, after each paint."""
        self.painted_s = time.perf_counter()
        self.painted_cpu_s = time.process_time()


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """One key and its answer."""

    scene: str
    key: str
    id: str
    """Of its binding; empty where it has none."""
    wall_ms: float
    """Until the last paint; 0 where nothing is painted."""
    cpu_ms: float


class Hand:
    """Presses keys in a scene."""

    def __init__(self, app: WatchedApp, pilot: Pilot[None]) -> None:
        self._app, self._pilot = app, pilot

    async def go(self, *keys: str) -> None:
        """Press these, one after the other."""
        for key in keys:
            await self._pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Until nothing is to be done any more."""
        await self._app.workers.wait_for_complete()
        await asyncio.sleep(SETTLE_S)
        await self._pilot.pause()

    async def wait(self, until: Callable[[], bool]) -> None:
        """Settle until a condition holds."""
        deadline_s = time.monotonic() + LONG_S
        while not until():
            assert time.monotonic() < deadline_s
            await self.settle()

    async def press(self, scene: Scene, key: str, id_: str) -> Press:
        """Press a key; how long it took."""
        cpu_s, begun_s = time.process_time(), time.perf_counter()
        await self._pilot.press(key)
        await self.settle()
        return Press(
            scene=scene.name,
            key=key,
            id=id_,
            wall_ms=1000 * max(0.0, self._app.painted_s - begun_s),
            cpu_ms=1000 * max(0.0, self._app.painted_cpu_s - cpu_s),
        )


@contextmanager
def _frozen() -> Iterator[None]:
    """No object that exists now is garbage, as while `plimsoll` shows its screen."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@asynccontextmanager
async def on_screen(
    view: LoopView, scene: Scene, first: str = MODES
) -> AsyncIterator[tuple[WatchedApp, Hand]]:
    """The app, without the ticks of its clock, some of its screens opened first."""
    loop = CannedLoop(view, running=scene.view == "running", auto=scene.auto)
    app = WatchedApp(loop, user="ann", clock=loop.clock, terminal_gone=lambda: False)
    async with app.run_test(size=SIZE) as pilot:
        hand = Hand(app, pilot)
        if scene.auto:
            await hand.wait(lambda: app.moment.auto is not None)
        await hand.go(*first)
        await hand.go(*scene.keys)
        with _frozen():
            yield app, hand


async def pressed(view: LoopView, scene: Scene) -> AsyncIterator[Press]:
    """Each key that counts in a scene, once or, where it takes long, again."""
    todo: list[tuple[str, str]] | None = None
    again: dict[str, int] = {}
    while todo is None or todo:
        async with on_screen(view, scene) as (app, hand):
            if todo is None:
                todo = [*_keys(app), *((key, "") for key in scene.typed)]
            screen, focus = app.screen, app.screen.focused
            while todo and app.screen is screen:
                key, id_ = todo.pop()
                press = await hand.press(scene, key, id_)
                yield press
                if press.wall_ms > SLOW_MS and again.get(key, 0) < AGAIN:
                    again[key] = again.get(key, 0) + 1
                    todo.append((key, id_))
                await _return(app, screen, focus, hand)


async def _return(
    app: WatchedApp, screen: Screen[object], focus: Widget | None, hand: Hand
) -> None:
    """Close what was laid over the screen, or go back to it, and to its part."""
    if app.screen.query("HelpPanel"):
        app.action_hide_help_panel()
        await hand.settle()
    while len(app.screen_stack) > 1 and app.screen is not screen:
        app.pop_screen()
        await hand.settle()
    if isinstance(screen, LiveScreen) and app.screen is not screen:
        app.action_show_mode(screen.MODE)
        await hand.settle()
    if app.screen is screen and screen.focused is not focus:
        screen.set_focus(focus)
        await hand.settle()


def _keys(app: WatchedApp) -> Iterator[tuple[str, str]]:
    for key, found in app.screen.active_bindings.items():
        binding = found.binding
        if found.enabled and not (binding.action in LEAVING and not app.moment.running):
            yield key, binding.id or ""


async def first_visits(view: LoopView) -> list[Press]:
    """Each screen, opened for the first time once all have been built."""
    loop = CannedLoop(view)
    app = WatchedApp(loop, user="ann", clock=loop.clock, terminal_gone=lambda: False, ahead_s=0.01)
    async with app.run_test(size=SIZE) as pilot:
        hand = Hand(app, pilot)
        await hand.settle()
        await hand.settle()
        scene = Scene(name="first visit", keys=())
        with _frozen():
            return [await hand.press(scene, key, "") for key in MODES[1:]]


async def all_presses(
    views: Mapping[str, LoopView], scenes: Iterable[Scene] = SCENES
) -> list[Press]:
    """All keys of the scenes; the median of those that were pressed again."""
    found: dict[tuple[str, str], list[Press]] = {}
    for scene in scenes:
        async for press in pressed(views[scene.view], scene):
            found.setdefault((press.scene, press.key), []).append(press)
    return [_median(presses) for presses in found.values()]


def _median(presses: list[Press]) -> Press:
    return sorted(presses, key=lambda p: p.wall_ms)[len(presses) // 2]


async def ids_in(view: LoopView, scene: Scene) -> set[str]:
    """Ids of the bindings that count in a scene; nothing is pressed there."""
    async with on_screen(view, scene, first="") as (app, _):
        return {id_ for _, id_ in _keys(app)}


def not_pressed(ids: Iterable[str]) -> list[str]:
    """Ids of bindings that no scene has, by those that scenes have."""
    return sorted(set(known_bindings()) - set(ids) - NEVER)


def views(brokers: int = BROKERS, partitions: int = PARTITIONS) -> dict[str, LoopView]:
    """By the names that scenes use."""
    (state, *_) = snapshots(brokers, partitions)
    plan = solve(state, GOALS, SolveLimits(work=WORK)).best
    assert plan is not None
    base = ready(state, plan)
    return {
        "ready": base,
        "solving": solving(base),
        "running": running(base, 100),
        "stopped": stopped(base, 100),
    }


def main() -> None:
    """Print the keys of the scenes that are named."""
    parser = argparse.ArgumentParser(description="the keys of some scenes, the slowest first")
    parser.add_argument("scene", nargs="+", choices=[scene.name for scene in SCENES])
    names = parser.parse_args().scene
    scenes = [scene for scene in SCENES if scene.name in names]
    for press in sorted(asyncio.run(all_presses(views(), scenes)), key=lambda press: -press.cpu_ms):
        figures = f"{press.wall_ms:4.0f} ms until painted {press.cpu_ms:4.0f} ms of CPU"
        print(f"{press.scene:26} {press.key:20} {figures}")


if __name__ == "__main__":
    main()

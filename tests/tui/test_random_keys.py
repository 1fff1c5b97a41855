"""Random keys, on all screens, at changing sizes: nothing raises, and nothing runs unconfirmed.

`PLIMSOLL_RANDOM_KEYS=5000 PLIMSOLL_RANDOM_SEED=7` presses as many with each of two other seeds.
"""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from textual.widgets import Button, Input

from control.loop.view import LoopView, Mode
from model.run import RunState
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.listed_tasks import every_kind
from tests.support.tui.loop_views import (
    CONNECTING,
    NAME,
    balanced_after_run,
    disconnected,
    failed,
    measuring,
    no_partitions,
    plan,
    plan_ready,
    running,
)
from tests.support.tui.past_runs import older, past, replay
from tests.support.tui.plan_views import (
    asked,
    leaving_faults,
    outdated,
    still_solving,
    what_if,
    with_frontier,
)
from tui.screens.dialog import NamedDialog
from tui.screens.question import Question

KEYS: Final = int(os.environ.get("PLIMSOLL_RANDOM_KEYS", "60"))
SEED: Final = int(os.environ.get("PLIMSOLL_RANDOM_SEED", "0"))
SIZES: Final = ((60, 16), (80, 24), (120, 40), (200, 60), (60, 40), (160, 16), (20, 5))
MORE: Final = (
    *"1234567ABCEPRSTXabdefgimnoprstuwxy0!/:?[]é",
    *("enter", "escape", "tab", "shift+tab", "space", "backspace", "delete", "ctrl+p", "ctrl+u"),
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "f1"),
)
"""Keys besides those that count where they are pressed."""
CONFIRMED: Final = ("A", *NAME, "enter")


def _views() -> tuple[LoopView, ...]:
    return (
        plan_ready(),
        running(),
        with_frontier(),
        what_if(),
        asked(),
        outdated(),
        leaving_faults(),
        still_solving(),
        balanced_after_run(),
        disconnected(),
        failed(),
        measuring(),
        no_partitions(),
        plan_ready(Mode.READ_ONLY),
        CONNECTING,
    )


@dataclass
class _Done:
    """What was passed on to the loop, and what was on the screen when the key was pressed."""

    on: Stage
    named: bool = False
    """Whether the cluster's name was typed into a dialog that was read to its end."""
    agreed: bool = False
    """Whether the yes of a question was focused."""
    before: tuple[int, int] = (0, 0)
    total: list[str] = field(default_factory=list)

    def look(self) -> None:
        """Remember what the next key is pressed on."""
        screen, focused = self.on.app.screen, self.on.app.focused
        self.named = isinstance(screen, NamedDialog) and screen.armed
        yes = isinstance(focused, Button) and focused.id == "yes"
        self.agreed = isinstance(screen, Question) and yes
        self.before = self._counts()

    def _counts(self) -> tuple[int, int]:
        """Plans executed, and other changes of runs and tasks."""
        loop, past = self.on.loop, self.on.loop.previous_runs
        assert loop.tasks is not None
        plans = len(loop.approved) + len(past.rolled_back) + len(loop.tasks.requested)
        steering = loop.steering
        others = steering.stopping.is_set() + steering.aborting + len(past.resumed)
        return plans, others + len(loop.tasks.cancelled) + len(loop.tasks.marked)

    def check(self) -> None:
        """Whatever ran was confirmed by this key."""
        plans, others = self._counts()
        assert plans == self.before[0] or self.named, "a plan was executed without its dialog"
        assert others == self.before[1] or self.agreed or self.named, "nobody agreed to this"


def _key(on: Stage, rng: random.Random) -> str:
    """One that counts here, or any other."""
    active = [key for key, found in on.app.screen.active_bindings.items() if found.enabled]
    key: str = rng.choice(active if active and rng.random() < 0.6 else MORE)
    return key


async def _session(on: Stage, rng: random.Random, left: int) -> int:
    """Press keys until the app is left; how many are left to be pressed."""
    views, done, queued = _views(), _Done(on), list[str]()
    on.loop.previous_runs.listed = (past(), older())
    on.loop.previous_runs.replayed = replay()
    on.loop.previous_runs.back = (plan(), ["orders-7 has moved since"])
    assert on.loop.tasks is not None
    on.loop.tasks.listed, on.loop.tasks.plan = every_kind(), plan()
    while left and on.app.return_code is None:
        left -= 1
        if rng.random() < 0.04:
            await on.show(rng.choice(views))
        if rng.random() < 0.06:
            await on.pilot.resize_terminal(*rng.choice(SIZES))
            await on.settle()
        if rng.random() < 0.02:
            on.loop.previous_runs.interrupted = rng.choice((None, past(RunState.INTERRUPTED)))
        if not queued and rng.random() < 0.02:
            queued = [*CONFIRMED]
        if not queued and isinstance(on.app.focused, Input) and rng.random() < 0.05:
            queued = [*NAME]
        done.look()
        await on.press(queued.pop(0) if queued else _key(on, rng))
        done.check()
        if on.app.return_code is None:
            width, height = on.app.size
            strips = on.app.screen._compositor.render_strips()
            assert len(strips) == height
            assert all(strip.cell_length == width for strip in strips)
    return left


@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
@pytest.mark.slow
async def test_random_keys_never_raise_and_run_nothing_unconfirmed(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plans are exported to the current folder, and the palette's screenshots to downloads.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DOWNLOAD_DIR", str(tmp_path))
    rng, left = random.Random(seed), KEYS
    while left:
        async with stage(rng.choice(_views()), size=rng.choice(SIZES)) as on:
            left = await _session(on, rng, left)

"""An hour of a simulated cluster on the screen: `python -P -m benchmarks.screen_hour`.

Prints a line of JSON for each minute of ours, after a collection of garbage. Meanwhile
screens are switched, tables walked and sorted, and each plan that comes is approved.
"""

import asyncio
import gc
import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import psutil
from textual.pilot import Pilot

from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.loop import Loop
from control.loop.view import Mode, Phase
from control.settings.settings import Settings
from model.goals.goals import Budgets, Goals
from tui.app import PlimsollApp

BROKERS: Final = 60
SEED: Final = 7
SIZE: Final = 160, 50
START_S: Final = 1_767_603_600.0
"""Monday 2026-01-05, 09:00 UTC."""
MINUTES: Final = 10
GOALS: Final = Goals(budgets=Budgets(replica_moves=200))
"""So that several runs come to their end."""
ROUND_S: Final = 2.0
"""Between two things that a person does."""
KEYS: Final = tuple(
    itertools.chain.from_iterable(
        (mode, "down", "down", "s", "S", "pagedown", "home") for mode in "123456"
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """How things stand after a minute of ours."""

    minute: int
    cluster_s: float
    """Of the cluster's clock, since the beginning."""
    rss_mib: float
    blocks: int
    """Of memory, that Python holds."""
    cpu_s: float
    """User and system, in this minute."""
    runs: int
    """That have ended."""
    plans: int
    """That were approved."""


class Operator:
    """Goes round the screens, and approves what there is to approve."""

    def __init__(self, app: PlimsollApp, pilot: Pilot[None]) -> None:
        self._app, self._pilot = app, pilot
        self._keys: Iterator[str] = itertools.cycle(KEYS)
        self.approved = 0

    async def act(self) -> None:
        """One thing that a person does."""
        view = self._app.moment.view
        if view.phase is Phase.PLAN_READY and not self._app.moment.running:
            name = view.cluster_name
            await self._pilot.press("A", *name, "enter")
            self.approved += 1
        else:
            await self._pilot.press(next(self._keys))


async def watch(loop: Loop, app: PlimsollApp, pilot: Pilot[None]) -> None:
    """Print how things stand after each minute."""
    process, operator = psutil.Process(), Operator(app, pilot)
    before_s = sum(process.cpu_times()[:2])
    for minute in range(1, MINUTES + 1):
        until_s = time.monotonic() + 60.0
        while time.monotonic() < until_s:
            await operator.act()
            await asyncio.sleep(min(ROUND_S, max(0.0, until_s - time.monotonic())))
        gc.collect()
        now_s = sum(process.cpu_times()[:2])
        stands = Minute(
            minute=minute,
            cluster_s=app.moment.now_ms / 1000 - START_S,
            rss_mib=process.memory_info().rss / 2**20,
            blocks=sys.getallocatedblocks(),
            cpu_s=now_s - before_s,
            runs=len(loop.reports),
            plans=operator.approved,
        )
        print(json.dumps(asdict(stands)), flush=True)
        before_s = now_s


async def main() -> None:
    order = SimulatedDemoOptions(mode=Mode.APPROVE, brokers=BROKERS, seed=SEED, now_s=START_S)
    with simulated(Settings(goals=GOALS), order) as loop:
        app = PlimsollApp(loop, user="ann", clock=loop.clock, terminal_gone=lambda: False)
        async with app.run_test(size=SIZE) as pilot:
            await watch(loop, app, pilot)


if __name__ == "__main__":
    asyncio.run(main())

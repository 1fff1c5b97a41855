"""The demo without brokers: the loop over a simulated cluster."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control.compose import journal_dir
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import Mode
from control.planning.planner import planner
from control.settings.auto_limits import EAGER
from control.settings.settings import Settings
from control.tasks.broker_marks import MarkedBrokers
from control.tasks.continued_tasks import ContinuedTasks
from control.tasks.operator_tasks import OperatorTasks
from control.tasks.task_files import TaskFiles
from lab.simulated_cluster.demo_cluster import DemoClusterOptions
from lab.simulated_cluster.live_cluster import LiveCluster, LiveObserver
from model.goals.goals import Cooldown, Goals
from model.snapshot.snapshot import StorageKind

if TYPE_CHECKING:
    from executor.executor import Executor
    from model.snapshot.snapshot import Snapshot
    from solver.report.result import Result

SPEED: Final = 6.0
"""Simulated seconds per second: an hour passes in ten minutes."""
WORK: Final = 2.0
"""Search budget; enough for a plan of such a cluster that is close to its bound."""
THROTTLE_BYTES_PER_S: Final = 40_000_000
PER_BROKER_BYTES_PER_S: Final = 2_000_000
"""Least throttle per broker: larger clusters have more traffic per broker."""
THROTTLE_STEP: Final = 10_000_000
"""The throttle is a multiple of this, bytes/s."""
MOVES_IN_FLIGHT: Final = 6
"""Moves at once; larger clusters allow more."""
POLL_S: Final = 1.0
"""Time between two polls of in-flight moves, by the simulated clock."""
NAME: Final = "demo"
BOOTSTRAP: Final = "simulated"


@dataclass(frozen=True, kw_only=True)
class SimulatedDemoOptions:
    """Options of the simulated demo."""

    mode: Mode
    """AUTO or APPROVE."""
    brokers: int
    seed: int
    """Seed of the cluster and of the course of its loads."""
    now_s: float
    """Start of the simulated clock, seconds since the epoch."""
    speed: float = SPEED


@contextlib.contextmanager
def simulated(settings: Settings, order: SimulatedDemoOptions) -> Iterator[Loop]:
    """Run the loop over a new simulated cluster; delete all its files afterwards."""
    world = DemoClusterOptions(brokers=order.brokers, seed=order.seed, now_s=order.now_s)
    with (
        tempfile.TemporaryDirectory(prefix="plimsoll-demo-") as folder,
        LiveCluster(world, speed=order.speed) as live,
    ):
        own = _own(settings, order, Path(folder), live)
        tasks, marks = _tasks(own, order, live), MarkedBrokers(own.state_dir)
        parts = LoopParts(
            observer=lambda: LiveObserver(live, marked=marks),
            planner=planner,
            executor=lambda: _executor(own, live),
            clock=live.now_s,
            steady=live.now_s,
            tasks=tasks if order.mode is Mode.AUTO else None,
            operator_tasks=OperatorTasks(tasks),
        )
        with Loop(_settings(own, order), parts) as loop:
            yield loop


def _own(
    settings: Settings, order: SimulatedDemoOptions, folder: Path, live: LiveCluster
) -> Settings:
    return settings.model_copy(
        update={
            "state_dir": folder,
            "name": NAME,
            "goals": _goals(settings.goals),
            "throttle": settings.throttle or _usual_throttle(order, live),
        }
    )


def _usual_throttle(order: SimulatedDemoOptions, live: LiveCluster) -> int:
    """A throttle that no plan is refused under, bytes per second."""
    needed = ceil(live.copies_need(_in_flight(order)) / THROTTLE_STEP) * THROTTLE_STEP
    return max(THROTTLE_BYTES_PER_S, order.brokers * PER_BROKER_BYTES_PER_S, needed)


def _in_flight(order: SimulatedDemoOptions) -> int:
    return max(MOVES_IN_FLIGHT, order.brokers // 2)


def _goals(goals: Goals) -> Goals:
    """Shorten the cooldown, so that one can try things out."""
    rest = Cooldown(rest_s=60.0, return_window_s=60.0)
    return goals.model_copy(update={"cooldown": {StorageKind.REPLICATED: rest}})


def _settings(own: Settings, order: SimulatedDemoOptions) -> LoopSettings:
    return LoopSettings(
        bootstrap=BOOTSTRAP,
        name=NAME,
        mode=order.mode,
        goals=own.goals,
        solve=own.solve.model_copy(update={"work": min(WORK, own.solve.work)}),
        effort=own.solve.effort,
        limits=EAGER.model_copy(
            update={
                "moves_in_flight": _in_flight(order),
                "replica_moves": 10_000,
                "leader_changes": 10_000,
            }
        ),
        journal_dir=journal_dir(own),
        tick_s=0.25,
        throttle=own.throttle,
        stop_rules=own.stop_rules,
        screen=own.screen,
        keys=own.keys,
    )


def _tasks(own: Settings, order: SimulatedDemoOptions, live: LiveCluster) -> ContinuedTasks:
    limits = _settings(own, order).solve

    def find(snapshot: "Snapshot", goals: Goals) -> "Result":
        # The solver takes long to import, and the screen has this before its first picture.
        from solver.solve import solve

        return solve(snapshot, goals, limits)

    return ContinuedTasks(
        files=TaskFiles(own.state_dir),
        connect=lambda: contextlib.closing(_executor(own, live)),
        journal_dir=journal_dir(own),
        solve=find,
        goals=own.goals,
        clock=live.now_s,
        steady=live.now_s,
    )


def _executor(own: Settings, live: LiveCluster) -> "Executor":
    from executor.executor import Executor
    from executor.timing import RunLimits

    throttle = own.throttle
    return Executor(
        live.admin(),
        timing=live.timing,
        limits=RunLimits(
            throttle_bytes_per_s=throttle if isinstance(throttle, int) else None,
            throttle_follows=not isinstance(throttle, int),
            stop_rules=own.stop_rules,
            poll_s=POLL_S,
        ),
    )

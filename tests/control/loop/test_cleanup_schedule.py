"""Settings left by a failed run, restored by `--auto` without an operator."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from control.loop.cleanup_schedule import FIRST_S, CleanupSchedule
from control.loop.dependencies import LoopParts
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode
from control.planning.planner import planner
from control.settings.auto_limits import EAGER
from executor.executor import Executor
from executor.journal.run_history import left_set
from executor.timing import RunLimits
from lab.simulated_cluster.demo_cluster import DemoClusterOptions
from lab.simulated_cluster.live_cluster import LiveCluster, LiveObserver
from model.errors import GuardrailRefused
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.run import MoveState, RunState
from model.stop_rules import Reaction, StopRules
from tests.support.control.loop_parts import loop_settings
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import Killed
from tests.support.executor.simulated_runs import SimulatedRun as ExecutionSite

LONG_S = 300.0
RULES = StopRules(no_progress_s=60.0, slow_requests=Reaction.OFF)
LIMITS = RunLimits(throttle_bytes_per_s=60_000_000, poll_s=1.0, stop_rules=RULES)


@dataclass(frozen=True)
class SimulatedRun:
    """A loop over a simulated cluster in motion."""

    live: LiveCluster
    loop: Loop

    def wait(self, fits: Callable[[LoopView], bool]) -> None:
        """Wait for a condition; on a timeout, report the phase of the loop."""
        assert self.loop.wait(fits, LONG_S), (self.loop.view.message, self.loop.error)

    def kill(self, broker: BrokerId) -> None:
        with self.live.lock:
            self.live.cluster.kill(broker)

    def revive(self, broker: BrokerId) -> None:
        with self.live.lock:
            self.live.cluster.revive(broker)

    @property
    def rates(self) -> dict[BrokerId, dict[str, str]]:
        """Settings of brokers that have any."""
        with self.live.lock:
            brokers = self.live.cluster.brokers.values()
            return {b.id: dict(b.configs) for b in brokers if b.configs}

    @property
    def lists(self) -> list[dict[str, str]]:
        """Settings of topics that have any."""
        with self.live.lock:
            return [dict(of) for of in self.live.cluster.topic_configs.values() if of]


@contextmanager
def looping(folder: Path) -> Iterator[SimulatedRun]:
    world = DemoClusterOptions(brokers=8, seed=7, now_s=1_700_000_000.0)
    settings = loop_settings(
        folder,
        mode=Mode.AUTO,
        goals=Goals(cooldown={}),
        solve=SolveLimits(work=1.0),
        limits=EAGER.model_copy(update={"moves_in_flight": 6, "min_gain": 0.0}),
        tick_s=0.05,
    )
    with LiveCluster(world, speed=60.0) as live:
        parts = LoopParts(
            observer=lambda: LiveObserver(live, every_s=0.2),
            planner=planner,
            executor=lambda: Executor(live.admin(), timing=live.timing, limits=LIMITS),
            clock=live.now_s,
            steady=live.now_s,
        )
        with Loop(settings, parts) as loop:
            yield SimulatedRun(live, loop)


class Killer:
    """Kills the broker that the first move copies to, once, as soon as it copies."""

    def __init__(self, site: SimulatedRun) -> None:
        self._site = site
        self.victim: BrokerId | None = None

    def __call__(self, view: LoopView) -> None:
        for at in view.run.moves if view.run is not None else ():
            copies = at.state is MoveState.ISSUED and at.bytes_copied
            if self.victim is None and copies and at.move.added:
                self.victim = at.move.added[0]
                self._site.kill(self.victim)


def test_auto_restores_settings_of_a_failed_run_before_the_next_one(tmp_path: Path) -> None:
    """A broker dies in mid-run and keeps the throttle; later it returns."""
    with looping(tmp_path) as at:
        killer = Killer(at)
        at.loop.subscribe(killer)
        at.wait(lambda _: bool(at.loop.reports))
        failed, victim = at.loop.reports[0], killer.victim
        assert victim is not None
        assert failed.state is RunState.FAILED
        assert f"broker {victim} did not answer and keeps its throttle" in failed.reason
        assert list(at.rates) == [victim]
        at.revive(victim)
        at.wait(
            lambda _: any(r.state is RunState.DONE for r in at.loop.reports) and not at.loop.running
        )
        message = f"run {failed.run_id}: its throttle is gone"
        assert any(message in line.text for line in at.loop.view.log)
        assert not at.rates
        assert not at.lists
    assert left_set(tmp_path, "simulated") == []


@pytest.fixture
def left(tmp_path: Path) -> ExecutionSite:
    """A run that was killed after it sent its first move, under a throttle."""
    limits = RunLimits(throttle_bytes_per_s=20_000_000)
    site = ExecutionSite(folder=tmp_path, before={0: (1, 2)}, after={0: (3, 2)}, limits=limits)
    site.faults.on_call = killed_after("reassign")
    with pytest.raises(Killed):
        site.run()
    site.stop_killing()
    return site


def killed_after(call: str) -> Callable[..., None]:
    """Dies after its first call of this name, and stays dead."""
    dead = False

    def on_call(made_call: str, *, made: bool) -> None:
        nonlocal dead
        dead |= made and made_call == call
        if dead:
            raise Killed

    return on_call


def test_a_throttle_stays_while_its_replicas_are_copied(left: ExecutionSite) -> None:
    with pytest.raises(GuardrailRefused, match="orders-0 is still being moved"):
        left.executor().clean_up(left.folder, idle=True)
    assert not left.is_clean
    left.cluster.advance(60.0)
    left.executor().clean_up(left.folder, idle=True)
    assert left.is_clean


def test_a_cleanup_is_tried_for_each_plan_and_otherwise_with_growing_delays(
    left: ExecutionSite,
) -> None:
    schedule = CleanupSchedule(left.folder)
    assert schedule.due(CLUSTER_ID, 0.0)
    assert not schedule.due(CLUSTER_ID, FIRST_S - 1)
    assert schedule.due(CLUSTER_ID, FIRST_S - 1, "plan 1")
    assert not schedule.due(CLUSTER_ID, FIRST_S - 1, "plan 1")
    schedule.run_failed(FIRST_S)
    assert schedule.due(CLUSTER_ID, FIRST_S, "plan 1")
    assert not schedule.due("another cluster", 100 * FIRST_S)


def test_without_remaining_settings_no_cleanup_is_tried(left: ExecutionSite) -> None:
    left.cluster.advance(60.0)
    left.executor().clean_up(left.folder, idle=True)
    assert not CleanupSchedule(left.folder).due(CLUSTER_ID, 0.0)

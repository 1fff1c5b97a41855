"""The health of a simulated cluster, as an observer of a run sees it."""

from pathlib import Path

from executor.timing import RunLimits
from model.ids import BrokerId
from model.run import RunProgress, RunState
from model.run_health import RunHealth
from model.stop_rules import Reaction, StopRules
from tests.support.executor.simulated_runs import MB, SimulatedRun

OFF = StopRules(broker_lost=Reaction.OFF, under_replicated=Reaction.OFF, offline=Reaction.OFF)
BEFORE = {0: (1, 2), 1: (3, 4)}
AFTER = {0: (5, 2)}


def _run(folder: Path, **more: object) -> SimulatedRun:
    limits = RunLimits(watch_s=1.0, disk_look_s=1.0, disk_reserve_bytes=50 * MB, stop_rules=OFF)
    options = {
        "folder": folder,
        "before": BEFORE,
        "after": AFTER,
        "disk_bytes": 1000.0 * MB,
        "limits": limits,
    }
    return SimulatedRun(**(options | more))  # type: ignore[arg-type]


def _checked(of: SimulatedRun) -> list[RunHealth]:
    return [found for found in dict.fromkeys(p.health for p in of.shown) if found is not None]


def test_a_run_shows_the_figures_that_stop_rules_watch(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert run.run().state is RunState.DONE
    first, *_, last = _checked(run)
    assert (first.offline, first.under_replicated, first.under_min_isr) == (0, 0, 0)
    assert first.answer_s == first.first_answer_s > 0
    assert first.disk is not None
    assert last.disk is not None
    assert (first.disk.broker, first.disk.free_bytes) == (BrokerId(5), 950 * MB)
    assert last.disk.first_bytes == 950 * MB
    assert last.disk.free_bytes < first.disk.free_bytes
    assert last.at_ms > first.at_ms


def test_partitions_outside_the_plan_that_lose_replicas_are_counted(tmp_path: Path) -> None:
    run = _run(tmp_path)

    def observe(progress: RunProgress) -> None:
        run.shown.append(progress)
        if progress.health is not None:
            run.cluster.kill(BrokerId(4))

    assert run.run(observe=observe).state is RunState.DONE
    first, *_, last = _checked(run)
    assert (first.under_replicated, last.under_replicated) == (0, 1)

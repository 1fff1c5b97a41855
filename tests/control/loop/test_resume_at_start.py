"""A loop that resumes the run which an earlier process left, before anything else."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from control.loop.loop import Loop
from control.loop.previous_runs import PreviousRuns
from control.loop.view import Mode
from control.planning.background_call import AtOnce
from control.settings.auto_limits import EAGER
from model.errors import ClusterUnreachable, PlanOutdated, PlimsollError
from model.run import RunReport, RunState
from tests.support.control.loop_parts import (
    MB,
    START_MS,
    CannedObserver,
    RecordingExecutor,
    cluster,
    loop_parts,
    loop_settings,
)

UNEVEN = cluster([2] * 8, [MB] * 8)
REPORT = RunReport(
    run_id="run-0",
    plan_hash="0" * 64,
    state=RunState.DONE,
    reason="",
    started_at_ms=START_MS,
    duration_s=1.0,
    preparation_s=0.0,
    moves=(),
)


class Clock:
    """A clock set by tests."""

    now_s = START_MS / 1000

    def __call__(self) -> float:
        return self.now_s


@dataclass
class ResumingExecutor(RecordingExecutor):
    """Resumes a run, or fails to, as often as errors are left."""

    errors: list[PlimsollError] = field(default_factory=list)
    resumed: int = 0
    cleanups: int = 0

    def resume(self, **_order: Any) -> RunReport:
        self.resumed += 1
        if self.errors:
            raise self.errors.pop()
        return REPORT

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        self.cleanups += 1
        return []


@dataclass
class Bench:
    loop: Loop
    observer: CannedObserver
    executor: ResumingExecutor
    clock: Clock

    def turns(self, count: int = 6, seconds: float = 0.0) -> None:
        for _ in range(count):
            self.clock.now_s += seconds
            newest = cluster([2] * 8, [MB] * 8, taken_at_ms=int(1000 * self.clock.now_s))
            self.observer.snapshots[:] = [newest]
            self.loop.turn(self.observer)


def bench(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *errors: PlimsollError, resume: bool = True
) -> Bench:
    """A loop whose journals have an interrupted run until it is resumed."""
    executor, clock = ResumingExecutor(errors=list(errors)), Clock()

    def check(self: PreviousRuns, _cluster_id: str) -> None:
        resumed = executor.resumed > 0 and not executor.errors and executor.resumed > len(errors)
        self.interrupted = None if resumed else cast("Any", "an interrupted run")

    monkeypatch.setattr(PreviousRuns, "_check", check)
    observer = CannedObserver([UNEVEN])
    parts = loop_parts(observer, executor, clock=clock, steady=clock, background=AtOnce)
    limits = EAGER.model_copy(update={"confirm": 0.0, "pause": 0.0})
    settings = loop_settings(folder, mode=Mode.AUTO, limits=limits)
    return Bench(Loop(replace(settings, resume=resume), parts), observer, executor, clock)


def test_it_is_resumed_before_a_plan_or_a_cleanup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bench(tmp_path, monkeypatch)
    found.turns(1)
    assert (found.executor.resumed, found.executor.cleanups) == (1, 0)
    assert found.executor.plans == []
    assert "resuming the most recent run" in " ".join(x.text for x in found.loop.view.log)
    found.turns(10, seconds=20.0)
    assert found.executor.resumed == 1
    assert len(found.executor.plans) >= 1


def test_without_the_setting_it_is_only_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bench(tmp_path, monkeypatch, resume=False)
    found.turns(1)
    assert found.loop.previous_runs.interrupted is not None
    found.turns(10, seconds=20.0)
    assert found.executor.resumed == 0


def test_a_cluster_that_does_not_answer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ClusterUnreachable("no answer")
    found = bench(tmp_path, monkeypatch, error, error)
    found.turns(3)
    # It waits before it tries again, and starts no other run.
    assert (found.executor.resumed, found.executor.plans) == (1, [])
    found.turns(1, seconds=11.0)
    assert (found.executor.resumed, found.executor.plans) == (2, [])
    found.turns(2, seconds=30.0)
    assert found.executor.resumed == 3


def test_another_failure_leaves_the_run_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bench(tmp_path, monkeypatch, PlanOutdated("a topic is gone"))
    found.turns(12, seconds=20.0)
    assert found.executor.resumed == 1
    assert len(found.executor.plans) >= 1


def test_a_pause_holds_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bench(tmp_path, monkeypatch)
    found.loop.pause("paused by eve")
    found.turns(10, seconds=20.0)
    assert (found.executor.resumed, found.executor.plans) == (0, [])
    found.loop.unpause()
    found.turns(1, seconds=20.0)
    assert found.executor.resumed == 1

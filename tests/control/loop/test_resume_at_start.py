"""A loop that resumes the run which an earlier process left, before anything else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from control.loop.previous_runs import PreviousRuns
from model.errors import ClusterUnreachable, PlanOutdated, PlimsollError
from model.plan.plan import Plan
from model.run import RunProgress, RunReport, RunState
from tests.support.control.loop_parts import START_MS, LoopBench, RecordingExecutor, loop_bench

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


def bench(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *errors: PlimsollError, resume: bool = True
) -> LoopBench[ResumingExecutor]:
    """A loop whose journals have an interrupted run until it is resumed."""
    executor = ResumingExecutor(errors=list(errors))

    def check(self: PreviousRuns, _cluster_id: str) -> None:
        resumed = executor.resumed > 0 and not executor.errors and executor.resumed > len(errors)
        run = SimpleNamespace(plan=SimpleNamespace(hash="a" * 64))
        self.interrupted = None if resumed else cast("Any", run)

    monkeypatch.setattr(PreviousRuns, "_check", check)
    return loop_bench(folder, executor, settings={"resume": resume})


def test_it_is_resumed_before_a_plan_or_a_cleanup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bench(tmp_path, monkeypatch)
    found.turns(1, 0.0)
    assert (found.executor.resumed, found.executor.cleanups) == (1, 0)
    assert found.executor.plans == []
    assert "resuming the most recent run" in found.log
    found.turns(10, 20.0)
    assert found.executor.resumed == 1
    assert len(found.executor.plans) >= 1


def test_without_the_setting_it_is_only_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bench(tmp_path, monkeypatch, resume=False)
    found.turns(1, 0.0)
    assert found.loop.previous_runs.interrupted is not None
    found.turns(10, 20.0)
    assert found.executor.resumed == 0


def test_a_cluster_that_does_not_answer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ClusterUnreachable("no answer")
    found = bench(tmp_path, monkeypatch, error, error)
    found.turns(3, 0.0)
    # It waits before it tries again, and starts no other run.
    assert (found.executor.resumed, found.executor.plans) == (1, [])
    found.turns(1, 11.0)
    assert (found.executor.resumed, found.executor.plans) == (2, [])
    found.turns(2, 30.0)
    assert found.executor.resumed == 3


def test_another_failure_leaves_the_run_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = bench(tmp_path, monkeypatch, PlanOutdated("a topic is gone"))
    found.turns(12, 20.0)
    assert found.executor.resumed == 1
    assert len(found.executor.plans) >= 1


def test_a_pause_holds_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bench(tmp_path, monkeypatch)
    found.loop.pause("paused by eve")
    found.turns(10, 20.0)
    assert (found.executor.resumed, found.executor.plans) == (0, [])
    found.loop.unpause()
    found.turns(1, 20.0)
    assert found.executor.resumed == 1


@dataclass
class ObservedExecutor(RecordingExecutor):
    """Shows a run in its checks, and then once it has begun."""

    seen: list[bool] = field(default_factory=list)
    """Whether the interrupted run was known after each state."""
    known: Callable[[], bool] = lambda: True

    def execute(
        self, plan: Plan, *, observe: Callable[[RunProgress], None], **order: Any
    ) -> RunReport:
        for state in (RunState.CHECKING, RunState.RUNNING):
            observe(
                RunProgress(
                    run_id="run-1",
                    plan_hash=plan.hash,
                    state=state,
                    moves=(),
                    started_at_ms=START_MS,
                )
            )
            self.seen.append(self.known())
        return super().execute(plan, observe=observe, **order)


def test_once_another_run_has_begun_it_is_not_offered_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(self: PreviousRuns, _cluster_id: str) -> None:
        self.interrupted = cast("Any", SimpleNamespace(run_id="run-0"))

    monkeypatch.setattr(PreviousRuns, "_check", check)
    executor = ObservedExecutor()
    found = loop_bench(tmp_path, executor, settings={"resume": False})
    executor.known = lambda: found.loop.previous_runs.interrupted is not None
    found.turns(1, 0.0)
    assert executor.known()
    found.turns(10, 20.0)
    assert executor.seen[:2] == [True, False]
    assert not executor.known()

"""The system clock is changed during a run."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from executor.executor import Executor
from executor.journal.run_history import past_run
from executor.run.operator_control import Steering
from executor.timing import RunLimits, Timing
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.run import RunReport, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.simulated_runs import MB, Killed, SimulatedRun

HOUR_S = 3600.0
LOOKS = (0, 1, 20)
"""After how many pauses of the run its clock is set."""


def site(folder: Path, storage: StorageKind) -> SimulatedRun:
    """A run of half a minute where bytes are copied."""
    return SimulatedRun(
        folder=folder,
        before=dict.fromkeys(range(4), (1,)),
        after={0: (2,), 1: (3,), 2: (2,), 3: (4,)},
        storage=storage,
        log_bytes=600.0 * MB,
        limits=RunLimits(moves_in_flight=2, throttle_bytes_per_s=50 * MB),
    )


def jumping(steady: Timing, jump_s: float, at: int) -> Timing:
    """The clock of the cluster, set by so much after so many pauses."""
    pauses = count()
    ahead_s = 0.0

    def pause(seconds: float) -> None:
        nonlocal ahead_s
        if next(pauses) == at:
            ahead_s = jump_s
        steady.pause(seconds)

    return replace(steady, now_s=lambda: steady.steady_s() + ahead_s, pause=pause)


def run(of: SimulatedRun, timing: Timing) -> RunReport:
    admin = SimulatedAdmin(of.cluster, of.faults)
    with Executor(admin, timing=timing, limits=of.limits) as executor:
        return executor.execute(
            of.plan, journal_dir=of.folder, observe=lambda _: None, steering=Steering()
        )


@pytest.mark.parametrize("storage", StorageKind)
@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["ahead", "back"])
@pytest.mark.parametrize("at", LOOKS)
@pytest.mark.slow
def test_a_clock_jump_does_not_change_the_duration(
    tmp_path: Path, storage: StorageKind, jump_s: float, at: int
) -> None:
    calm = site(tmp_path / "calm", storage)
    as_ever = run(calm, calm.cluster.timing)
    assert as_ever.state is RunState.DONE
    shaken = site(tmp_path / "shaken", storage)
    report = run(shaken, jumping(shaken.cluster.timing, jump_s, at))
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert report.duration_s == as_ever.duration_s
    assert [m.duration_s for m in report.moves] == [m.duration_s for m in as_ever.moves]
    assert shaken.is_clean


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["ahead", "back"])
def test_an_unreachable_cluster_ends_the_run_after_the_time_out(
    tmp_path: Path, jump_s: float
) -> None:
    """Neither at once nor an hour later."""
    shaken = site(tmp_path, StorageKind.REPLICATED)
    gone_s = shaken.cluster.now_s + 10.0
    shaken.cluster.after(10.0, lambda: setattr(shaken.faults, "away", True))
    timing = jumping(shaken.cluster.timing, jump_s, 90)
    report = run(shaken, timing)
    assert report.state is RunState.FAILED
    assert "no answer for 60 s" in report.reason
    assert 60.0 <= shaken.cluster.now_s - gone_s < 120.0


@pytest.mark.parametrize("command", ["resume", "rollback"])
def test_the_newest_run_is_the_last_started_regardless_of_the_clock(
    tmp_path: Path, command: str
) -> None:
    """Two hours back: the earlier run has the later time, in its id and records."""
    at = site(tmp_path, StorageKind.REPLICATED)
    first = run(at, at.cluster.timing)
    assert first.state is RunState.DONE
    at.cluster.advance(300.0)
    back = replace(at, before=at.after, after={0: (1,), 1: (2,)})
    back.cluster, back.faults = at.cluster, at.faults
    steady = at.cluster.timing
    late = replace(steady, now_s=lambda: steady.now_s() - 2 * HOUR_S)
    back.kill_at(4, made=True)
    with pytest.raises(Killed):
        run(back, late)
    back.stop_killing()
    newest = past_run(tmp_path, back.plan.cluster_id)
    assert newest.plan == back.plan
    assert newest.started_at_ms < first.started_at_ms
    at.cluster.advance(300.0)
    admin = SimulatedAdmin(at.cluster, at.faults)
    with Executor(admin, timing=late, limits=at.limits) as executor:
        if command == "rollback":
            plan, _ = executor.plan_rollback(tmp_path, None)
            assert newest.run_id in plan.limited_by
            return
        report = executor.resume(journal_dir=tmp_path, observe=lambda _: None, steering=Steering())
    assert (report.run_id, report.state) == (newest.run_id, RunState.DONE)
